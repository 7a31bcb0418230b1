import BusKit
import Foundation
import GRDB
import GRDBSQLite
import NIOConcurrencyHelpers
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import PersistenceService

/// Tests the write-ahead log: its checkpoints, its length, and the pages that a commit adds.
@Suite struct StoreLogTests {
    private func size(_ path: String) -> UInt64 { DatabaseCopy.size(of: path) ?? 0 }

    private func write(_ number: Int, bytes: Int = 100, to store: Store) -> StoreBatchResult {
        let change = WireChange.put("entry", "\(number)", String(repeating: "x", count: bytes))
        let commit = WireCommit("c\(number)", at: UInt64(number), [change], request: "r\(number)", reply: "done")
        return store.write([.commit(WireCommitBatch("queue", [commit]))], now: StoreFixture.moment())
    }

    @Test func `commits don’t change the database file until a checkpoint`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        _ = try store.checkpoint()
        let before = size(fixture.files.database)
        var pages = 0
        for number in 0..<300 { pages += write(number, bytes: 3_000, to: store).pages }
        #expect(pages > 1_000, "SQLite’s own checkpoint would have come")
        #expect(size(fixture.files.database) == before)
        let longest = size(fixture.files.database + "-wal")
        #expect(longest > 1_000 * 4_096)
        #expect(try store.checkpoint() == 0)
        #expect(size(fixture.files.database) > before + 900_000)
        // The next commit restarts the log.
        for number in 300..<400 { _ = write(number, to: store) }
        #expect(size(fixture.files.database + "-wal") <= longest)
        #expect(try store.texts("queue").count == 400)
    }

    @Test func `the log stays bounded without an idle moment`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let limit = UInt64(Store.forcedCheckpointPages) * 4_200
        for number in 0..<60 { _ = write(number, bytes: 1_000_000, to: store) }
        #expect(size(fixture.files.database + "-wal") < limit + 2_000_000)
        #expect(try store.texts("queue").count == 60)
        // A checkpoint frees the space.
        _ = try store.checkpoint()
        _ = write(60, to: store)
        #expect(size(fixture.files.database + "-wal") <= UInt64(Store.logSizeLimit))
    }

    @Test func `a checkpoint keeps the pages that a reader sees, and reports the remaining log`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        for number in 0..<10 { _ = write(number, to: store) }
        _ = try store.checkpoint()
        let (seen, remaining) = try store.pool.read { db in
            let sql = "SELECT count(*) FROM record"
            let before = try Int.fetchOne(db, sql: sql)
            let remaining = NIOLockedValueBox<Result<Int, any Error>?>(nil)
            let ended = DispatchSemaphore(value: 0)
            let thread = Thread {
                for number in 10..<30 { _ = write(number, to: store) }
                let result = Result { try store.checkpoint() }
                remaining.withLockedValue { $0 = result }
                ended.signal()
            }
            thread.start()
            ended.wait()
            #expect(try Int.fetchOne(db, sql: sql) == before)
            return (before, try remaining.withLockedValue { try $0?.get() })
        }
        #expect(seen == 10)
        #expect(try #require(remaining) > 0)
        #expect(try store.checkpoint() == 0)
        #expect(try store.texts("queue").count == 30)
    }

    @Test(arguments: [WatchedFiles.Operation.write, .sync])
    func `a checkpoint that fails at any step loses nothing`(at operation: WatchedFiles.Operation) throws {
        let fixture = try StoreFixture()
        let main = fixture.files.database
        let countdown = WatchedFiles.Countdown()
        let watch = WatchedFiles(fixture.folder + "/state") { event in
            event.operation == operation && event.path == main ? countdown.next() : WatchedFiles.proceed
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            var count = 0
            for good in 0..<6 {
                for _ in 0..<5 {
                    #expect(write(count, bytes: 9_000, to: store).failures.isEmpty)
                    count += 1
                }
                countdown.start(at: good)
                let checkpoint = Result { try store.checkpoint() }
                countdown.stop()
                if case .failure(let failure as Failure) = checkpoint { #expect(failure.known == .diskFull) }
                // The files that a kill would leave now are complete.
                let image = "\(fixture.folder)/killed\(good).db"
                for suffix in ["", "-wal"] {
                    try FileManager.default.copyItem(atPath: main + suffix, toPath: image + suffix)
                }
                let killed = try Store.open(
                    StoreFiles(database: image, backups: fixture.folder + "/none"), now: StoreFixture.moment())
                #expect(killed.recovery == nil)
                #expect(try killed.store.texts("queue").count == count)
                killed.store.close()
            }
            #expect(try store.checkpoint() == 0)
            #expect(try store.damage() == nil)
            #expect(try store.texts("queue").count == count)
        }
    }

    @Test func `a backup during checkpoints is complete`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        for number in 0..<50 { _ = write(number, bytes: 20_000, to: store) }
        let isDone = NIOLockedValueBox(false)
        let thread = Thread {
            for number in 50..<150 {
                _ = write(number, bytes: 20_000, to: store)
                _ = try? store.checkpoint()
            }
            isDone.withLockedValue { $0 = true }
        }
        thread.start()
        var copies: [DatabaseCopy] = []
        var second: Int64 = 0
        repeat {
            copies.append(try store.backup(now: StoreFixture.moment(second)))
            second += 1
        } while !isDone.withLockedValue { $0 }
        let last = try #require(copies.last)
        let copy = try DatabaseQueue(path: last.path, configuration: Store.configuration)
        let (records, revision) = try copy.read { db in
            (
                try Int.fetchOne(db, sql: "SELECT count(*) FROM record") ?? 0,
                try Int.fetchOne(db, sql: "SELECT revision FROM owner WHERE name = 'queue'")
            )
        }
        #expect(records >= 50)
        #expect(revision == records)
    }

    // MARK: Pages of a commit

    @Test func `the ID of a commit adds no page to the log`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        for number in 0..<OwnerRow.recentLimit * 3 { _ = write(number, to: store) }
        let pages = (0..<OwnerRow.recentLimit).map { write(OwnerRow.recentLimit * 3 + $0, to: store).pages }
        // A commit changes the record, the reply and the owner; sometimes pages are split, or the IDs move.
        #expect(pages.sorted()[pages.count / 2] == 3)
    }

    @Test func `a position that is saved during playback adds only its own page and the owner’s`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1"), .episode("e1"), .episode("e2")])
        func pages(_ episode: String, _ position: Double, at time: Int64, played: Bool = false) throws -> Int {
            var change = WireChange.state(episode, position: position, played: played)
            (change.putEpisodeState.updatedAt, change.putEpisodeState.duration) = (time, 900)
            let commit = WireCommit(
                "\(episode)\(time)", at: try store.revision("playback"), [change])
            return store.write([.commit(WireCommitBatch("playback", [commit]))], now: StoreFixture.moment()).pages
        }
        func order() throws -> [String] { try store.episodes { $0.order = .heard }.episodes.map(\.id) }
        #expect(try pages("e1", 10, at: 1_000_000) > 2)
        #expect(try pages("e1", 20, at: 1_010_000) == 2)
        #expect(try pages("e1", 30, at: 1_300_000) == 2)
        #expect(try store.episodes { $0.rule = "started" }.episodes.first?.state.position == 30)
        #expect(try pages("e1", 40, at: 1_300_001) > 2, "the order by the last playback is at most 5 minutes old")
        #expect(try pages("e2", 10, at: 1_400_000) > 2)
        #expect(try order() == ["e2", "e1"])
        #expect(try pages("e1", 50, at: 1_410_000) > 2, "another episode was played back in between")
        #expect(try order() == ["e1", "e2"])
        #expect(try pages("e1", 50, at: 1_420_000, played: true) > 2)
        #expect(try store.episodes { $0.rule = "started" }.episodes.map(\.id) == ["e2"])
    }

    @Test func `a repeated commit is recognised whether its ID is in the owner’s row or has moved`() throws {
        let fixture = try StoreFixture()
        var store = try fixture.open()
        let count = OwnerRow.recentLimit * 2 + 5
        for number in 0..<count { _ = write(number, to: store) }
        for round in 0..<2 {
            for number in 0..<count {
                guard case .outcomes(let outcomes)? = try write(number, to: store).results[0].get().result else {
                    throw UnexpectedAnswer()
                }
                #expect(outcomes.outcomes.map(\.kind) == [.repeated], "\(number), round \(round)")
                #expect(outcomes.outcomes[0].revision == UInt64(count))
            }
            store.close()
            store = try fixture.open()
        }
        #expect(try store.texts("queue").count == count)
    }

    @Test func `a batch of more commits than fit in the owner’s row is recorded completely`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let batch = WireCommitBatch(
            "queue", (0..<256).map { WireCommit("b\($0)", at: UInt64($0), [.put("entry", "\($0)", "x")]) })
        #expect(try store.commit(batch).outcomes.allSatisfy { $0.kind == .committed })
        #expect(try store.commit(batch).outcomes.allSatisfy { $0.kind == .repeated })
    }

    @Test func `a refused commit can be repeated under its ID`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        func kind(_ change: WireChange) throws -> WireCommitOutcome.Kind {
            try store.commit(WireCommitBatch("queue", [WireCommit("a", at: 0, [change])])).outcomes[0].kind
        }
        #expect(try kind(.put("", "", "")) == .refused)
        #expect(try kind(.put("a", "b", "c")) == .committed)
    }

    @Test(arguments: ["1", "2", "3", "4"])
    func `commits of an older database are recognised after its migration`(version: String) throws {
        let fixture = try StoreFixture()
        try fixture.files.prepare()
        let old = try DatabaseQueue(path: fixture.files.database, configuration: Store.configuration)
        try Schema.migrator(movedSecrets: fixture.files.movedSecrets).migrate(old, upTo: version)
        try old.write { db in
            try db.execute(sql: "INSERT INTO owner (name, generation, revision) VALUES ('queue', 1, 1)")
            try db.execute(
                sql: "INSERT INTO commit_id (owner, id, at) VALUES ('queue', ?, ?)",
                arguments: [Data.id("c0"), StoreFixture.moment().milliseconds])
        }
        try old.close()
        let store = try fixture.open()
        #expect(try store.pool.read { db in try Int32.fetchOne(db, sql: "PRAGMA user_version") } == Schema.version)
        func kind(_ number: Int) throws -> WireCommitOutcome.Kind {
            guard case .outcomes(let outcomes)? = try write(number, to: store).results[0].get().result else {
                throw UnexpectedAnswer()
            }
            return outcomes.outcomes[0].kind
        }
        #expect(try kind(0) == .repeated)
        #expect(try kind(1) == .committed)
        #expect(try kind(1) == .repeated)
        // A side snapshot and a backup have the same commits.
        for copy in [
            try store.backup(now: StoreFixture.moment(1)), try store.sideSnapshot(now: StoreFixture.moment(2)),
        ] {
            let database = try DatabaseQueue(path: copy.path, configuration: Store.configuration)
            #expect(try database.read { db in try OwnerRow.fetch(db, "queue") }.recent == .id("c1"))
        }
    }
}
