import CConnectionGuard
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

@Suite struct ConnectionGuardTests {
    private static let greeting: [UInt8] =
        [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 1] + [UInt8](repeating: 0, count: 52)

    private static func frame(_ count: Int, more: Bool = false, command: Bool = false) -> [UInt8] {
        let flags: UInt8 = (more ? 1 : 0) | (command ? 4 : 0)
        guard count > 255 else { return [flags, UInt8(count)] + [UInt8](repeating: 7, count: count) }
        let length = (0..<8).map { UInt8(truncatingIfNeeded: count >> (56 - 8 * $0)) }
        return [flags | 2] + length + [UInt8](repeating: 7, count: count)
    }

    /// What the guard says to these bytes, which come in pieces of any size.
    private static func read(_ bytes: [UInt8], publisher: Bool = false, piece: Int = 1_000) -> Bool {
        var frames = lockstep_frames()
        frames.is_publisher = publisher ? 1 : 0
        return read(bytes, &frames, piece: piece)
    }

    private static func read(_ bytes: [UInt8], _ frames: inout lockstep_frames, piece: Int = 1_000) -> Bool {
        for start in stride(from: 0, to: bytes.count, by: piece) {
            let part = bytes[start..<min(start + piece, bytes.count)]
            let result = part.withUnsafeBufferPointer { lockstep_frames_read(&frames, $0.baseAddress, $0.count) }
            if result != 0 { return false }
        }
        return true
    }

    @Test(arguments: [1, 2, 3, 7, 64, 65, 1_000_000])
    func `messages within the limits pass in pieces of any size`(_ piece: Int) {
        let message = frameRun(40) + Self.frame(300_000)
        let bytes = Self.greeting + Self.frame(30, command: true) + message + message + Self.frame(0)
        var frames = lockstep_frames()
        #expect(Self.read(bytes, &frames, piece: piece))
        #expect(frames.bytes == 0 && frames.frames == 0 && frames.left == 0)
    }

    private func frameRun(_ count: Int) -> [UInt8] { (0..<count).flatMap { Self.frame($0, more: true) } }

    @Test func `a message that never ends is cut off by its frames`() {
        let frames = (0..<4_096).flatMap { _ in Self.frame(1, more: true) }
        #expect(Self.read(Self.greeting + frames))
        #expect(!Self.read(Self.greeting + frames + Self.frame(1, more: true)))
    }

    @Test func `a message that never ends is cut off by its bytes`() {
        let frame = Self.frame(1 << 20, more: true)
        #expect(Self.read(Self.greeting + (0..<8).flatMap { _ in frame }, piece: 1 << 20))
        #expect(!Self.read(Self.greeting + (0..<9).flatMap { _ in frame }, piece: 1 << 20))
    }

    @Test func `a frame that announces too much is cut off at its header`() {
        #expect(!Self.read(Self.greeting + [2, 0, 0, 0, 0, 1, 0, 0, 0]))
        #expect(!Self.read(Self.greeting + [3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
    }

    @Test func `a subscriber cannot subscribe without end`() {
        let subscriptions = (0..<4_096).flatMap { _ in Self.frame(10) }
        #expect(Self.read(Self.greeting + subscriptions, publisher: true))
        #expect(!Self.read(Self.greeting + subscriptions + Self.frame(10), publisher: true))
        #expect(Self.read(Self.greeting + subscriptions + Self.frame(10)))
    }

    @Test(arguments: [UInt8](arrayLiteral: 9, 6))
    func `a subscriber cannot subscribe without end by commands`(_ nameLength: UInt8) {
        let command: [UInt8] = [4, 10, nameLength] + [UInt8](repeating: 65, count: 9)
        let commands = (0..<4_096).flatMap { _ in command }
        #expect(Self.read(Self.greeting + commands, publisher: true, piece: 7))
        #expect(!Self.read(Self.greeting + commands + command, publisher: true, piece: 7))
    }

    @Test func `few long subscriptions cannot fill the bus's memory`() {
        let subscriptions = (0..<128).flatMap { _ in Self.frame(512) }
        #expect(Self.read(Self.greeting + subscriptions, publisher: true))
        #expect(!Self.read(Self.greeting + subscriptions + Self.frame(1), publisher: true))
    }

    @Test func `a subscriber may ping as often as it likes`() {
        let ping: [UInt8] = [4, 7, 4] + Array("PING".utf8) + [0, 1]
        let pings = (0..<10_000).flatMap { _ in ping }
        #expect(Self.read(Self.greeting + pings, publisher: true, piece: 11))
    }

    @Test(arguments: [[0x01, 0x00], [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7e], [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1]])
    func `a peer that does not speak ZMTP 3 is cut off`(_ bytes: [UInt8]) {
        #expect(!Self.read(bytes))
    }

    @Test func `bytes without sense never harm the guard`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...400, using: &random)).map { _ in UInt8.random(in: .min ... .max) }
            _ = Self.read(Self.greeting + bytes, piece: Int.random(in: 1...50, using: &random))
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a message of 320 MiB ends its connection and no other`() async throws {
        try await LiveBus.with { live in
            // A build with a sanitizer has no guard.
            guard lockstep_guard_start(64, 0) != 0 else { return }
            var queue = try live.serviceSocket("queue#1")
            let epoch = try Wire.serve(&queue, "queue", 1)
            let before = lockstep_guard_count().ended
            var stranger = try live.clientSocket()
            let part = Frame([UInt8](repeating: 1, count: 8 << 20))
            _ = try stranger.send(Array(repeating: part, count: 40), wait: true)
            while lockstep_guard_count().ended == before { try await Task.sleep(for: .milliseconds(5)) }
            try Wire.send(&queue, BusHeader(.ping, generation: 1, epoch: epoch))
            _ = try Wire.next(&queue, .pong)
        }
    }
}
