import BusKit
import Foundation
import GRDB
import PodcastModel
import Testing
import WireMessages

@testable import PersistenceService

@Suite struct StoreRecoveryTests {
    let fixture: StoreFixture

    init() throws { fixture = try StoreFixture() }

    /// A closed database with one podcast, an episode, a queue entry and a position, and its bytes.
    private func filled() throws -> Data {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1", title: "Show"), .episode("e1", title: "Findable")])
        try store.apply("queue", [.put("entry", "q1", "one")])
        try store.apply("playback", [.state("e1", position: 5)])
        store.close()
        return try fixture.bytes()
    }

    private func alert(of store: Store) throws -> WireAlert? {
        let records = try store.allRecords(of: "persistence").filter { $0.collection == "alert" }
        return try records.first.map { try WireAlert(wireBytes: [UInt8]($0.value)) }
    }

    @Test func `a new folder gets an empty database without an alert`() throws {
        let (store, recovery) = try fixture.openRecovering()
        #expect(recovery == nil)
        #expect(try alert(of: store) == nil)
        #expect(store.incarnation.count == 17)
        #expect(
            try store.pool.read { db in try Int32.fetchOne(db, sql: "PRAGMA application_id") } == Schema.applicationID)
        #expect(try store.pool.read { db in try Int32.fetchOne(db, sql: "PRAGMA user_version") } == Schema.version)
    }

    enum Harm: String, CaseIterable, Sendable {
        case flippedPages, truncated, cutWithinAPage, notADatabase, zeros, headerOnly, anotherProgram, empty, gone
    }

    private func harm(_ bytes: Data, _ harm: Harm) throws {
        switch harm {
        case .flippedPages:
            var bytes = bytes
            for offset in stride(from: 4_096 + 8, to: bytes.count, by: 4_096) {
                for index in offset..<min(offset + 64, bytes.count) { bytes[index] ^= 0xFF }
            }
            try fixture.overwrite(bytes)
        case .truncated: try fixture.overwrite(bytes.prefix(8_192))
        case .cutWithinAPage: try fixture.overwrite(bytes.prefix(bytes.count - 5_000))
        case .notADatabase: try fixture.overwrite(Data("Dear diary, this is no database at all. ".utf8) + bytes)
        case .zeros: try fixture.overwrite(Data(count: 20_000))
        case .headerOnly: try fixture.overwrite(bytes.prefix(100))
        case .empty: try fixture.overwrite(Data())
        case .gone: try FileManager.default.removeItem(atPath: fixture.files.database)
        case .anotherProgram:
            try FileManager.default.removeItem(atPath: fixture.files.database)
            let other = try DatabaseQueue(path: fixture.files.database)
            try other.write { db in
                try db.execute(sql: "CREATE TABLE recipe (name TEXT); PRAGMA application_id = 7")
            }
            try other.close()
        }
    }

    @Test(arguments: Harm.allCases)
    func `an unusable file is moved aside and the backup restored`(kind: Harm) throws {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1", title: "Show"), .episode("e1", title: "Findable")])
        try store.apply("queue", [.put("entry", "q1", "one")])
        _ = try store.backup(now: StoreFixture.moment(60))
        try store.apply("queue", [.put("entry", "q2", "after the backup")])
        store.close()
        try harm(try fixture.bytes(), kind)
        let harmed = kind == .gone ? nil : try fixture.bytes()

        let (restored, recovery) = try fixture.openRecovering(at: 600)
        let found = try #require(recovery)
        #expect(found.reaches == StoreFixture.moment(60))
        #expect(restored.incarnation != store.incarnation)
        #expect(try restored.texts("queue") == ["entry/q1=one"])
        #expect(try restored.episodes { $0.search = "findable" }.episodes.map(\.id) == ["e1"])
        // The file is kept byte for byte.
        if let harmed {
            let moved = try #require(found.movedTo)
            #expect(try Data(contentsOf: URL(fileURLWithPath: moved)) == harmed)
        }
        let alert = try #require(try alert(of: restored))
        #expect(alert.code == "databaseRestored")
        #expect(alert.message.contains(LocalTime.calendar(StoreFixture.moment(60)).minuteText))
        #expect(alert.actions == ["dismiss"])
        // Newer feed contents must be fetched again.
        #expect(try restored.podcasts(WirePodcastsQuery()).podcasts.map(\.etag) == [""])
        restored.close()
        // The next start needs no recovery.
        #expect(try fixture.openRecovering(at: 700).recovery == nil)
    }

    @Test func `damage without a backup gives an empty library and raises an alert`() throws {
        try harm(try filled(), .flippedPages)
        let (store, recovery) = try fixture.openRecovering(at: 9)
        #expect(recovery?.restored == nil)
        #expect(try alert(of: store)?.code == "databaseLost")
        #expect(try store.counts().podcasts == 0)
        #expect(try fixture.names().contains { $0.contains("damaged") })
    }

    @Test func `the alert of a damaged database has the first finding and a count, and the details have all`() throws {
        let page = "Tree 12 page 99 cell 3: Rowid 7 out of order"
        let damage = try #require(
            DatabaseDamage(["*** in database main ***\n\(page)"] + (0..<99).map { "row \($0) missing from index i" }))
        #expect("\(damage)" == "\(page), and at least 99 more findings")
        #expect(DatabaseDamage(["a", "b", "c"])?.description == "a, and 2 more findings")
        #expect(damage.details.contains("row 98 missing"))
        #expect(DatabaseDamage(["ok"]) == nil)
        #expect(DatabaseDamage(["a"])?.description == "a")
        // This byte belongs to the header’s number of unused pages, which only a check of the whole database compares.
        var bytes = try filled()
        bytes[39] ^= 0xFF
        try fixture.overwrite(bytes)
        try Data().write(to: URL(fileURLWithPath: fixture.files.suspicion))
        let (store, recovery) = try fixture.openRecovering(at: 9)
        let alert = try #require(try alert(of: store))
        #expect(alert.message.utf8.count < 1_000)
        let found = try #require(recovery?.damage)
        #expect(alert.message.contains(found.description))
    }

    @Test func `an empty file without a backup counts as a first start`() throws {
        try FileManager.default.createDirectory(atPath: fixture.folder + "/state", withIntermediateDirectories: true)
        try fixture.overwrite(Data())
        #expect(try fixture.openRecovering().recovery == nil)
    }

    @Test func `a database of a newer version is refused and not changed`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        try store.pool.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 99") }
        store.close()
        let before = try fixture.bytes()
        let failure = #expect(throws: Failure.self) { try fixture.open() }
        #expect(failure?.known == .newerDatabase)
        #expect(failure?.retry == false)
        #expect(try fixture.bytes() == before)
        #expect(try fixture.names().allSatisfy { !$0.contains("damaged") && !$0.contains("foreign") })
    }

    @Test func `a newer version that is only in the log is recognised`() throws {
        let store = try fixture.open()
        try store.pool.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 99") }
        // The state after kill -9: the file still has the old version, its log the new one.
        let copy = StoreFiles(database: fixture.folder + "/killed.db", backups: fixture.files.backups)
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: fixture.files.database + suffix, toPath: copy.database + suffix)
        }
        let before = try Data(contentsOf: URL(fileURLWithPath: copy.database))
        let failure = #expect(throws: Failure.self) { try Store.open(copy, now: StoreFixture.moment()).store }
        #expect(failure?.known == .newerDatabase)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy.database)) == before)
    }

    @Test func `a large database is checked completely once a day, or after an interruption`() throws {
        let store = try fixture.open()
        #expect(try !store.facts(now: StoreFixture.moment()).needsCheck, "a small one was read at its start")
        let large = String(repeating: "x", count: Int(StoreRecovery.wholeCheckLimit))
        try store.apply("queue", [.put("entry", "q1", large)])
        store.close()
        let unchecked = try fixture.open()
        #expect(try unchecked.facts(now: StoreFixture.moment()).needsCheck)
        #expect(unchecked.write([.checked], now: StoreFixture.moment()).failures.isEmpty)
        unchecked.close()
        let checked = try fixture.open()
        #expect(try !checked.facts(now: StoreFixture.moment(86_399)).needsCheck)
        #expect(try checked.facts(now: StoreFixture.moment(86_400)).needsCheck)
        #expect(try checked.facts(now: StoreFixture.moment(-1)).needsCheck, "the clock was set back")
        // The state after kill -9: the log isn’t empty.
        try checked.apply("queue", [.put("entry", "q2", "two")])
        let killed = StoreFiles(database: fixture.folder + "/killed.db", backups: fixture.files.backups)
        for suffix in ["", "-wal"] {
            try FileManager.default.copyItem(atPath: fixture.files.database + suffix, toPath: killed.database + suffix)
        }
        let interrupted = try Store.open(killed, now: StoreFixture.moment()).store
        #expect(try interrupted.facts(now: StoreFixture.moment(1)).needsCheck)
    }

    @Test
    func `a large database that was checked and closed is opened without another check, unless damage is suspected`()
        throws
    {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", String(repeating: "x", count: 25 << 20))])
        #expect(store.write([.checked], now: StoreFixture.moment()).failures.isEmpty)
        store.close()
        try damage(at: 10 << 20, bytes: 8_192)
        let trusted = try Store.open(fixture.files, now: StoreFixture.moment(86_400))
        #expect(trusted.recovery == nil)
        // Damage that the service finds when it starts to serve is repaired by the next start.
        let failure = #expect(throws: Failure.self) { try trusted.store.facts(now: StoreFixture.moment(86_400)) }
        #expect(failure?.code == StorageFailure.damaged)
        trusted.store.close()
        let repaired = try Store.open(fixture.files, now: StoreFixture.moment(86_401))
        #expect(repaired.recovery != nil)
        _ = try repaired.store.facts(now: StoreFixture.moment(86_401))
        repaired.store.close()
    }

    private func damage(at offset: UInt64, bytes: Int) throws {
        let file = try #require(FileHandle(forUpdatingAtPath: fixture.files.database))
        try file.seek(toOffset: offset)
        try file.write(contentsOf: Data(repeating: 0xff, count: bytes))
        try file.close()
    }

    @Test func `an unreadable file is not replaced`() throws {
        try FileManager.default.createDirectory(
            atPath: fixture.files.database, withIntermediateDirectories: true)
        let failure = #expect(throws: Failure.self) { try fixture.open() }
        #expect(failure?.known == .storageFailed)
        #expect(FileManager.default.fileExists(atPath: fixture.files.database))
    }

    @Test func `a snapshot that is newer than the backup is applied to it`() throws {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1"), .podcast("p2"), .episode("e1"), .episode("e2", of: "p2")])
        try store.apply("queue", [.put("entry", "q1", "one")])
        try store.apply("playback", [.session("s1", at: StoreFixture.moment(1).milliseconds)])
        _ = try store.backup(now: StoreFixture.moment(60))
        try store.apply("playback", [.session("s2", at: StoreFixture.moment(61).milliseconds)])
        var forget = WireChange()
        forget.deletePodcast = "p2"
        try store.apply("feeds", [forget, .podcast("p3", title: "New show")])
        try store.apply("queue", [.put("entry", "q1", "uno"), .put("entry", "q2", "two")])
        var state = WireChange.state("e1", position: 77, played: true)
        state.putEpisodeState.duration = 1_234
        try store.apply("playback", [.put("session", "", "e1"), state])
        let snapshot = try store.sideSnapshot(now: StoreFixture.moment(120))
        try store.apply("queue", [.put("entry", "q3", "lost")])
        let queueRevision = try store.revision("queue") - 1
        store.close()
        try harm(try fixture.bytes(), .truncated)

        let (restored, recovery) = try fixture.openRecovering(at: 600)
        #expect(recovery?.restored == snapshot.path)
        #expect(recovery?.reaches == StoreFixture.moment(120))
        #expect(recovery?.libraryReaches == StoreFixture.moment(60))
        #expect(try restored.texts("queue") == ["entry/q1=uno", "entry/q2=two"])
        #expect(try restored.revision("queue") == queueRevision)
        #expect(try restored.podcasts(WirePodcastsQuery()).podcasts.map(\.id) == ["p3", "p1"])
        let page = try restored.episodes()
        #expect(page.episodes.map(\.id) == ["e1"])
        #expect(page.episodes[0].state.position == 77)
        #expect(try restored.history(WirePlayHistoryQuery()).sessions.map(\.id) == ["s2", "s1"])
        #expect(try restored.pool.read { db in try Int.fetchOne(db, sql: "SELECT seconds FROM episode") } == 1_234)
        #expect(try restored.podcasts(WirePodcastsQuery()).podcasts.last?.unplayedCount == 0)
        #expect(
            try alert(of: restored)?.message.contains(LocalTime.calendar(StoreFixture.moment(120)).minuteText) == true)
        #expect(try restored.damage() == nil)
    }

    @Test func `a snapshot’s lists of stored episodes aren’t restored without the episodes`() throws {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1"), .episode("e1"), .put("seen", "p1", "e1")])
        _ = try store.backup(now: StoreFixture.moment(60))
        var read = WireChange.podcast("p2")
        read.putPodcast.lastRefresh = 5
        try store.apply(
            "feeds",
            [.episode("e2"), .put("seen", "p1", "e1 e2"), read, .episode("e3", of: "p2"), .put("seen", "p2", "e3")])
        _ = try store.sideSnapshot(now: StoreFixture.moment(120))
        store.close()
        try harm(try fixture.bytes(), .truncated)
        let restored = try fixture.open(at: 600)
        let lists = try restored.texts("feeds").filter { $0.hasPrefix("seen/") }
        #expect(lists == ["seen/p1=e1"], "\(lists)")
        let podcasts = try restored.podcasts(WirePodcastsQuery()).podcasts
        #expect(podcasts.first { $0.id == "p2" }?.lastRefresh == 0)
    }

    @Test func `a copy with an unreadable podcast is restored`() throws {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1"), .podcast("p2")])
        try store.apply("queue", [.put("entry", "q1", "one")])
        try store.pool.write { db in try db.execute(sql: "UPDATE podcast SET value = x'ffffff' WHERE id = 'p1'") }
        let backup = try store.backup(now: StoreFixture.moment(60))
        store.close()
        try harm(try fixture.bytes(), .truncated)
        let (restored, recovery) = try fixture.openRecovering(at: 600)
        #expect(recovery?.restored == backup.path)
        #expect(try restored.texts("queue") == ["entry/q1=one"])
        #expect(try restored.podcasts(WirePodcastsQuery()).podcasts.map(\.id) == ["p2"])
    }

    @Test func `a copy that is dated in the future is the last choice`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "old")])
        _ = try store.backup(now: Timestamp(milliseconds: StoreFixture.moment().milliseconds + 400 * 86_400_000))
        try store.apply("queue", [.put("entry", "q1", "new")])
        let backup = try store.backup(now: StoreFixture.moment(60))
        store.close()
        try harm(try fixture.bytes(), .truncated)
        let (restored, recovery) = try fixture.openRecovering(at: 600)
        #expect(recovery?.restored == backup.path)
        #expect(try restored.texts("queue") == ["entry/q1=new"])
    }

    @Test func `a page that can’t be read isn’t damage`() {
        #expect(DatabaseDamage.isReadError("*** in database main ***\nPage 7: unable to get the page. error code=8458"))
        #expect(!DatabaseDamage.isReadError("Page 7: unable to get the page. error code=11"))
        #expect(!DatabaseDamage.isReadError("row 3 missing from index episode_by_title"))
    }

    @Test func `a snapshot alone restores the queue, the session and subscriptions`() throws {
        let store = try fixture.open()
        try store.apply("feeds", [.podcast("p1"), .episode("e1")])
        try store.apply("queue", [.put("entry", "q1", "one")])
        try store.apply("playback", [.state("e1", position: 8)])
        _ = try store.sideSnapshot(now: StoreFixture.moment(5))
        store.close()
        try harm(try fixture.bytes(), .notADatabase)
        let restored = try fixture.open(at: 10)
        #expect(try restored.texts("queue") == ["entry/q1=one"])
        #expect(try restored.podcasts(WirePodcastsQuery()).podcasts.map(\.id) == ["p1"])
        #expect(try restored.episodes().episodes.isEmpty)
        // The position is kept until the feed restores its episode.
        try restored.apply("feeds", [.episode("e1")])
        #expect(try restored.episodes().episodes[0].state.position == 8)
    }

    @Test func `a backup that is newer than the snapshot is restored alone`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        _ = try store.sideSnapshot(now: StoreFixture.moment(1))
        try store.apply("queue", [.put("entry", "q2", "two")])
        let backup = try store.backup(now: StoreFixture.moment(2))
        store.close()
        try harm(try fixture.bytes(), .gone)
        let (restored, recovery) = try fixture.openRecovering(at: 9)
        #expect(recovery?.restored == backup.path)
        #expect(recovery?.libraryReaches == nil)
        #expect(try restored.texts("queue").count == 2)
    }

    @Test func `copies that are damaged or of a newer version are skipped`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        let good = try store.backup(now: StoreFixture.moment(1))
        let damaged = try store.backup(now: StoreFixture.moment(2))
        let newer = try store.backup(now: StoreFixture.moment(3))
        store.close()
        let bytes = try Data(contentsOf: URL(fileURLWithPath: damaged.path))
        try bytes.prefix(9_000).write(to: URL(fileURLWithPath: damaged.path))
        let other = try DatabaseQueue(path: newer.path)
        try other.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA user_version = 99") }
        try other.close()
        try harm(try fixture.bytes(), .zeros)
        #expect(try fixture.openRecovering(at: 9).recovery?.restored == good.path)
    }

    @Test func `an interrupted restore is repeated`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        _ = try store.backup(now: StoreFixture.moment(1))
        store.close()
        // The process was killed after it moved the damaged file, but not its log, and made half a copy.
        try FileManager.default.removeItem(atPath: fixture.files.database)
        try Data("stale log of another database".utf8).write(to: URL(fileURLWithPath: fixture.files.database + "-wal"))
        try Data("half".utf8).write(to: URL(fileURLWithPath: fixture.files.restoring))
        let (restored, recovery) = try fixture.openRecovering(at: 9)
        #expect(recovery?.restored != nil)
        #expect(try restored.texts("queue") == ["entry/q1=one"])
        #expect(try fixture.names().contains { $0.contains("lost") && $0.hasSuffix("-wal") })
    }

    @Test func `a backup that would fill the disk is refused`() throws {
        #expect(Store.refusal(ofCopy: 500_000_000, free: 600_000_000, in: "/backups") == nil)
        #expect(Store.refusal(ofCopy: 100_000, free: 2_000_000, in: "/backups") == nil)
        let refusal = try #require(Store.refusal(ofCopy: 500_000_000, free: 530_000_000, in: "/backups"))
        #expect(refusal.known == .diskFull)
        #expect(
            refusal.message
                == "The backup needs 568 MB in /backups, and the disk has 530 MB left. Free some space and try again.")
        #expect(Store.refusal(ofCopy: 0, free: 0, in: "/backups") != nil)
        _ = try fixture.open().backup(now: StoreFixture.moment(1))
    }

    @Test(arguments: [true, false])
    func `a recovery that was interrupted after the damaged file was moved is completed`(hasBackup: Bool) throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        if hasBackup { _ = try store.backup(now: StoreFixture.moment(1)) }
        store.close()
        try harm(try fixture.bytes(), .zeros)
        let (recovered, first) = try fixture.openRecovering(at: 9)
        #expect(first?.movedTo != nil)
        recovered.close()
        // The process was killed before the restored database got its name.
        try FileManager.default.moveItem(atPath: fixture.files.database, toPath: fixture.files.restored)
        let (restored, second) = try fixture.openRecovering(at: 10)
        #expect(second?.reason.contains("was interrupted") == true)
        #expect(try restored.texts("queue") == (hasBackup ? ["entry/q1=one"] : []))
        let alert = try #require(try alert(of: restored))
        #expect(alert.code == (hasBackup ? "databaseRestored" : "databaseLost"))
        #expect(alert.message.contains(first?.movedTo ?? "?"))
        restored.close()
        #expect(try fixture.openRecovering(at: 11).recovery == nil)
        #expect(try !fixture.names().contains { $0.contains("restor") })
    }

    @Test func `a recovery that was interrupted before the damaged file was moved begins again`() throws {
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        _ = try store.backup(now: StoreFixture.moment(1))
        store.close()
        try harm(try fixture.bytes(), .zeros)
        try Data("of another recovery".utf8).write(to: URL(fileURLWithPath: fixture.files.restored))
        let (restored, recovery) = try fixture.openRecovering(at: 9)
        #expect(recovery?.restored != nil && recovery?.movedTo != nil)
        #expect(try restored.texts("queue") == ["entry/q1=one"])
        #expect(try !fixture.names().contains { $0.contains("restor") })
    }

    @Test func `files that are moved aside never overwrite each other`() throws {
        for _ in 0..<3 {
            try harm(try filled(), .zeros)
            try fixture.open(at: 5).close()
        }
        let names = try fixture.names()
        let aside = names.filter { name in
            name.contains(".damaged-") && !DatabaseCopy.companions.contains { name.hasSuffix($0) }
        }
        #expect(aside.count == 3, "\(names)")
    }

    @Test func `suspected damage makes the next start read the whole file once`() throws {
        let store = try fixture.open()
        try store.files.suspect()
        store.close()
        #expect(FileManager.default.fileExists(atPath: fixture.files.suspicion))
        let again = try fixture.openRecovering()
        #expect(again.recovery == nil)
        #expect(!FileManager.default.fileExists(atPath: fixture.files.suspicion))
    }
}

@Suite struct StoreBackupTests {
    @Test func `a backup is one file that can be opened, and the newest is listed first`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        try store.apply("queue", [.put("entry", "q1", "one")])
        let first = try store.backup(now: StoreFixture.moment(1))
        let second = try store.sideSnapshot(now: StoreFixture.moment(2))
        let entries = store.listBackups().entries
        #expect(entries.map(\.path) == [second.path, first.path])
        #expect(entries.map(\.sideSnapshot) == [true, false])
        #expect(entries.map(\.at) == [StoreFixture.moment(2).milliseconds, StoreFixture.moment(1).milliseconds])
        #expect(entries.allSatisfy { $0.bytes > 0 })
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.files.backups).count == 2)
        #expect(try store.facts(now: StoreFixture.moment(3)).copies.map(\.path) == [second.path, first.path])
        let copy = try DatabaseQueue(path: first.path)
        #expect(try copy.read { db in try db.meta(Schema.Meta.reaches) } == "\(StoreFixture.moment(1).milliseconds)")
        #expect(try copy.read { db in try Int.fetchOne(db, sql: "SELECT count(*) FROM record") } == 1)
    }

    @Test func `a backup during writes is consistent`() throws {
        let fixture = try StoreFixture()
        let store = try fixture.open()
        let writer = Thread {
            for _ in 0..<200 { _ = try? store.apply("queue", [.put("a", "k", "x"), .put("b", "k", "x")]) }
        }
        writer.start()
        for second in 1...5 {
            let backup = try store.backup(now: StoreFixture.moment(Int64(second)))
            let copy = try DatabaseQueue(path: backup.path)
            let (records, revision) = try copy.read { db in
                (
                    try Int.fetchOne(db, sql: "SELECT count(*) FROM record") ?? -1,
                    try OwnerRow.fetch(db, "queue").revision
                )
            }
            #expect(records == (revision == 0 ? 0 : 2))
        }
    }

    @Test func `rotation keeps the newest backups and one of each day`() {
        func copy(_ kind: DatabaseCopy.Kind, hoursAgo: Int64) -> DatabaseCopy {
            let at = Timestamp(milliseconds: StoreFixture.moment().milliseconds - hoursAgo * 3_600_000)
            return DatabaseCopy(kind: kind, path: "\(kind)\(hoursAgo)", at: at, bytes: 1)
        }
        let daily = (0..<20).map { copy(.backup, hoursAgo: Int64($0) * 24) }
        let today = (1...5).map { copy(.backup, hoursAgo: $0 % 2 == 0 ? 0 : 1) }
        let old = BackupRotation.expired(daily, now: StoreFixture.moment())
        #expect(old == Array(daily.dropFirst(7)))
        #expect(BackupRotation.expired(Array(daily.suffix(3)), now: StoreFixture.moment()) == [])
        let crowded = BackupRotation.expired(daily + [copy(.backup, hoursAgo: 1)], now: StoreFixture.moment())
        #expect(!crowded.contains(copy(.backup, hoursAgo: 1)))
        #expect(BackupRotation.expired(today, now: StoreFixture.moment()).count <= 5)
        let snapshots = (0..<20).map { copy(.snapshot, hoursAgo: Int64($0) * 24) }
        let copies = BackupRotation.expired(daily + snapshots, now: StoreFixture.moment())
        #expect(copies.filter { $0.kind == .snapshot } == Array(snapshots.dropFirst(7)))
        let crowdedSnapshots = BackupRotation.expired(
            (0..<9).map { copy(.snapshot, hoursAgo: $0 / 8) }, now: StoreFixture.moment())
        #expect(crowdedSnapshots.count <= 6)
    }
}
