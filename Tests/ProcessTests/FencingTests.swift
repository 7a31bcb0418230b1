import BusKit
import LockstepClient
import Logging
import PodcastModel
import TestSupport
import Testing
import WireMessages
import ZeroMQ

/// Tests that a generation ahead of the clock, from another program or an earlier clock, locks no service out.
@Suite(.serialized)
struct FencingTests {
    private static let ahead = UInt32(clamping: SystemClocks.wall().milliseconds / 1_000) + 1_000_000

    @Test(.timeLimit(.minutes(5)))
    func `a generation in the database that is ahead of the clock doesn’t lock its owner out`() async throws {
        try await ProcessFleet.with { fleet in
            var load = WirePersistenceRequest()
            load.load.owner = "queue"
            load.load.generation = Self.ahead
            let payload = load.wireBytes
            try await BusClient.with(
                runDirectory: fleet.home.runDirectory, origin: "stranger", observes: nil,
                logger: Logger(label: "test")
            ) { client in
                _ = try await client.request(.persistence, payload, within: .seconds(60))
            }
            // The first commit is fenced; the client repeats the command until the queue is ready again.
            _ = try await fleet.succeed("queue", "create", "later")
            try await Self.queueIsBack(fleet)
        }
    }

    @Test(.timeLimit(.minutes(5)))
    func `a generation on the bus that is ahead of the clock doesn’t lock its service out`() async throws {
        try await ProcessFleet.with { fleet in
            let pid = try #require(fleet.pid("queue"))
            let context = try ZeroMQContext(sockets: 8)
            let endpoint = try IPCEndpoint(path: fleet.home.runDirectory + "/svc.sock")
            var stranger = try Socket(
                .dealer, in: context,
                options: [
                    .receiveTimeout(30_000), .routingID(Array("queue#\(Self.ahead)".utf8)), .immediate(true),
                ])
            try stranger.connect(endpoint)
            _ = try stranger.send([Frame(BusHeader(.hello, generation: Self.ahead).encoded), "queue"], wait: true)
            let ends = try ProcessEnds([pid])
            #expect(ends.wait(within: .seconds(60)).allSatisfy { $0 != nil })
            stranger.close()
            context.terminate()
            try await FleetObserver.with(1, of: fleet) { observers in
                try await observers[0].until("the queue is ready again") { $0.replica.ready[.queue] ?? 0 > Self.ahead }
            }
            try await Self.queueIsBack(fleet)
        }
    }

    private static func queueIsBack(_ fleet: ProcessFleet) async throws {
        _ = try await fleet.succeed("queue", "create", "after")
        let services = try await fleet.services()
        #expect(services["queue"]?.state == "ready")
        _ = try await fleet.succeed("queue", "list", "--queue", "after")
    }
}
