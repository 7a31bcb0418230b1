import BusKit
import FleetHome
import Foundation
import GRDB
import NIOConcurrencyHelpers
import PodcastModel
import ProcessKit
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct AddressCleaningTests {
    private static let planted = "geheim"
    private static let address = "https://me%40mail:geheim@host.example"

    /// A database of the second version with a password in every column that could have one.
    private func older(_ fixture: StoreFixture, _ more: (Database) throws -> Void = { _ in }) throws {
        try fixture.files.prepare()
        let old = try DatabasePool(path: fixture.files.database, configuration: Store.configuration)
        try Schema.migrator(movedSecrets: fixture.files.movedSecrets).migrate(old, upTo: "2")
        var podcast = WirePodcast()
        podcast.id = "p1"
        podcast.title = "Show"
        podcast.subscribed = true
        podcast.url = Self.address + "/feed"
        podcast.previousUrls = ["https://host.example/feed", "https://u:geheim@old.example/feed"]
        podcast.errorMessage = "There is no feed at \(Self.address)/feed."
        var episode = WireEpisode()
        episode.id = "e1"
        episode.podcastID = "p1"
        episode.title = "Episode"
        episode.enclosureURL = Self.address + "/1.mp3"
        episode.description_p = "Listen at \(Self.address)/1.html or write to me@mail.example."
        var entry = WireQueueEntryRecord()
        entry.entry.id = "q1"
        entry.entry.episode.enclosureURL = Self.address + "/1.mp3"
        entry.entry.episode.title = "Episode"
        var download = WireDownload()
        download.url = Self.address + "/1.mp3"
        try old.write { db in
            var writer = LibraryWriter(db: db, now: Timestamp(milliseconds: 0))
            try db.execute(
                sql: "INSERT INTO podcast (id, title, subscribed, value) VALUES ('p1', ?, 1, ?)",
                arguments: [Self.address + "/feed", podcast.wireData])
            try Self.insert(episode, db)
            var alias = WireEpisodeAlias()
            alias.podcast = "p1"
            alias.alias = "url://me%40mail:geheim@host.example/1.mp3"
            alias.episode = "e1"
            try writer.put(alias)
            let records = [
                ("queue", "entry/default", "q1", entry.wireData), ("downloads", "download", "e1", download.wireData),
                ("feeds", "seen", "p1", Data("://a@b".utf8)),
            ]
            for (owner, collection, key, value) in records {
                try db.execute(
                    sql: "INSERT INTO record (owner, collection, key, value) VALUES (?, ?, ?, ?)",
                    arguments: [owner, collection, key, value])
            }
            var reply = WireFeedsReply()
            reply.results = [WireFeedResult()]
            reply.results[0].url = Self.address + "/feed"
            try db.execute(
                sql: "INSERT INTO reply (owner, request, reply, at) VALUES ('feeds', x'00', ?, 0)",
                arguments: [reply.wireData])
            // Deleted rows stay readable in free pages.
            for number in 0..<200 {
                try db.execute(
                    sql: "INSERT INTO meta (key, value) VALUES (?, ?)",
                    arguments: ["\(number)", String(repeating: Self.planted, count: 100)])
            }
            try db.execute(sql: "DELETE FROM meta")
            try more(db)
        }
        try old.close()
    }

    /// The files in the folder of the database that contain the password.
    private func holders(_ fixture: StoreFixture) throws -> [String] {
        let root = fixture.folder
        return try FileManager.default.subpathsOfDirectory(atPath: root).filter { name in
            FileManager.default.contents(atPath: root + "/" + name)?.range(of: Data(Self.planted.utf8)) != nil
        }.sorted()
    }

    @Test func `passwords are removed from an older database, and everything keeps its ID`() throws {
        let fixture = try StoreFixture()
        try older(fixture)
        #expect(try holders(fixture).contains { $0.hasSuffix("lockstep.db") })
        let store = try fixture.open()
        let secrets = try fixture.files.movedSecrets.read()
        let mine = WebCredentials(user: "me@mail", password: Self.planted)
        #expect(secrets.credentials(of: "p1", at: try #require(WebAddress("https://host.example/x"))) == mine)
        #expect(secrets.credentials(of: "p1").count == 2)
        let podcast = try #require(try store.podcasts(WirePodcastsQuery()).podcasts.first)
        #expect(podcast.id == "p1" && podcast.url == "https://host.example/feed")
        #expect(podcast.previousUrls == ["https://old.example/feed"])
        let page = try store.episodes { $0.withDescription = true }
        #expect(page.episodes.map(\.enclosureURL) == ["https://host.example/1.mp3"])
        #expect(page.episodes.map(\.download.url) == ["https://host.example/1.mp3"])
        #expect(page.episodes[0].description_p == "Listen at https://host.example/1.html or write to me@mail.example.")
        var query = WireAliasQuery()
        query.podcast = "p1"
        query.aliases = ["url://host.example/1.mp3"]
        #expect(try store.aliases(query).aliases.map(\.episode) == ["e1"])
        let entry = try #require(try store.allRecords(of: "queue").first)
        let stored = try WireQueueEntryRecord(wireBytes: [UInt8](entry.value))
        #expect(stored.entry.episode.enclosureURL == "https://host.example/1.mp3")
        #expect(stored.entry.id == "q1" && stored.entry.episode.title == "Episode")
        #expect(try store.texts("feeds").contains("seen/p1=://a@b"))
        #expect(try store.episodes { $0.search = Self.planted }.episodes.isEmpty)
        _ = try store.backup(now: StoreFixture.moment())
        _ = try store.sideSnapshot(now: StoreFixture.moment())
        #expect(try holders(fixture) == ["state/secrets.moved.json"])
        store.close()
        #expect(try holders(fixture) == ["state/secrets.moved.json"])
    }

    /// Stores an episode and its texts as the second version did.
    private static func insert(_ episode: WireEpisode, _ db: Database) throws {
        let first = episode.published << 20
        let last = try Int64.fetchOne(
            db, sql: "SELECT max(place) FROM episode WHERE place BETWEEN ? AND ?",
            arguments: [first, first + (1 << 20) - 1])
        let rowID = last.map { $0 + 1 } ?? first
        var stored = episode
        stored.description_p = ""
        try db.execute(
            sql: "INSERT INTO episode (place, id, podcast, played, title, value) VALUES (?, ?, ?, 0, ?, ?)",
            arguments: [
                rowID, episode.id, episode.podcastID, LibraryWriter.folded(episode.title), stored.wireData,
            ])
        var texts = EpisodeTexts(db: db)
        try texts.insert(EpisodeText(episode), at: rowID)
        try texts.index()
    }

    /// Adds episodes of the podcast, one of them with a password in its notes.
    private func addEpisodes(_ count: Int, _ db: Database) throws {
        for number in 0..<count {
            var episode = WireEpisode()
            episode.id = "e\(1_000 + number)"
            episode.podcastID = "p1"
            episode.title = "Number \(number)"
            episode.published = Int64(number)
            episode.description_p = number == count / 2 ? "See \(Self.address)/x" : "See https://host.example/@me"
            try Self.insert(episode, db)
        }
    }

    @Test func `only texts that had a password are indexed again`() throws {
        let fixture = try StoreFixture()
        try older(fixture) { db in
            try addEpisodes(450, db)
            // A word that only the index has is lost if the index is rebuilt.
            try db.execute(
                sql: """
                    INSERT INTO episode_search (rowid, title, notes, podcast)
                    SELECT place, 'canary', '', 'p1' FROM episode WHERE id = 'e1001'
                    """)
        }
        let store = try fixture.open()
        #expect(try store.episodes { $0.search = "canary" }.episodes.map(\.id) == ["e1001"])
        #expect(try store.episodes { $0.search = Self.planted }.episodes.isEmpty)
        #expect(try store.episodes { $0.search = "number 225" }.episodes.map(\.id) == ["e1225"])
        #expect(try store.episodes { $0.search = "listen" }.episodes.map(\.id) == ["e1"])
        store.close()
        #expect(try holders(fixture) == ["state/secrets.moved.json"])
    }

    @Test func `an upgrade reports progress until the database is open`() throws {
        let fixture = try StoreFixture()
        try older(fixture) { db in try addEpisodes(450, db) }
        let reports = NIOLockedValueBox(0)
        let progress = OpeningProgress(every: .zero) { reports.withLockedValue { $0 += 1 } }
        let store = try Store.open(fixture.files, now: StoreFixture.moment(), progress: progress).store
        let count = reports.withLockedValue { $0 }
        #expect(count > 3)
        _ = store.write([.own([.put("a", "b", "c")])], now: StoreFixture.moment())
        #expect(reports.withLockedValue { $0 } == count)
        store.close()
    }

    @Test func `after a crash before the old pages are removed, the next start removes them`() throws {
        let fixture = try StoreFixture()
        try older(fixture)
        let pool = try DatabasePool(path: fixture.files.database, configuration: Store.configuration)
        try Schema.migrator(movedSecrets: fixture.files.movedSecrets).migrate(pool)
        // The log with the old pages stays, as after a crash.
        let copies = try FileManager.default.contentsOfDirectory(atPath: fixture.folder + "/state").map { name in
            (name, FileManager.default.contents(atPath: fixture.folder + "/state/" + name))
        }
        try pool.close()
        for (name, content) in copies {
            try content?.write(to: URL(fileURLWithPath: fixture.folder + "/state/" + name))
        }
        #expect(try holders(fixture).contains("state/lockstep.db"))
        let store = try fixture.open()
        #expect(try holders(fixture) == ["state/secrets.moved.json"])
        #expect(try store.podcasts(WirePodcastsQuery()).podcasts.map(\.url) == ["https://host.example/feed"])
        store.close()
    }

    @Test func `a backup after the upgrade replaces the copies that have the password`() throws {
        let fixture = try StoreFixture()
        try older(fixture)
        let database = URL(fileURLWithPath: fixture.files.database)
        for kind in DatabaseCopy.Kind.allCases {
            let path = DatabaseCopy.path(kind, at: StoreFixture.moment(-60), in: fixture.files.backups)
            try FileManager.default.copyItem(at: database, to: URL(fileURLWithPath: path))
        }
        let store = try fixture.open()
        #expect(try store.facts(now: StoreFixture.moment()).needsBackup)
        _ = try store.sideSnapshot(now: StoreFixture.moment())
        #expect(try holders(fixture).count == 3, "they stay until there is a whole copy")
        let copy = try store.backup(now: StoreFixture.moment(60))
        #expect(try holders(fixture) == ["state/secrets.moved.json"])
        #expect(try !store.facts(now: StoreFixture.moment()).needsBackup)
        #expect(fixture.files.copies().contains { $0.path == copy.path })
        store.close()
        try FileManager.default.removeItem(at: database)
        let restored = try fixture.openRecovering(at: 120)
        #expect(restored.recovery?.restored == copy.path)
        #expect(try restored.store.podcasts(WirePodcastsQuery()).podcasts.map(\.id) == ["p1"])
        restored.store.close()
    }

    @Test func `an upgrade makes a backup soon after the start, even if the last one is new`() {
        let now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: StoreFixture.moment())
        var facts = StoreFacts(incarnation: "d1")
        facts.copies = [StoreFixture.copy(.backup, at: -60)]
        let later = Moment(
            monotonic: now.monotonic.advanced(by: MaintenanceSchedule.backupDelay + .seconds(1)),
            wall: StoreFixture.moment(301))
        for needsBackup in [false, true] {
            facts.needsBackup = needsBackup
            var machine = PersistenceMachine(facts, now: now)
            let effects = machine.handle(.wake, now: later)
            let begins = effects.contains { if case .copy(.backup) = $0 { true } else { false } }
            #expect(begins == needsBackup)
        }
    }

    @Test func `a backup that is made before the old pages are removed contains none of them`() throws {
        let fixture = try StoreFixture()
        try older(fixture)
        let store = try fixture.open()
        // Simulates that there was no space to rewrite the file.
        try store.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA secure_delete = OFF")
            try db.execute(
                sql: "INSERT INTO meta (key, value) VALUES ('x', ?)",
                arguments: [String(repeating: Self.planted, count: 1_000)])
            try db.execute(sql: "DELETE FROM meta WHERE key = 'x'")
            try db.setMeta(Schema.Meta.traces, "1")
        }
        let copy = try store.backup(now: StoreFixture.moment())
        #expect(FileManager.default.contents(atPath: copy.path)?.range(of: Data(Self.planted.utf8)) == nil)
        store.close()
    }

    @Test func `a database without passwords is left as it is`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        try store.apply(
            "feeds", [.podcast("p1"), .episode("e1", notes: "Write to me@mail.example, see https://h/@me")])
        let hasChanged = try store.pool.write { db in
            var cleaning = AddressCleaning(db)
            try cleaning.run()
            return cleaning.hasChanged
        }
        #expect(!hasChanged)
        #expect(!StoreFiles.exists(fixture.files.movedSecrets.path))
    }

    @Test func `a message that ends early or nests too deep is left alone`() {
        let text = Array("https://u:p@h/".utf8)
        let message = [0x0a, UInt8(text.count)] + text
        #expect(MessageCleaning.cleaned(message) == [0x0a, 10] + Array("https://h/".utf8))
        #expect(
            MessageCleaning.cleaned([0x0a, UInt8(message.count)] + message) == [0x0a, 12, 0x0a, 10]
                + Array("https://h/".utf8))
        #expect(MessageCleaning.cleaned([0xff, 0xff] + text) == nil)
    }
}
