import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import BusKit

@Suite(.timeLimit(.minutes(2)))
struct EpochChangeTests {
    /// Runs a service that leaves its first request unanswered, and passes the stream of its requests to `body`.
    private func withForgetfulHost(
        _ fleet: TestFleet, _ body: (AsyncStream<IncomingCommand>) async throws -> Void
    ) async throws {
        let host = ServiceHost(
            name: .playback, generation: 1, runDirectory: fleet.home.runDirectory, logger: fleet.logger)
        let (arrived, arrival) = AsyncStream<IncomingCommand>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await host.run(retained: { [] }) }
            group.addTask {
                var isFirst = true
                for await command in host.commands {
                    arrival.yield(command)
                    if !isFirst { host.reply(command, .success([2])) }
                    isFirst = false
                }
            }
            host.ready()
            try await body(arrived)
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    // The new bus’s SYNC may arrive first, on sockets that have reconnected automatically.
    @Test(arguments: [true, false])
    func `a request that was sent to a stopped bus is retried without waiting for the timeout`(observesStream: Bool)
        async throws
    {
        try await TestFleet.with { fleet in
            var limits = RequestRetrier.Limits()
            limits.attempt = .seconds(3_600)
            let thread = BusThread(
                BusConfiguration(
                    runDirectory: fleet.home.runDirectory, origin: "test", observes: observesStream ? .all : nil,
                    logger: fleet.logger, requests: limits))
            let client = BusClient(sharing: thread)
            try await withForgetfulHost(fleet) { arrived in
                let running = Task { try await thread.run() }
                let asking = Task { try await client.request(.playback, [1], within: .seconds(100)) }
                var arrivals = arrived.makeAsyncIterator()
                _ = await arrivals.next()
                try await fleet.restartBus()
                #expect(try await asking.value.payload == [2])
                thread.stop()
                try await running.value
            }
        }
    }
}
