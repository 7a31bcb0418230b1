import CConnectionGuard
import LibC
import TestSupport
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

    /// Returns the guard’s verdict on these bytes, which arrive in pieces of `piece` bytes.
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

    @Test func `an endless message closes its connection at the frame limit`() {
        let frames = (0..<4_096).flatMap { _ in Self.frame(1, more: true) }
        #expect(Self.read(Self.greeting + frames))
        #expect(!Self.read(Self.greeting + frames + Self.frame(1, more: true)))
    }

    @Test func `an endless message closes its connection at the byte limit`() {
        let frame = Self.frame(1 << 20, more: true)
        #expect(Self.read(Self.greeting + (0..<8).flatMap { _ in frame }, piece: 1 << 20))
        #expect(!Self.read(Self.greeting + (0..<9).flatMap { _ in frame }, piece: 1 << 20))
    }

    @Test func `a frame that announces too many bytes closes its connection at the header`() {
        #expect(!Self.read(Self.greeting + [2, 0, 0, 0, 0, 1, 0, 0, 0]))
        #expect(!Self.read(Self.greeting + [3, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]))
    }

    @Test func `a subscriber cannot add subscriptions without limit`() {
        let subscriptions = (0..<4_096).flatMap { _ in Self.frame(10) }
        #expect(Self.read(Self.greeting + subscriptions, publisher: true))
        #expect(!Self.read(Self.greeting + subscriptions + Self.frame(10), publisher: true))
        #expect(Self.read(Self.greeting + subscriptions + Self.frame(10)))
    }

    @Test(arguments: [UInt8](arrayLiteral: 9, 6))
    func `a subscriber cannot add subscriptions without limit by commands`(_ nameLength: UInt8) {
        let command: [UInt8] = [4, 10, nameLength] + [UInt8](repeating: 65, count: 9)
        let commands = (0..<4_096).flatMap { _ in command }
        #expect(Self.read(Self.greeting + commands, publisher: true, piece: 7))
        #expect(!Self.read(Self.greeting + commands + command, publisher: true, piece: 7))
    }

    @Test func `a few long subscriptions can’t exhaust the memory of the bus`() {
        let subscriptions = (0..<128).flatMap { _ in Self.frame(512) }
        #expect(Self.read(Self.greeting + subscriptions, publisher: true))
        #expect(!Self.read(Self.greeting + subscriptions + Self.frame(1), publisher: true))
    }

    @Test func `a subscriber may ping without limit`() {
        let ping: [UInt8] = [4, 7, 4] + Array("PING".utf8) + [0, 1]
        let pings = (0..<10_000).flatMap { _ in ping }
        #expect(Self.read(Self.greeting + pings, publisher: true, piece: 11))
    }

    @Test(arguments: [[0x01, 0x00], [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7e], [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 1]])
    func `a peer that uses a protocol other than ZMTP 3 is disconnected`(_ bytes: [UInt8]) {
        #expect(!Self.read(bytes))
    }

    @Test func `arbitrary bytes are parsed within the bounds of the state`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 0...400, using: &random)).map { _ in UInt8.random(in: .min ... .max) }
            var frames = lockstep_frames()
            _ = Self.read(Self.greeting + bytes, &frames, piece: Int.random(in: 1...50, using: &random))
            #expect(frames.greeting == 64 && frames.have <= 9 && frames.left <= 9 << 20, "\(bytes)")
        }
    }

    // MARK: A running bus

    /// Builds with a sanitizer have no guard.
    private static let hasGuard = lockstep_guard_start(64, 0) != 0

    /// Checks that the bus answers a service.
    private static func expectService(_ queue: inout Socket, epoch: UInt64) throws {
        try Wire.send(&queue, BusHeader(.ping, generation: 1, epoch: epoch))
        _ = try Wire.next(&queue, .pong)
    }

    @Test(.enabled(if: hasGuard, "this build has no connection guard"), .timeLimit(.minutes(2)))
    func `a message of 320 MiB closes only its own connection`() async throws {
        try await LiveBus.with { live in
            var queue = try live.serviceSocket("queue#1")
            let epoch = try Wire.serve(&queue, "queue", 1)
            let stranger = try RawPeer(of: live)
            try stranger.shakeHands()
            let part = Self.frame(1 << 20, more: true)
            var sent = 0
            while sent < 320 << 20, stranger.send(part) { sent += 1 << 20 }
            // The limit is 8 MiB; further bytes are in the system’s buffers.
            #expect((7 << 20..<320 << 20).contains(sent), "\(sent) bytes were taken")
            try Self.expectService(&queue, epoch: epoch)
        }
    }

    @Test(.timeLimit(.minutes(2)))
    func `a bus that received garbage still serves`() async throws {
        var random = SystemRandomNumberGenerator()
        try await LiveBus.with { live in
            var queue = try live.serviceSocket("queue#1")
            let epoch = try Wire.serve(&queue, "queue", 1)
            for number in 0..<60 {
                let socket = ["cli.sock", "svc.sock", "pub.sock"][number % 3]
                let stranger = try RawPeer(of: live, at: socket)
                // `pub.sock` doesn’t accept a DEALER.
                if number % 2 == 0, socket != "pub.sock" { try stranger.shakeHands() }
                let count = Int.random(in: 1...400, using: &random)
                _ = stranger.send((0..<count).map { _ in UInt8.random(in: .min ... .max) })
            }
            try Self.expectService(&queue, epoch: epoch)
        }
    }
}

/// A raw socket connected to a bus. It sends a handwritten ZMTP handshake or arbitrary other bytes.
private struct RawPeer: ~Copyable {
    private struct Lost: Error { let step: String }

    /// The greeting of version 3.0 without encryption, followed by READY of a DEALER.
    private static let greeting: [UInt8] =
        [0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0] + Array("NULL".utf8) + [UInt8](repeating: 0, count: 48)
    private static let ready: [UInt8] = {
        let body = [5] + Array("READY".utf8) + [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6] + Array("DEALER".utf8)
        return [4, UInt8(body.count)] + body
    }()

    private let descriptor: Int32

    init(of live: LiveBus, at name: String = "cli.sock") throws {
        #if canImport(Glibc)
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
        descriptor = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = Array((live.folder.path + "/run/" + name).utf8)
        withUnsafeMutableBytes(of: &address.sun_path) { bytes in
            for (index, byte) in path.enumerated() where index < bytes.count - 1 { bytes[index] = byte }
        }
        let outcome = withUnsafePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard outcome == 0 else { throw Lost(step: "connecting to \(path)") }
    }

    deinit { _ = close(descriptor) }

    /// Performs the handshake until the bus has sent READY.
    func shakeHands() throws {
        guard send(Self.greeting), try receive(64).count == 64, send(Self.ready) else { throw Lost(step: "greeting") }
        let head = try receive(2)
        _ = try receive(Int(head[1]))
    }

    /// Returns whether the connection is still open.
    func send(_ bytes: [UInt8]) -> Bool {
        var sent = 0
        while sent < bytes.count {
            let count = bytes[sent...].withUnsafeBytes {
                Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { return false }
            sent += count
        }
        return true
    }

    private func receive(_ count: Int) throws -> [UInt8] {
        var bytes: [UInt8] = []
        while bytes.count < count {
            var more = [UInt8](repeating: 0, count: count - bytes.count)
            let got = recv(descriptor, &more, more.count, 0)
            guard got > 0 else { throw Lost(step: "receiving") }
            bytes += more[..<got]
        }
        return bytes
    }
}
