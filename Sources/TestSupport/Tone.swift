/// Audio made for a test: a tone as a mono WAV of 16 bits.
public enum Tone {
    /// Samples a second.
    public static let rate = 8_000

    /// The whole file. `declared` puts another length into its header than it has.
    public static func wav(seconds: Double, declared: Double? = nil) -> [UInt8] {
        let count = Int(seconds * Double(rate))
        let declaredBytes = UInt32((declared ?? seconds) * Double(rate)) * 2
        var bytes: [UInt8] = Array("RIFF".utf8) + little(declaredBytes + 36) + Array("WAVEfmt ".utf8)
        bytes += little(UInt32(16)) + little(UInt16(1)) + little(UInt16(1)) + little(UInt32(rate))
        bytes += little(UInt32(rate * 2)) + little(UInt16(2)) + little(UInt16(16))
        bytes += Array("data".utf8) + little(declaredBytes)
        for index in 0..<count { bytes += little(UInt16(bitPattern: sample(index, level: 1))) }
        return bytes
    }

    /// Passages one after the other, each so many seconds of the tone at a level from 0, which is silence, to 1.
    public static func passages(_ parts: [(seconds: Double, level: Double)]) -> [UInt8] {
        let total = parts.reduce(0) { $0 + Int($1.seconds * Double(rate)) }
        var bytes = Array(wav(seconds: 0, declared: Double(total) / Double(rate)))
        for part in parts {
            for index in 0..<Int(part.seconds * Double(rate)) {
                bytes += little(UInt16(bitPattern: sample(index, level: part.level)))
            }
        }
        return bytes
    }

    /// A triangle of 100 Hz needs no library.
    private static func sample(_ index: Int, level: Double) -> Int16 {
        let period = rate / 100
        let phase = index % period
        let height = phase < period / 2 ? phase : period - phase
        return Int16(Double(height * 200 - 4_000) * level)
    }

    /// MPEG 1 layer III frames of silence, 128 kbit/s at 44.1 kHz, without a header that declares a length.
    public static func mp3(seconds: Double) -> [UInt8] {
        let frame: [UInt8] = [0xff, 0xfb, 0x90, 0xc4] + [UInt8](repeating: 0, count: 413)
        let count = Int((seconds * 44_100 / 1_152).rounded())
        return Array((0..<count).map { _ in frame }.joined())
    }

    /// The same with a header that declares `declared` seconds, whatever follows.
    public static func mp3(seconds: Double, declared: Double) -> [UInt8] {
        let count = UInt32((declared * 44_100 / 1_152).rounded())
        // One frame of a single channel, whose side information takes 17 bytes; of the fields only the number of frames.
        let tag = Array("Info".utf8) + [0, 0, 0, 1] + withUnsafeBytes(of: count.bigEndian) { Array($0) }
        let header = [0xff, 0xfb, 0x90, 0xc4] + [UInt8](repeating: 0, count: 17) + tag
        return header + [UInt8](repeating: 0, count: 417 - header.count) + mp3(seconds: seconds)
    }

    /// MPEG 2.5 layer III frames of silence, 8 kbit/s at 8 kHz: 1 kB a second.
    public static func slowMP3(seconds: Double) -> [UInt8] {
        let frame: [UInt8] = [0xff, 0xe3, 0x18, 0xc4] + [UInt8](repeating: 0, count: 68)
        let count = Int((seconds * 8_000 / 576).rounded())
        return Array((0..<count).map { _ in frame }.joined())
    }

    private static func little(_ value: some FixedWidthInteger) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { Array($0) }
    }
}
