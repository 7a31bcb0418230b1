import BusKit
import Foundation
import Logging
import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

/// Tests that a real fleet’s bus stays small and serves the fleet despite many or faulty foreign connections.
@Suite(.serialized)
struct BusLimitTests {
    /// Raw sockets on a fleet’s bus, all of one context.
    private final class ForeignSockets {
        let endpoints: (stream: IPCEndpoint, clients: IPCEndpoint, services: IPCEndpoint)
        let context: ZeroMQContext

        init(_ fleet: ProcessFleet, sockets: Int = 4_096) throws {
            _ = try FileDescriptorLimit.raise()
            let run = fleet.home.runDirectory
            endpoints = (
                try IPCEndpoint(path: run + "/pub.sock"), try IPCEndpoint(path: run + "/cli.sock"),
                try IPCEndpoint(path: run + "/svc.sock")
            )
            context = try ZeroMQContext(sockets: sockets)
        }

        func socket(_ kind: SocketKind, _ endpoint: IPCEndpoint, _ options: [SocketOption] = []) throws -> Socket {
            var socket = try Socket(
                kind, in: context,
                options: [.receiveTimeout(30_000), .reconnectInterval(10), .receiveHighWaterMark(4)] + options)
            try socket.connect(endpoint)
            return socket
        }

        func observer(_ number: Int) throws -> Socket {
            let topics = ["stream/", "bus/heartbeat", "sync/" + Self.nonce(number)]
            return try socket(.subscribe, endpoints.stream, topics.map { .subscribe(Array($0.utf8)) })
        }

        static func nonce(_ number: Int) -> String { "nonce" + String(100_000_000_000 + number) }
    }

    private static func anonymousMemory(_ pid: Int32) -> Int {
        let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
        let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
        return line.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") } ?? 0
    }

    /// Waits until the condition holds; fails after the limit.
    private static func until(
        _ what: String, within limit: Duration = .seconds(90), _ condition: () async throws -> Bool
    ) async throws {
        let start = ContinuousClock.now
        while try await !condition() {
            guard ContinuousClock.now - start < limit else {
                throw ProcessFleet.Unexpected(description: "not in time: \(what)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `the fleet’s services can connect while other programs use up the descriptors`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let started = try await fleet.run(
                "/bin/sh", ["-c", "ulimit -n 256; exec '\(ProcessFleet.binaries)/lockstep' up --detach"])
            #expect(started.status == 0, "\(started.errors)")
            let bus = try #require(fleet.pid("bus"))
            let foreign = try ForeignSockets(fleet)
            var sockets: [SocketBox] = []
            for number in 0..<300 {
                sockets.append(SocketBox(try foreign.observer(number)))
                sockets.append(SocketBox(try foreign.socket(.dealer, foreign.endpoints.clients)))
            }
            try await Self.until("the bus has refused other programs") {
                let folder = "/proc/\(bus)/fd"
                return try FileManager.default.contentsOfDirectory(atPath: folder).count >= 190
            }
            for service in ["persistence", "queue"] {
                let pid = try #require(fleet.signal(service, SIGKILL))
                try await Self.until("\(service) is ready again") {
                    let line = try await fleet.services()[service]
                    return line?.state == "ready" && line?.pid != pid
                }
            }
            #expect(fleet.pid("bus") == bus)
            let services = try await fleet.services()
            #expect(services["bus"]?.restarts == 0)
            sockets = []
            foreign.context.terminate()
            // Other programs can connect again once the foreign connections are closed.
            _ = try await fleet.succeed("queue")
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `the memory of a thousand observers is released`() async throws {
        try await ProcessFleet.with { fleet in
            let bus = try #require(fleet.pid("bus"))
            let before = Self.anonymousMemory(bus)
            let foreign = try ForeignSockets(fleet)
            var sockets: [SocketBox] = []
            for number in 0..<1_000 {
                sockets.append(SocketBox(try foreign.observer(number)))
                sockets.append(SocketBox(try foreign.socket(.dealer, foreign.endpoints.clients)))
            }
            for number in 0..<1_000 {
                let sync = "sync/" + ForeignSockets.nonce(number)
                while try sockets[2 * number].receive()?.first?.text != sync {}
                let fetch = [Frame(BusHeader(.fetch).encoded), Frame(ForeignSockets.nonce(number))]
                #expect(try sockets[2 * number + 1].send(fetch) == .sent)
                #expect(try sockets[2 * number + 1].receive() != nil)
            }
            let during = Self.anonymousMemory(bus)
            sockets = []
            foreign.context.terminate()
            try await Self.until("the bus’s memory is released") { Self.anonymousMemory(bus) <= 12_000 }
            print("bus: \(before) kB before, \(during) kB with 1,000 observers, \(Self.anonymousMemory(bus)) kB after")
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `clients that never read don’t make the bus copy the state`() async throws {
        try await ProcessFleet.with { fleet in
            let bus = try #require(fleet.pid("bus"))
            let foreign = try ForeignSockets(fleet)
            // A service with 40 MiB of state.
            var guest = try foreign.socket(
                .dealer, foreign.endpoints.services, [.routingID(Array("guest#1".utf8)), .immediate(true)])
            _ = try guest.send([Frame(BusHeader(.hello, generation: 1).encoded), "guest"], wait: true)
            let epoch = try Self.header(&guest, .welcome).epoch
            for number in 1...40 {
                let header = BusHeader(.put, generation: 1, epoch: epoch, originSequence: UInt64(number))
                let payload = Frame([UInt8](repeating: UInt8(number), count: 1 << 20))
                _ = try guest.send([Frame(header.encoded), Frame("stream/guest/\(number)"), payload], wait: true)
                while try Self.header(&guest, .acknowledge).originSequence < UInt64(number) {}
            }
            let before = Self.anonymousMemory(bus)
            var readers: [SocketBox] = []
            for number in 0..<100 {
                let reader = SocketBox(
                    try foreign.socket(.dealer, foreign.endpoints.clients, [.receiveHighWaterMark(1)]))
                let fetch = [Frame(BusHeader(.fetch).encoded), Frame(ForeignSockets.nonce(number))]
                #expect(try reader.send(fetch) == .sent)
                readers.append(reader)
            }
            // The bus still replies to clients that read.
            _ = try await fleet.succeed("queue")
            let header = BusHeader(.ping, generation: 1, epoch: epoch)
            _ = try guest.send([Frame(header.encoded)], wait: true)
            _ = try Self.header(&guest, .pong)
            let during = Self.anonymousMemory(bus)
            print("bus: \(before) kB before, \(during) kB with 100 stalled readers of 40 MiB")
            #expect(during - before < 100_000)
            readers = []
            guest.close()
            foreign.context.terminate()
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `every service of a fleet refuses a text of two megabytes and publishes nothing because of it`() async throws {
        try await ProcessFleet.with(podcast: 1) { fleet in
            let long = String(repeating: "x", count: 2 << 20)
            var queue = WireQueueRequest()
            queue.queue = long
            queue.create = WireCreateQueue()
            var playback = WirePlaybackRequest()
            playback.load.loadID = "l1"
            playback.load.episode.title = long
            var feeds = WireFeedsRequest()
            feeds.subscribe.urls = ["https://a.example/" + long]
            var downloads = WireDownloadsRequest()
            downloads.add.episodes = [long]
            var persistence = WirePersistenceRequest()
            persistence.episodes.search = long
            let requests: [(ServiceName, [UInt8])] = [
                (.queue, queue.wireBytes), (.playback, playback.wireBytes), (.feeds, feeds.wireBytes),
                (.downloads, downloads.wireBytes), (.persistence, persistence.wireBytes),
            ]
            let before = try await Self.head(fleet)
            for (service, payload) in requests {
                #expect(await Self.refusal(fleet, service, payload, origin: "cli") == .tooLarge, "\(service)")
            }
            #expect(await Self.refusal(fleet, .queue, WireQueueRequest().wireBytes, origin: long) == .tooLarge)
            // Other events may occur meanwhile; a value published repeatedly would exceed this limit by far.
            #expect(try await Self.head(fleet) < before + 20)
            #expect(try await fleet.crashes().isEmpty)
        }
    }

    /// The code of a service’s refusal; nil if it accepts the request.
    private static func refusal(
        _ fleet: ProcessFleet, _ service: ServiceName, _ payload: [UInt8], origin: String
    ) async -> FailureCode? {
        do {
            try await BusClient.with(
                runDirectory: fleet.home.runDirectory, origin: origin, observes: nil,
                logger: Logger(label: "test")
            ) { client in
                _ = try await client.request(service, payload, within: .seconds(30))
            }
            return nil
        } catch {
            return (error as? Failure)?.known
        }
    }

    /// The sequence of the newest event.
    private static func head(_ fleet: ProcessFleet) async throws -> UInt64 {
        try await BusClient.with(
            runDirectory: fleet.home.runDirectory, origin: "test", observes: .all, logger: Logger(label: "test")
        ) { client in
            for await update in client.updates() {
                if case .snapshot(let replica) = update { return replica.position.sequence }
            }
            return 0
        }
    }

    private static func header(_ socket: inout Socket, _ kind: MessageKind) throws -> BusHeader {
        while let message = try socket.receive(wait: true), let first = message.first {
            let header = try BusHeader(decoding: first.bytes)
            if header.kind == kind { return header }
        }
        throw ProcessFleet.Unexpected(description: "no \(kind) from the bus")
    }

    /// A socket in an array.
    private final class SocketBox {
        private var socket: Socket

        init(_ socket: consuming Socket) {
            self.socket = socket
        }

        func send(_ message: Message) throws -> SendOutcome { try socket.send(message, wait: true) }
        func receive() throws -> Message? { try socket.receive(wait: true) }
    }
}
