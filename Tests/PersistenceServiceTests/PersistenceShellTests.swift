import BusKit
import Foundation
import GRDB
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import PersistenceService

/// Tests the service on a real bus.
@Suite struct PersistenceShellTests {
    private func ask(
        _ client: BusClient, _ change: (inout WirePersistenceRequest) -> Void
    ) async throws -> WirePersistenceReply {
        var request = WirePersistenceRequest()
        change(&request)
        let answer = try await client.request(.persistence, request.wireBytes, id: .random(), within: .seconds(30))
        return try WirePersistenceReply(wireBytes: answer.payload)
    }

    /// Runs the service until `body` ends.
    private func serving(
        _ fleet: TestFleet, generation: UInt32 = 1, _ body: @Sendable @escaping () async throws -> Void
    ) async throws {
        let shell = PersistenceShell(fleet.context(.persistence, generation: generation))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await shell.run() }
            try await body()
            group.cancelAll()
            try await group.waitForAll()
        }
    }

    @Test(.timeLimit(.minutes(2))) func `the service commits and answers over the bus, and restarts with all data`()
        async throws
    {
        try await TestFleet.with { fleet in
            try await fleet.withClient { client in
                try await serving(fleet) {
                    let loaded = try await ask(client) {
                        $0.load.owner = "queue"
                        $0.load.generation = 7
                    }
                    #expect(loaded.loaded.revision == 0)
                    let reply = try await ask(client) {
                        $0.commit = WireCommitBatch(
                            "queue", generation: 7, [WireCommit("c", at: 0, [.put("entry", "q1", "one")])])
                    }
                    #expect(reply.outcomes.outcomes.map(\.kind) == [.committed])
                }
                try await serving(fleet, generation: 2) {
                    let records = try await ask(client) { $0.loadRecords.owner = "queue" }
                    #expect(records.records.records.map(\.key) == ["q1"])
                    let backup = try await ask(client) { $0.backup = WireBackup() }
                    #expect(FileManager.default.fileExists(atPath: backup.backup.path))
                    let list = try await ask(client) { $0.listBackups = WireListBackups() }
                    #expect(list.backups.entries.contains { $0.path == backup.backup.path && !$0.sideSnapshot })
                    // The service saved the queue in a side snapshot when it stopped.
                    #expect(list.backups.entries.count >= 1)
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(2))) func `an ambiguous name is answered with its candidates`() async throws {
        try await TestFleet.with { fleet in
            try await fleet.withClient { client in
                try await serving(fleet) {
                    _ = try await ask(client) {
                        $0.commit = WireCommitBatch(
                            "feeds",
                            [
                                WireCommit(
                                    "c", at: 0,
                                    [.podcast("p1"), .episode("e1", title: "One"), .episode("e2", title: "One")])
                            ])
                    }
                    do {
                        _ = try await ask(client) { $0.findEpisode.text = "one" }
                        Issue.record("an ambiguous name was answered")
                    } catch let failure as Failure {
                        #expect(failure.known == .ambiguous)
                        #expect(try WireCandidates(wireBytes: failure.detail).candidates.count == 2)
                    }
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(2))) func `the status and alerts are published on each new bus`() async throws {
        try await TestFleet.with { fleet in
            try Data("no database".utf8).write(to: URL(fileURLWithPath: fleet.home.database))
            try await fleet.withClient { client in
                try await serving(fleet) {
                    for round in 0..<2 {
                        if round > 0 { try await fleet.restartBus() }
                        var entries: [Topic] = []
                        for await update in client.updates() {
                            switch update {
                            case .snapshot(let replica): entries += replica.entries.keys
                            case .event(let event): entries.append(event.topic)
                            default: break
                            }
                            let isComplete =
                                entries.contains(.persistenceStatus)
                                && entries.contains { $0.text.hasPrefix("stream/persistence/alert/") }
                            if isComplete { break }
                        }
                        #expect(entries.contains(.persistenceStatus))
                    }
                }
            }
        }
    }

    @Test(.timeLimit(.minutes(2))) func `a newer database ends the service`() async throws {
        let fleet = try TestFleet()
        let store = try Store.open(
            StoreFiles(database: fleet.home.database, backups: fleet.home.backupDirectory), now: StoreFixture.moment()
        ).store
        try await store.pool.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 99") }
        store.close()
        let shell = PersistenceShell(fleet.context(.persistence))
        let failure = await #expect(throws: Failure.self) { try await shell.run() }
        #expect(failure?.known == .newerDatabase)
    }

    @Test(.timeLimit(.minutes(5))) func `opening and closing repeatedly leaks no descriptor`() async throws {
        try await TestFleet.with { fleet in
            try await fleet.withClient { client in
                var counts: [Int] = []
                for round in 0..<20 {
                    try await serving(fleet, generation: UInt32(round + 1)) {
                        _ = try await ask(client) { $0.listBackups = WireListBackups() }
                    }
                    counts.append(ThisProcess.descriptors)
                }
                // Other tests open and close files at the same time; a leak in each of twenty rounds would exceed that.
                #expect(counts[19] - counts[4] < 60, "\(counts)")
            }
        }
    }
}
