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

@Suite struct StoreDiskFullTests {
    private func commit(_ owner: String, at revision: UInt64, bytes: Int = 10) -> StoreWrite {
        let change = WireChange.put("entry", "k\(revision)", String(repeating: "x", count: bytes))
        return .commit(WireCommitBatch(owner, [WireCommit("\(owner)\(revision)", at: revision, [change])]))
    }

    private func outcome(_ result: StoreBatchResult, _ index: Int = 0) throws -> WireCommitOutcome {
        guard case .outcomes(let outcomes)? = try result.results[index].get().result else { throw UnexpectedAnswer() }
        return try #require(outcomes.outcomes.first)
    }

    /// Limits the size of the database, so that SQLite itself reports SQLITE_FULL.
    @Test func `a store on a full disk refuses commits, serves reads and recovers when there is space`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        _ = store.write([commit("queue", at: 0)], now: StoreFixture.moment())
        try limitPages(of: store, more: 2)
        let refused = store.write([commit("queue", at: 1, bytes: 100_000)], now: StoreFixture.moment())
        #expect(try outcome(refused).kind == .refused)
        #expect(try outcome(refused).failure.code == "diskFull")
        #expect(try outcome(refused).failure.retry)
        #expect(try outcome(refused).revision == 1)
        #expect(refused.failures.map(\.known) == [.diskFull])
        #expect(try store.texts("queue").count == 1)
        #expect(try store.episodes().episodes.isEmpty)
        try limitPages(of: store, more: 10_000)
        let later = store.write([commit("queue", at: 1, bytes: 100_000)], now: StoreFixture.moment())
        #expect(try outcome(later).kind == .committed)
        #expect(later.failures.isEmpty)
    }

    @Test func `a large commit that doesn’t fit doesn’t affect the others in its transaction`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        _ = store.write([commit("queue", at: 0), commit("feeds", at: 0)], now: StoreFixture.moment())
        try limitPages(of: store, more: 3)
        let result = store.write(
            [commit("queue", at: 1), commit("feeds", at: 1, bytes: 100_000), commit("playback", at: 0)],
            now: StoreFixture.moment())
        #expect(try outcome(result, 0).kind == .committed)
        #expect(try outcome(result, 1).failure.code == "diskFull")
        #expect(try outcome(result, 2).kind == .committed)
        #expect(result.failures.map(\.known) == [.diskFull])
    }

    /// Simulates a disk without space for the log at a write or a synchronisation.
    @Test(arguments: [WatchedFiles.Operation.write, .sync])
    func `space that runs out in the middle of a log write loses nothing`(at operation: WatchedFiles.Operation) throws {
        let fixture = try StoreFixture()
        let countdown = WatchedFiles.Countdown()
        let watch = WatchedFiles(fixture.folder + "/state") { event in
            event.operation == operation && event.path.hasSuffix("-wal") ? countdown.next() : WatchedFiles.proceed
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            _ = store.write([commit("queue", at: 0)], now: StoreFixture.moment())
            for good in 0..<6 {
                let revision = try store.revision("queue")
                countdown.start(at: good)
                let result = store.write([commit("queue", at: revision, bytes: 9_000)], now: StoreFixture.moment())
                countdown.stop()
                if !result.failures.isEmpty {
                    #expect(try outcome(result).failure.code == "diskFull")
                    #expect(try store.revision("queue") == revision)
                }
                let again = store.write([commit("queue", at: revision, bytes: 9_000)], now: StoreFixture.moment())
                #expect(try [.committed, .repeated].contains(outcome(again).kind))
                #expect(try store.damage() == nil)
            }
        }
    }

    @Test func `owners can load from a full disk and are still fenced`() throws {
        let fixture = try StoreFixture()
        let isFull = NIOLockedValueBox(false)
        let watch = WatchedFiles(fixture.folder + "/state") { event in
            isFull.withLockedValue { $0 } && event.operation == .write ? SQLITE_FULL : SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            _ = try store.load("queue", generation: 1)
            _ = store.write([commit("queue", at: 0)], now: StoreFixture.moment())
            isFull.withLockedValue { $0 = true }
            #expect(try store.load("queue", generation: 4).revision == 1)
            #expect(throws: Failure.self) { try store.load("queue", generation: 3) }
            #expect(try store.texts("queue").count == 1)
            isFull.withLockedValue { $0 = false }
            #expect(
                try outcome(store.write([commit("queue", at: 1)], now: StoreFixture.moment())).failure.code == "fenced")
            store.close()
            let again = try fixture.open()
            #expect(throws: Failure.self) { try again.load("queue", generation: 3) }
            again.close()
        }
    }

    @Test func `a backup on a full disk fails and leaves no file`() throws {
        let fixture = try StoreFixture()
        let isFull = NIOLockedValueBox(false)
        let watch = WatchedFiles(fixture.files.backups) { event in
            isFull.withLockedValue { $0 } && event.operation == .write ? SQLITE_FULL : SQLITE_OK
        }
        try withExtendedLifetime(watch) {
            let store = try fixture.open()
            let good = try store.backup(now: StoreFixture.moment(1))
            isFull.withLockedValue { $0 = true }
            let failure = #expect(throws: Failure.self) { try store.backup(now: StoreFixture.moment(2)) }
            #expect(failure?.code == "diskFull")
            #expect(throws: Failure.self) { try store.sideSnapshot(now: StoreFixture.moment(2)) }
            #expect(store.files.copies().map(\.path) == [good.path])
            #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.files.backups).count == 1)
        }
    }

    private func limitPages(of store: Store, more: Int) throws {
        try store.pool.writeWithoutTransaction { db in
            let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
            _ = try Int.fetchOne(db, sql: "PRAGMA max_page_count = \(pages + more)")
        }
    }
}
