import BusKit
import Logging
import NIOConcurrencyHelpers
import OwnerKit
import PodcastModel
import ProcessKit
import ServiceLifecycle
import TestSupport
import Testing
import WireMessages

/// A scripted persistence on the real bus.
final class DatabaseService: Service {
    let database: NIOLockedValueBox<ScriptedDatabase>
    private let host: ServiceHost

    init(_ context: ServiceContext, _ database: NIOLockedValueBox<ScriptedDatabase>) {
        self.database = database
        host = ServiceHost(
            name: context.name, generation: context.generation, runDirectory: context.home.runDirectory,
            logger: context.logger)
    }

    func run() async throws {
        let answering = Task { [host, database] in
            for await command in host.commands {
                let request = try WirePersistenceRequest(wireBytes: command.payload)
                let answer = database.withLockedValue { $0.answer(request) }
                host.reply(command, answer.map(\.wireBytes))
            }
        }
        host.ready()
        try await host.run(retained: { [Publication(.put, .persistenceStatus, [])] })
        try await answering.value
    }
}

@Suite(.serialized, .timeLimit(.minutes(3)))
struct OwnerServiceTests {
    private func withOwner(
        _ body: @Sendable (TestFleet, NIOLockedValueBox<ScriptedDatabase>) async throws -> Void
    ) async throws {
        try await TestFleet.with { fleet in
            let database = NIOLockedValueBox(ScriptedDatabase())
            let services: [any Service] = [
                DatabaseService(fleet.context(.persistence), database),
                OwnerService(EchoMachine(), context: fleet.context(.queue)) { _, _ in },
            ]
            try await fleet.withServices(services) { try await body(fleet, database) }
        }
    }

    @Test func `a command is answered when it is durable and on the stream`() async throws {
        try await withOwner { fleet, database in
            try await fleet.withClient { client in
                let answer = try await client.request(.queue, Array("one".utf8), within: .seconds(60))
                #expect(answer.payload == [1])
                #expect(database.withLockedValue { $0.words } == ["one"])
                let position = try #require(answer.position)
                try await client.wait(for: position, of: .queue, within: .seconds(60))
                for await update in client.updates() {
                    guard case .snapshot(let replica) = update else { continue }
                    #expect(replica.entries[EchoMachine.topic]?.put.payload == Array("one".utf8))
                    break
                }
            }
        }
    }

    @Test func `after a restart of the bus all values are put again and a repeat has no effect`() async throws {
        try await withOwner { fleet, database in
            try await fleet.withClient { client in
                let id = RequestID.random()
                let first = try await client.request(.queue, Array("one".utf8), id: id, within: .seconds(60))
                try await fleet.restartBus()
                let again = try await client.request(.queue, Array("one".utf8), id: id, within: .seconds(60))
                #expect(again.payload == first.payload)
                let position = try #require(again.position)
                #expect(position.epoch > (first.position?.epoch ?? .max))
                try await client.wait(for: position, of: .queue, within: .seconds(60))
                #expect(database.withLockedValue { $0.commits } == 1)
            }
        }
    }
}
