import Foundation
import NIOConcurrencyHelpers
import TestSupport
import Testing

/// Records the output of a sink from its first sample.
final class SoundRecorder: Sendable {
    /// The number of samples per second.
    static let rate = 8_000

    private let server: SoundServer
    private let samples = Awaited<[Float]>([])
    private let reader: DescriptorReader
    private let pid: pid_t

    /// Records a sink until `end()`; returns once the first samples have arrived.
    static func of(_ sink: String, on server: SoundServer) async throws -> SoundRecorder {
        let recorder = try SoundRecorder(sink, server)
        try await recorder.until("the sink \(sink) runs") { !$0.isEmpty }
        return recorder
    }

    private init(_ sink: String, _ server: SoundServer) throws {
        self.server = server
        let (pid, output) = try server.launch(
            "parec",
            [
                "--device=\(sink).monitor", "--raw", "--format=float32le", "--rate=\(Self.rate)", "--channels=1",
                "--latency-msec=20",
            ])
        self.pid = pid
        // A read may end within a sample.
        let rest = NIOLockedValueBox<[UInt8]>([])
        let samples = self.samples
        reader = DescriptorReader(
            output,
            handle: { bytes in
                let whole = rest.withLockedValue { rest in
                    let all = rest + bytes
                    let count = all.count / 4 * 4
                    rest = Array(all[count...])
                    return Array(all[..<count])
                }
                samples.change { $0 += Self.floats(whole) }
            }, ended: {})
    }

    private static func floats(_ bytes: [UInt8]) -> [Float] {
        bytes.withUnsafeBytes { bytes in
            (0..<bytes.count / 4).map { bytes.loadUnaligned(fromByteOffset: $0 * 4, as: Float.self) }
        }
    }

    /// Ends the recording.
    func end() {
        kill(-pid, SIGKILL)
        reader.close()
        _ = ChildProgram.reap(pid)
    }

    /// The number of samples.
    var count: Int { samples.now.count }
    /// The recorded samples.
    var recorded: [Float] { samples.now }

    /// Waits until the samples meet a condition.
    /// - Returns: the samples that met it.
    @discardableResult
    func until(_ what: String, _ condition: @escaping @Sendable ([Float]) -> Bool) async throws -> [Float] {
        if let met = await samples.first(within: .seconds(60), where: condition) { return met }
        let recorded = samples.now
        let levels = Sweep.windows(recorded).suffix(40).map { $0.position.map { String(format: "%.2f", $0) } ?? "-" }
        throw ProcessFleet.Unexpected(
            description: """
                waited for: \(what); recorded \(recorded.count) samples, at last: \(levels); \(server.stateDescription)
                """)
    }

    /// Waits until the sweep is audible for `seconds` without a gap, after the first `start` samples.
    @discardableResult
    func untilHeard(seconds: Double = 0.5, from start: Int = 0) async throws -> [Float] {
        let wanted = Int(seconds / Sweep.window)
        return try await until("\(seconds) s of sound") { samples in
            guard samples.count > start + Int(seconds * Double(Self.rate)) else { return false }
            return Sweep.windows(samples[start...].suffix(Int((seconds + 0.2) * Double(Self.rate)))).suffix(wanted)
                .allSatisfy { $0.position != nil }
        }
    }

    /// Waits for `seconds` of further samples, whatever they contain.
    @discardableResult
    func more(seconds: Double) async throws -> ArraySlice<Float> {
        let start = count
        let end = start + Int(seconds * Double(Self.rate))
        return try await until("\(seconds) s of samples") { $0.count >= end }[start..<end]
    }
}

/// A tone that rises by 20 Hz per second, so its pitch identifies the position in the file.
enum Sweep {
    /// The length of a window in which the pitch is measured, in seconds.
    static let window = 0.05
    private static let start = 300.0
    private static let rise = 20.0
    /// The level below which a window counts as silent.
    private static let quiet: Float = 0.005

    /// Returns a mono WAV file of 16 bits.
    static func wav(seconds: Double) -> [UInt8] {
        let rate = Double(SoundRecorder.rate)
        let count = Int(seconds * rate)
        func little(_ value: some FixedWidthInteger) -> [UInt8] {
            withUnsafeBytes(of: value.littleEndian) { Array($0) }
        }
        var bytes = Array("RIFF".utf8) + little(UInt32(36 + count * 2)) + Array("WAVEfmt ".utf8)
        bytes += little(UInt32(16)) + little(UInt16(1)) + little(UInt16(1)) + little(UInt32(rate))
        bytes += little(UInt32(rate * 2)) + little(UInt16(2)) + little(UInt16(16))
        bytes += Array("data".utf8) + little(UInt32(count * 2))
        for index in 0..<count {
            let time = Double(index) / rate
            let phase = 2 * Double.pi * (start * time + rise * time * time / 2)
            bytes += little(Int16(8_000 * sin(phase)))
        }
        return bytes
    }

    /// A window of a recording.
    struct Window: Sendable {
        /// The time in the recording, in seconds.
        var time: Double
        /// The position in the file, in seconds; nil if there is no sound.
        var position: Double?
    }

    /// Returns the position in each window.
    static func windows(_ samples: some RandomAccessCollection<Float>) -> [Window] {
        let all = Array(samples)
        let length = Int(window * Double(SoundRecorder.rate))
        return stride(from: 0, to: all.count - length + 1, by: length).map { offset in
            Window(
                time: Double(offset) / Double(SoundRecorder.rate) + window / 2,
                position: position(all[offset..<offset + length]))
        }
    }

    /// Part of a recording in which the file plays without a gap, from its first to its last window.
    struct Stretch: Sendable, CustomStringConvertible {
        /// The start in the recording, in seconds.
        var time: Double
        /// The first and last position in the file, in seconds.
        var from: Double
        var to: Double
        var description: String { String(format: "%.2f–%.2f at %.2f s", from, to, time) }
    }

    /// Returns the parts of the file that play without a gap. Windows in which the sound begins or ends have no
    /// defined pitch and are omitted, so two parts may be joined.
    static func stretches(_ samples: [Float]) -> [Stretch] {
        var found: [Stretch] = []
        var last: Double?
        for window in windows(samples) {
            defer { last = window.position }
            guard let position = window.position, let last, abs(position - last - Self.window) < 0.03 else { continue }
            if found.last?.to == last {
                found[found.count - 1].to = position
            } else {
                found.append(Stretch(time: window.time - Self.window, from: last, to: position))
            }
        }
        return found.filter { $0.to - $0.from > Self.window + 0.03 }
    }

    /// Returns the position in the file in the middle of `samples`, from the distance of the zero crossings.
    private static func position(_ samples: ArraySlice<Float>) -> Double? {
        guard samples.allSatisfy({ $0.isFinite }), let top = samples.max(), top > quiet else { return nil }
        var crossings: [Double] = []
        for (index, (before, after)) in zip(samples.indices, zip(samples, samples.dropFirst())) where before < 0 {
            guard after >= 0 else { continue }
            crossings.append(Double(index) + Double(-before / (after - before)))
        }
        guard let first = crossings.first, let last = crossings.last, crossings.count > 4 else { return nil }
        let frequency = Double(crossings.count - 1) * Double(SoundRecorder.rate) / (last - first)
        return (frequency - start) / rise
    }
}
