import Foundation
import GRDB
import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

/// A library that version 5 of the schema stored: four episodes, of which one was played back, has a bookmark and is
/// loaded, one is played, and one is downloaded and in two queues.
@Suite struct SchemaMigrationTests {
    private func fixture() throws -> StoreFixture {
        let fixture = try StoreFixture()
        try fixture.files.prepare()
        let stored = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixtures/version5.db")
        try fixture.overwrite(try Data(contentsOf: stored))
        return fixture
    }

    private func check(_ store: Store) throws {
        #expect(try store.pool.read { db in try Int32.fetchOne(db, sql: "PRAGMA user_version") } == Schema.version)
        func titles(_ rule: String) throws -> [String] { try store.episodes { $0.rule = rule }.episodes.map(\.title) }
        #expect(try titles("not season > 99").count == 4)
        #expect(try titles("played") == ["One stream"])
        #expect(try titles("started") == ["Things to try"])
        #expect(try titles("heard < 100y") == ["Things to try"], "the mark of the other was set by hand")
        #expect(try titles("downloaded") == ["Your queue is yours"])
        #expect(try titles("in later") == ["Your queue is yours"])
        #expect(try titles("bookmarked") == ["Things to try"])
        #expect(try titles("length > 100s and length < 105s") == ["Nothing is lost"])
        #expect(try titles("added > 1y or added < 100y").count == 4)
        let totals = try store.episodes { $0.withTotals = true }
        let lengths = try store.pool.read { db in try Double.fetchOne(db, sql: "SELECT total(seconds) FROM episode") }
        #expect(totals.total == 4 && totals.seconds == lengths && totals.seconds > 100)
        var query = WireFindPodcast()
        query.text = "http://127.0.0.1:18099/feed.xml"
        #expect(try store.find(query).podcasts.map(\.title) == ["The Lockstep demo"])
        let sorted = try store.episodes { $0.order = .shortest }
        #expect(
            sorted.episodes.map(\.title) == ["Your queue is yours", "Nothing is lost", "One stream", "Things to try"])
    }

    @Test func `a database of version 5 gains the columns of its stored messages`() throws {
        let fixture = try fixture()
        let store = try fixture.open()
        try check(store)
        store.close()
        // The second start changes nothing.
        let again = try fixture.open()
        try check(again)
        again.close()
    }

    @Test func `a migration that was interrupted starts again`() throws {
        let fixture = try fixture()
        // The file and the log of a migration that a crash ended before its commit.
        let pool = try DatabasePool(path: fixture.files.database, configuration: Store.configuration)
        try pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA cache_size = 1; BEGIN IMMEDIATE")
            try db.execute(sql: "ALTER TABLE episode ADD COLUMN seconds INTEGER NOT NULL DEFAULT 0")
            try db.execute(sql: "UPDATE episode SET seconds = 7")
            let crashed = fixture.folder + "/crashed"
            try FileManager.default.createDirectory(atPath: crashed, withIntermediateDirectories: true)
            for suffix in ["", "-wal"] {
                try FileManager.default.copyItem(
                    atPath: fixture.files.database + suffix, toPath: crashed + "/copy" + suffix)
            }
            try db.execute(sql: "ROLLBACK")
        }
        try pool.close()
        for suffix in ["", "-wal"] {
            let copy = try Data(contentsOf: URL(filePath: fixture.folder + "/crashed/copy" + suffix))
            try copy.write(to: URL(filePath: fixture.files.database + suffix))
        }
        let store = try fixture.open()
        try check(store)
        store.close()
    }
}
