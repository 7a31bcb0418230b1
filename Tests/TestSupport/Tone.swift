/// Test audio: a tone as a mono WAV of 16 bits.
package enum Tone {
    /// The number of samples per second.
    package static let rate = 8_000

    /// Returns a whole file. `declared` sets another duration in its header.
    package static func wav(seconds: Double, declared: Double? = nil, rate: Int = rate) -> [UInt8] {
        let count = Int(seconds * Double(rate))
        let declaredBytes = UInt32((declared ?? seconds) * Double(rate)) * 2
        var bytes: [UInt8] = Array("RIFF".utf8) + little(declaredBytes + 36) + Array("WAVEfmt ".utf8)
        bytes += little(UInt32(16)) + little(UInt16(1)) + little(UInt16(1)) + little(UInt32(rate))
        bytes += little(UInt32(rate * 2)) + little(UInt16(2)) + little(UInt16(16))
        bytes += Array("data".utf8) + little(declaredBytes)
        for index in 0..<count { bytes += little(UInt16(bitPattern: sample(index, level: 1, rate: rate))) }
        return bytes
    }

    /// Returns consecutive passages, each some seconds of the tone at a level from 0, which is silence, to 1, with
    /// white noise of this root mean square, where 1 is full scale, throughout.
    package static func passages(
        _ parts: [(seconds: Double, level: Double)], noise: Double = 0, rate: Int = rate
    ) -> [UInt8] {
        var random = Noise()
        let loudness = noise * 32_768
        let total = parts.reduce(0) { $0 + Int($1.seconds * Double(rate)) }
        var bytes = wav(seconds: 0, declared: Double(total) / Double(rate), rate: rate)
        for part in parts {
            for index in 0..<Int(part.seconds * Double(rate)) {
                let hiss = loudness == 0 ? 0 : Int16((random.next() * loudness).rounded())
                bytes += little(UInt16(bitPattern: sample(index, level: part.level, rate: rate) + hiss))
            }
        }
        return bytes
    }

    /// Deterministic white noise with a root mean square of 1, nearly normally distributed.
    private struct Noise {
        private var state: UInt32 = 1

        mutating func next() -> Double {
            // The sum of twelve uniform distributions with a variance of 1/12 each.
            (0..<12).reduce(0) { sum, _ in
                state = state &* 1_664_525 &+ 1_013_904_223
                return sum + Double(state >> 8) / Double(1 << 24) - 0.5
            }
        }
    }

    /// Returns a sample of a triangle wave of 100 Hz.
    private static func sample(_ index: Int, level: Double, rate: Int) -> Int16 {
        let period = rate / 100
        let phase = index % period
        let height = phase < period / 2 ? phase : period - phase
        return Int16(Double(height * 16_000 / period - 4_000) * level)
    }

    /// Returns MPEG 1 layer III frames of silence, 128 kbit/s at 44.1 kHz, without a header that declares a length.
    package static func mp3(seconds: Double) -> [UInt8] {
        let frame: [UInt8] = [0xff, 0xfb, 0x90, 0xc4] + [UInt8](repeating: 0, count: 413)
        let count = Int((seconds * 44_100 / 1_152).rounded())
        return Array((0..<count).map { _ in frame }.joined())
    }

    /// Returns the same frames with a header that declares `declared` seconds, whatever the actual length.
    package static func mp3(seconds: Double, declared: Double) -> [UInt8] {
        let count = UInt32((declared * 44_100 / 1_152).rounded())
        // The frame is mono, with 17 bytes of side information; of the fields it has only the number of frames.
        let tag = Array("Info".utf8) + [0, 0, 0, 1] + withUnsafeBytes(of: count.bigEndian) { Array($0) }
        let header = [0xff, 0xfb, 0x90, 0xc4] + [UInt8](repeating: 0, count: 17) + tag
        return header + [UInt8](repeating: 0, count: 417 - header.count) + mp3(seconds: seconds)
    }

    /// Returns MPEG 2.5 layer III frames of silence, 8 kbit/s at 8 kHz: 1 kB per second.
    package static func slowMP3(seconds: Double) -> [UInt8] {
        let frame: [UInt8] = [0xff, 0xe3, 0x18, 0xc4] + [UInt8](repeating: 0, count: 68)
        let count = Int((seconds * 8_000 / 576).rounded())
        return Array((0..<count).map { _ in frame }.joined())
    }

    private static func little(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }
}
