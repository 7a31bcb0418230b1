import BusKit
import LibC
import Logging
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

@testable import BusBroker

/// A bus in its own folder, and raw sockets connected to it.
final class LiveBus: Sendable {
    let folder: TemporaryFolder
    let endpoints: BusEndpoints
    let bus: BusBroker
    let context: ZeroMQContext

    static let receiveTimeout = SocketOption.receiveTimeout(30_000)

    init(
        folder: TemporaryFolder? = nil, limits: BrokerLimits = BrokerLimits(),
        clock: @escaping @Sendable () -> Timestamp = { SystemClocks.wall() }
    ) throws {
        self.folder = try folder ?? TemporaryFolder()
        let path = self.folder.path
        endpoints = try BusEndpoints(runDirectory: path + "/run")
        bus = BusBroker(
            runDirectory: path + "/run", stateDirectory: path + "/state", limits: limits,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, wallClock: clock)
        context = try ZeroMQContext()
    }

    /// Runs the body with the bus started, and closes everything afterwards.
    static func with(
        limits: BrokerLimits = BrokerLimits(), _ body: (LiveBus) async throws -> Void
    ) async throws {
        let live = try LiveBus(limits: limits)
        try await live.bus.start()
        do { try await body(live) } catch {
            await live.end()
            throw error
        }
        await live.end()
    }

    func end() async {
        await bus.shutdown()
        context.terminate()
    }

    func serviceSocket(_ peer: String) throws -> Socket {
        var socket = try Socket(
            .dealer, in: context,
            options: [Self.receiveTimeout, .routingID(Array(peer.utf8)), .immediate(true), .reconnectInterval(10)])
        try socket.connect(endpoints.services)
        return socket
    }

    func clientSocket(options: [SocketOption] = []) throws -> Socket {
        var socket = try Socket(.dealer, in: context, options: [Self.receiveTimeout, .reconnectInterval(10)] + options)
        try socket.connect(endpoints.clients)
        return socket
    }

    func subscriber(_ topics: [String], options: [SocketOption] = []) throws -> Socket {
        var socket = try Socket(
            .subscribe, in: context, options: [Self.receiveTimeout, .reconnectInterval(10)] + options)
        for topic in topics { try socket.set(.subscribe(Array(topic.utf8))) }
        try socket.connect(endpoints.stream)
        return socket
    }
}

/// Exchanges whole messages with the bus. The header is the first frame except on `pub.sock`.
enum Wire {
    struct Missing: Error { let wanted: MessageKind }

    static func send(_ socket: inout Socket, _ header: BusHeader, _ frames: Frame...) throws {
        let outcome = try socket.send([Frame(header.encoded)] + frames, wait: true)
        #expect(outcome == .sent)
    }

    /// Returns the next message of this kind and drops others.
    static func next(
        _ socket: inout Socket, _ kind: MessageKind, headerFrame: Int = 0
    ) throws -> (header: BusHeader, frames: [Frame]) {
        while let message = try socket.receive(wait: true) {
            guard message.count > headerFrame else { continue }
            let header = try BusHeader(decoding: message[headerFrame].bytes)
            if header.kind == kind { return (header, message) }
        }
        throw Missing(wanted: kind)
    }

    /// Registers a service with HELLO and READY, and returns the epoch.
    static func serve(_ socket: inout Socket, _ name: String, _ generation: UInt32) throws -> UInt64 {
        try send(&socket, BusHeader(.hello, generation: generation), Frame(name))
        let epoch = try next(&socket, .welcome).header.epoch
        try send(&socket, BusHeader(.ready, generation: generation, epoch: epoch))
        return epoch
    }

    /// Waits for SYNC, after which the subscriptions are in force.
    static func join(_ socket: inout Socket, nonce: String) throws -> BusHeader {
        let sync = try next(&socket, .sync, headerFrame: 1)
        #expect(sync.frames[0] == Frame("sync/\(nonce)"))
        return sync.header
    }
}

@Suite(.serialized) struct BusBrokerTests {
    private static let nonce = "0123456789abcdefgh"

    @Test func `a publish reaches an observer and is acknowledged`() async throws {
        try await LiveBus.with { live in
            var observer = try live.subscriber(["stream/", "bus/heartbeat", "sync/\(Self.nonce)"])
            let sync = try Wire.join(&observer, nonce: Self.nonce)
            #expect(sync.epoch == live.bus.epoch)
            var queue = try live.serviceSocket("queue#7")
            let epoch = try Wire.serve(&queue, "queue", 7)
            try Wire.send(
                &queue, BusHeader(.put, generation: 7, epoch: epoch, originSequence: 1), "stream/queue/main", "whole")
            let acknowledgement = try Wire.next(&queue, .acknowledge)
            var seen: [StreamPosition] = []
            while seen.last?.sequence ?? 0 < acknowledgement.header.sequence {
                let event = try Wire.next(&observer, .put, headerFrame: 1)
                seen.append(StreamPosition(epoch: event.header.epoch, sequence: event.header.sequence))
                if event.frames[0] == "stream/queue/main" { #expect(event.frames[2] == "whole") }
            }
            #expect(seen.map(\.sequence) == Array(1...acknowledgement.header.sequence))
        }
    }

    // The client joins while the stream is active: SYNC first, then FETCH, and no event is missing.
    @Test func `joining an active stream loses nothing`() async throws {
        try await LiveBus.with { live in
            var queue = try live.serviceSocket("queue#1")
            let epoch = try Wire.serve(&queue, "queue", 1)
            var origin: UInt64 = 0
            func publish(_ count: Int) throws {
                for _ in 0..<count {
                    origin += 1
                    try Wire.send(
                        &queue, BusHeader(.event, generation: 1, epoch: epoch, originSequence: origin),
                        "stream/queue/e", "x")
                    while try queue.receive() != nil {}
                }
            }
            for round in 0..<40 {
                let nonce = "nonce0123456789abc\(round)"
                try publish(20)
                var observer = try live.subscriber(["stream/", "sync/\(nonce)"])
                try publish(20)
                let sync = try Wire.join(&observer, nonce: nonce)
                try publish(20)
                var client = try live.clientSocket()
                try Wire.send(&client, BusHeader(.fetch, epoch: sync.epoch, sequence: sync.sequence + 1), Frame(nonce))
                var head = sync.sequence
                var more = true
                while more {
                    let chunk = try Wire.next(&client, .replay)
                    for entry in stride(from: 2, to: chunk.frames.count, by: 3) {
                        let header = try BusHeader(decoding: chunk.frames[entry + 1].bytes)
                        #expect(header.sequence == head + 1)
                        head = header.sequence
                    }
                    more = chunk.header.flags.contains(.more)
                }
                try publish(5)
                let goal = head + 5
                while head < goal {
                    let event = try Wire.next(&observer, .event, headerFrame: 1).header
                    guard event.sequence > head else { continue }
                    try #require(event.sequence == head + 1)
                    head = event.sequence
                }
                observer.close()
                client.close()
            }
        }
    }

    @Test func `a request reaches its service and the reply its client`() async throws {
        try await LiveBus.with { live in
            var queue = try live.serviceSocket("queue#1")
            _ = try Wire.serve(&queue, "queue", 1)
            // The PONG shows that READY was handled.
            try Wire.send(&queue, BusHeader(.ping, generation: 1, epoch: live.bus.epoch ?? 0))
            _ = try Wire.next(&queue, .pong)
            var client = try live.clientSocket()
            let id = Frame([UInt8](repeating: 5, count: 16))
            let deadline = MonotonicClock.nanoseconds() + 20_000_000_000
            try Wire.send(&client, BusHeader(.request, time: deadline), id, "queue", "test", "work")
            let request = try Wire.next(&queue, .request)
            #expect(Array(request.frames.dropFirst()) == [id, "test", "work"])
            let ticket = request.header.originSequence
            try Wire.send(&queue, BusHeader(.reply, sequence: 3, originSequence: ticket), id, "done")
            let reply = try Wire.next(&client, .reply)
            #expect(reply.frames.dropFirst() == [id, "done"] && reply.header.sequence == 3)
        }
    }

    @Test func `a service whose socket is closed is unavailable at once`() async throws {
        try await LiveBus.with { live in
            var queue = try live.serviceSocket("queue#1")
            _ = try Wire.serve(&queue, "queue", 1)
            try Wire.send(&queue, BusHeader(.ping, generation: 1, epoch: live.bus.epoch ?? 0))
            _ = try Wire.next(&queue, .pong)
            queue.close()
            var client = try live.clientSocket()
            var code = ""
            // The bus may detect the disconnection only after the first request was written to it.
            for attempt in UInt8(0)..<30 where code != "unavailable" {
                let id = Frame([UInt8](repeating: attempt, count: 16))
                let deadline = MonotonicClock.nanoseconds() + 100_000_000
                try Wire.send(&client, BusHeader(.request, time: deadline), id, "queue", "test", "")
                let failure = try Wire.next(&client, .failure)
                code = String(decoding: failure.frames[2].bytes.dropFirst(2).prefix(11), as: UTF8.self)
            }
            #expect(code == "unavailable")
        }
    }

    @Test(arguments: MalformedCase.all)
    func `malformed messages on any socket have no effect on others`(_ malformed: MalformedCase) async throws {
        try await LiveBus.with { live in
            var sender: Socket
            switch malformed.door {
            case .service: sender = try live.serviceSocket("queue#1")
            case .client: sender = try live.clientSocket()
            case .subscription:
                sender = try Socket(.extendedSubscribe, in: live.context, options: [LiveBus.receiveTimeout])
                try sender.connect(live.endpoints.stream)
            }
            if !malformed.frames.isEmpty {
                _ = try sender.send(malformed.frames, wait: malformed.door != .subscription)
            }
            // The bus still serves others, and the sender too.
            var feeds = try live.serviceSocket("feeds#1")
            _ = try Wire.serve(&feeds, "feeds", 1)
            var client = try live.clientSocket()
            try Wire.send(&client, BusHeader(.fetch), Frame(Self.nonce))
            _ = try Wire.next(&client, .snapshot)
            if malformed.door == .service { _ = try Wire.serve(&sender, "queue", 1) }
            sender.close()
        }
    }

    @Test func `a slow consumer never delays other consumers, and its buffers are bounded`() async throws {
        try await LiveBus.with { live in
            var stalled = try live.subscriber(["stream/"], options: [.receiveHighWaterMark(10)])
            var queue = try live.serviceSocket("queue#1")
            let epoch = try Wire.serve(&queue, "queue", 1)
            let payload = Frame([UInt8](repeating: 1, count: 16_384))
            let before = ThisProcess.residentMemory
            var acknowledged: UInt64 = 0
            for origin in UInt64(1)...20_000 {
                try Wire.send(
                    &queue, BusHeader(.event, generation: 1, epoch: epoch, originSequence: origin), "stream/queue/e",
                    payload)
                while origin - acknowledged >= 200 {
                    acknowledged = try Wire.next(&queue, .acknowledge).header.originSequence
                }
            }
            while acknowledged < 20_000 {
                acknowledged = try Wire.next(&queue, .acknowledge).header.originSequence
            }
            // 320 MiB were published; the ring holds 16 MiB, and 1,000 messages of 16 KiB wait for the stalled client.
            #expect(ThisProcess.residentMemory - before < 120 << 20)
            var received = 0
            while try stalled.receive() != nil { received += 1 }
            #expect(received < 20_000)
        }
    }

    @Test func `a second bus in the same folder is refused`() async throws {
        try await LiveBus.with { live in
            let second = try LiveBus(folder: live.folder)
            let failure = await #expect(throws: Failure.self) { try await second.bus.start() }
            #expect(failure?.known == .alreadyRunning)
            await second.end()
            var client = try live.clientSocket()
            try Wire.send(&client, BusHeader(.fetch), Frame(Self.nonce))
            _ = try Wire.next(&client, .snapshot)
        }
    }

    @Test func `the sockets of a crashed bus are replaced`() async throws {
        let live = try LiveBus()
        try LockstepHome.createFolder(live.folder.path + "/run")
        for endpoint in live.endpoints.all { try SmallFile.replace(endpoint.path, with: "stale") }
        try await live.bus.start()
        var client = try live.clientSocket()
        try Wire.send(&client, BusHeader(.fetch), Frame(Self.nonce))
        _ = try Wire.next(&client, .snapshot)
        client.close()
        await live.end()
    }

    @Test func `the epoch increases even if the clock was set back`() async throws {
        let times: [Int64] = [5_000, 4_000, 4_000, 9_000, -1]
        let folder = try TemporaryFolder()
        var epochs: [UInt64] = []
        for time in times {
            let live = try LiveBus(folder: folder, clock: { Timestamp(milliseconds: time) })
            try await live.bus.start()
            epochs.append(try #require(live.bus.epoch))
            await live.end()
        }
        #expect(epochs == [5_000, 5_001, 5_002, 9_000, 9_001])
    }

    @Test(arguments: ["", "garbage", "-5", "99999999999999999999999"])
    func `an invalid epoch file is ignored`(_ content: String) throws {
        let live = try LiveBus()
        let file = EpochFile(path: live.folder.path + "/bus.epoch")
        try SmallFile.replace(file.path, with: content)
        #expect(try file.next(now: Timestamp(milliseconds: 77)) == 77)
        #expect(try file.next(now: Timestamp(milliseconds: 77)) == 78)
        live.context.terminate()
    }

    @Test func `a folder whose path is too long for a socket is a bad configuration`() async throws {
        let deep = "/tmp/" + String(repeating: "deep", count: 30)
        let bus = BusBroker(
            runDirectory: deep, stateDirectory: deep, logger: Logger(label: "t") { _ in SwiftLogNoOpLogHandler() })
        let failure = await #expect(throws: Failure.self) { try await bus.start() }
        #expect(failure?.known == .badConfiguration)
        #expect(failure?.message.contains("107") == true)
    }

    @Test func `clients detect a new bus without joining again`() async throws {
        let live = try LiveBus()
        try await live.bus.start()
        var observer = try live.subscriber(["bus/heartbeat"])
        let first = try Wire.next(&observer, .heartbeat, headerFrame: 1).header.epoch
        await live.bus.shutdown()
        try await live.bus.start()
        var second = first
        while second == first { second = try Wire.next(&observer, .heartbeat, headerFrame: 1).header.epoch }
        #expect(second > first && second == live.bus.epoch)
        observer.close()
        await live.end()
    }

    @Test func `starting and stopping a bus a hundred times leaks nothing`() async throws {
        let live = try LiveBus()
        try await live.bus.start()
        await live.bus.shutdown()
        let descriptors = ThisProcess.descriptors
        let threads = ThisProcess.threads
        for _ in 0..<100 {
            try await live.bus.start()
            await live.bus.shutdown()
        }
        #expect(live.endpoints.all.allSatisfy { access($0.path, F_OK) != 0 })
        #expect(ThisProcess.descriptors <= descriptors + 40)
        #expect(ThisProcess.threads <= threads + 20)
        live.context.terminate()
    }

    @Test func `a thousand joins leak nothing in the bus`() async throws {
        try await LiveBus.with { live in
            func join(_ number: Int) throws {
                let nonce = "join0123456789ab\(number)"
                var observer = try live.subscriber(["stream/", "bus/heartbeat", "sync/\(nonce)"])
                _ = try Wire.join(&observer, nonce: nonce)
                var client = try live.clientSocket()
                try Wire.send(&client, BusHeader(.fetch), Frame(nonce))
                _ = try Wire.next(&client, .snapshot)
                observer.close()
                client.close()
            }
            for number in 0..<100 { try join(number) }
            let descriptors = ThisProcess.descriptors
            let memory = ThisProcess.residentMemory
            for number in 100..<1_100 { try join(number) }
            // libzmq closes sockets on its own thread, with a delay.
            let deadline = ContinuousClock.now.advanced(by: .seconds(20))
            while ThisProcess.descriptors > descriptors + 60, .now < deadline {
                try await ContinuousClock().sleep(for: .milliseconds(5))
            }
            #expect(ThisProcess.descriptors <= descriptors + 60)
            #expect(ThisProcess.residentMemory - memory < 24 << 20)
        }
    }
}
