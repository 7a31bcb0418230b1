import BusKit
import FoundationEssentials
import Logging
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing
import WireMessages

@Suite(.serialized, .timeLimit(.minutes(3)))
struct BusShellTests {
    private func host(_ fleet: TestFleet, generation: UInt32 = 1) -> ServiceHost {
        ServiceHost(
            name: .playback, generation: generation, runDirectory: fleet.home.runDirectory, logger: fleet.logger)
    }

    /// Runs a host that answers each command with its own payload.
    private func withEcho<Result: Sendable>(
        _ fleet: TestFleet, _ body: @Sendable (ServiceHost) async throws -> Result
    ) async throws -> Result {
        let host = host(fleet)
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await host.run(retained: { [Publication(.put, .playbackState, [1])] }) }
            group.addTask { for await command in host.commands { host.reply(command, .success(command.payload)) } }
            host.ready()
            let result = try await body(host)
            group.cancelAll()
            try await group.waitForAll()
            return result
        }
    }

    /// Returns the replica once the stream meets the condition.
    private func follow(_ client: BusClient, until isThere: (Replica) -> Bool) async -> Replica? {
        var replica = Replica()
        for await update in client.updates() {
            switch update {
            case .snapshot(let snapshot): replica = snapshot
            case .event(let event): replica.apply(event)
            default: break
            }
            if isThere(replica) { return replica }
        }
        return nil
    }

    @Test func `a request is answered, and one to an unknown service fails as unavailable`() async throws {
        try await TestFleet.with { fleet in
            try await withEcho(fleet) { _ in
                try await fleet.withClient(observes: nil) { client in
                    let answer = try await client.request(.playback, [1, 2, 3], within: .seconds(60))
                    #expect(answer.payload == [1, 2, 3])
                    let failure = await #expect(throws: Failure.self) {
                        try await client.request(.feeds, [], within: .milliseconds(300))
                    }
                    #expect(failure?.known == .unavailable)
                }
            }
        }
    }

    @Test func `publishes get consecutive sequences and every observer receives them`() async throws {
        try await TestFleet.with { fleet in
            try await withEcho(fleet) { host in
                try await fleet.withClient { client in
                    #expect(await follow(client) { $0.ready[.playback] != nil } != nil)
                    let puts = (0..<1_000).map { Publication(.put, .playbackOutput, [UInt8($0 % 250)]) }
                    let position = try await host.publish(puts)
                    try await client.wait(for: position, of: .playback, within: .seconds(60))
                    let replica = await follow(client) { $0.position >= position }
                    #expect(replica?.entries[.playbackOutput]?.put.payload == [249])
                }
            }
        }
    }

    @Test func `a client that starts before the bus joins once it is up`() async throws {
        let fleet = try TestFleet()
        try await fleet.withClient { client in
            let asking = Task { try await client.request(.playback, [7], within: .seconds(60)).payload }
            try await fleet.startBus()
            try await withEcho(fleet) { _ in
                let payload = try await asking.value
                #expect(payload == [7])
            }
        }
        await fleet.stopBus()
    }

    @Test func `a client follows the bus through restarts and keeps its state`() async throws {
        try await TestFleet.with { fleet in
            try await withEcho(fleet) { _ in
                try await fleet.withClient { client in
                    let first = await follow(client) { $0.ready[.playback] != nil }
                    var epoch = first?.position.epoch ?? 0
                    for _ in 0..<5 {
                        try await fleet.restartBus()
                        var wasEmpty = false
                        let next = await follow(client) { replica in
                            wasEmpty = wasEmpty || replica.entries[.playbackState] == nil
                            return replica.position.epoch > epoch && replica.ready[.playback] != nil
                        }
                        #expect(!wasEmpty)
                        epoch = next?.position.epoch ?? .max
                    }
                }
            }
        }
    }

    @Test func `a newer process fences the older`() async throws {
        try await TestFleet.with { fleet in
            let old = host(fleet)
            let young = host(fleet, generation: 2)
            old.ready()
            young.ready()
            let failure = await #expect(throws: Failure.self) {
                try await withThrowingTaskGroup(of: Void.self) { group in
                    group.addTask { try await old.run(retained: { [] }) }
                    try await fleet.withClient { client in
                        _ = await follow(client) { $0.ready[.playback] == 1 }
                    }
                    let running = Task { try await young.run(retained: { [] }) }
                    defer { running.cancel() }
                    try await group.waitForAll()
                }
            }
            #expect(failure?.known == .fenced)
        }
    }

    @Test func `opening and closing a hundred times leaks nothing`() async throws {
        try await TestFleet.with { fleet in
            @Sendable func once() async throws {
                try await withEcho(fleet) { _ in
                    try await fleet.withClient { client in
                        #expect(await follow(client) { $0.ready[.playback] != nil } != nil)
                        _ = try await client.request(.playback, [1], within: .seconds(60))
                    }
                }
            }
            for _ in 0..<5 { try await once() }
            let before = (descriptors: ThisProcess.descriptors, threads: ThisProcess.threads)
            for _ in 0..<100 { try await once() }
            let after = (descriptors: ThisProcess.descriptors, threads: ThisProcess.threads)
            // The bus closes its ends slightly later, and the task pool may add a thread.
            #expect(after.descriptors <= before.descriptors + 20)
            #expect(after.threads <= before.threads + 4)
        }
    }

    @Test func `a run directory too long for a socket is refused with the reason`() async throws {
        let client = BusClient(
            runDirectory: "/tmp/" + String(repeating: "x", count: 120), origin: "test", observes: .all,
            logger: Logger(label: "test"))
        let failure = await #expect(throws: Failure.self) { try await client.run() }
        #expect(failure?.known == .badConfiguration)
        let late = await #expect(throws: Failure.self) { try await client.request(.queue, []) }
        #expect(late?.known == .unavailable)
    }
}
