import GRDB
import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreRulesTests {
    let fixture: StoreFixture
    let store: Store

    init() throws {
        fixture = try StoreFixture()
        store = try fixture.open()
    }

    @Test func `an episode stays with its podcast when another podcast puts its ID`() throws {
        try store.apply(
            "feeds",
            [
                .podcast("p1"), .podcast("p2"), .episode("e1", title: "Mine"), .episode("e2", of: "p2"),
                .alias("guid:1", of: "p2", is: "e1"), .alias("guid:2", of: "p2", is: "e2"),
            ])
        #expect(throws: Failure.self) { try store.apply("feeds", [.episode("e1", of: "p2", title: "Stolen")]) }
        #expect(try store.episodes { $0.podcast = "p1" }.episodes.map(\.title) == ["Mine"])
        var query = WireAliasQuery()
        query.podcast = "p2"
        query.ids = ["e1", "e2", "e3"]
        query.aliases = ["guid:1", "guid:2"]
        let matches = try store.aliases(query)
        #expect(matches.taken == ["e1"])
        #expect(matches.aliases.map(\.alias) == ["guid:2"])
    }

    @Test func `a feed with new GUIDs at each fetch keeps the eight newest aliases of an episode`() throws {
        try store.apply("feeds", [.podcast("p1"), .episode("e1"), .alias("url:1", of: "p1", is: "e1")])
        for round in 1...20 {
            try store.apply(
                "feeds",
                [.alias("guid:\(round)", of: "p1", is: "e1"), .alias("url:1", of: "p1", is: "e1")],
                at: Int64(round))
        }
        var query = WireAliasQuery()
        query.podcast = "p1"
        let aliases = Set(try store.aliases(query).aliases.map(\.alias))
        #expect(aliases == Set((14...20).map { "guid:\($0)" } + ["url:1"]))
    }

    @Test func `documents are not loaded with an owner’s records and are deleted by collection`() throws {
        var chapters = WireChaptersRecord()
        chapters.fetchedAt = 7
        chapters.chapters = [WireChapter()]
        try store.apply(
            "feeds",
            [
                .podcast("p1"), .episode("e1"), .put("seen", "p1", "x"),
                .puttingDocument("chapters/p1", "e1", chapters, at: 7),
                .puttingDocument("chapters/p1", "e2", chapters, at: 7),
            ])
        #expect(try store.allRecords(of: "feeds").map(\.collection) == ["podcast", "seen"])
        #expect(try store.episodes().episodes.map(\.chaptersFetched) == [7])
        try store.apply("feeds", [.deletingDocuments("chapters/p1")])
        #expect(try store.episodes().episodes.map(\.chaptersFetched) == [0])
    }

    private func snapshots(_ owner: String, _ changes: [WireChange]) throws -> Bool {
        let revision = try store.revision(owner)
        let batch = WireCommitBatch(owner, [WireCommit("\(owner)\(revision)", at: revision, changes)])
        return store.write([.commit(batch)], now: StoreFixture.moment()).changed.contains(.snapshot)
    }

    @Test func `refreshes and positions cause no side snapshot`() throws {
        var refreshed = WireChange.podcast("p1")
        #expect(try snapshots("feeds", [refreshed]))
        for round in 1...50 {
            refreshed.putPodcast.lastRefresh = Int64(round)
            refreshed.putPodcast.etag = "\(round)"
            refreshed.putPodcast.errorMessage = "no answer"
            #expect(try !snapshots("feeds", [refreshed]))
        }
        refreshed.putPodcast.url = "https://example.org/moved"
        #expect(try snapshots("feeds", [refreshed]))
        refreshed.putPodcast.subscribed = false
        #expect(try snapshots("feeds", [refreshed]))
        var session = WireSessionRecord()
        session.episode.id = "e1"
        #expect(try snapshots("playback", [.putting("session", "current", session)]))
        session.position = 10
        #expect(try !snapshots("playback", [.putting("session", "current", session)]))
        session.episode.id = "e2"
        #expect(try snapshots("playback", [.putting("session", "current", session)]))
        #expect(try snapshots("playback", [.deleting("session", "current")]))
    }

    @Test func `chapters move from records to documents when an older database is opened`() throws {
        let folder = try StoreFixture()
        try folder.files.prepare()
        let old = try DatabaseQueue(path: folder.files.database, configuration: Store.configuration)
        try Schema.migrator(movedSecrets: folder.files.movedSecrets).migrate(old, upTo: "1")
        var chapters = WireChaptersRecord()
        chapters.fetchedAt = 7
        try old.write { db in
            for key in ["e1", "e2"] {
                try db.execute(
                    sql: "INSERT INTO record (owner, collection, key, value) VALUES ('feeds', 'chapters/p1', ?, ?)",
                    arguments: [key, chapters.wireData])
            }
            try db.execute(
                sql: "INSERT INTO record (owner, collection, key, value) VALUES ('feeds', 'seen', 'p1', x'00')")
        }
        try old.close()
        let store = try folder.open()
        #expect(try store.allRecords(of: "feeds").map(\.collection) == ["seen"])
        let kept = try store.pool.read { db in
            try String.fetchAll(db, sql: "SELECT collection || '/' || key || '/' || at FROM document ORDER BY key")
        }
        #expect(kept == ["chapters/p1/e1/7", "chapters/p1/e2/7"])
        #expect(try store.pool.read { db in try Int32.fetchOne(db, sql: "PRAGMA user_version") } == Schema.version)
    }
}
