import BusKit
import FoundationEssentials
import GRDB
import LibC
package import PodcastModel
import SwiftProtobuf
import WireMessages

/// A recovery that was necessary before the database could be used.
package struct Recovery: Sendable, Hashable {
    /// The state of the file at the database’s path, as a sentence.
    package var reason: String
    package var damage: DatabaseDamage?
    /// The path to which that file was moved; nil if there was none.
    package var movedTo: String?
    /// The restored copy; nil if none was good, so that the database is new and empty.
    package var restored: String?
    /// The time of the restored state.
    package var reaches: Timestamp?
    /// The time of the lists of episodes, if it differs: a side snapshot doesn’t contain them.
    package var libraryReaches: Timestamp?
}

/// Checks the database’s file before it is used, and replaces an unusable one with the newest good copy.
struct StoreRecovery {
    let files: StoreFiles
    let now: Timestamp
    var progress = OpeningProgress {}

    /// The maximum size, in bytes, of a database that is read completely at each start. In a larger one only the
    /// essential tables are read; the service reads the rest while it runs.
    static let wholeCheckLimit: UInt64 = 24 << 20
    /// The tables that owners need to start.
    static let essentialTables = ["meta", "owner", "record", "commit_id", "reply", "podcast", "podcast_count"]

    /// The state of the file at the database’s path.
    enum Finding: Hashable {
        /// There is no file, or an empty, unused database.
        case nothing
        case sound
        /// - Parameter kind: a part of the file’s new name.
        case unusable(kind: String, why: String, DatabaseDamage? = nil)
    }

    /// Recovers the database if necessary; returns nil if it is undamaged or new.
    func run() throws -> Recovery? {
        switch try inspect(files.database) {
        case .sound:
            files.removeDatabase(files.restored)
            files.remove(files.suspicion)
            return nil
        case .nothing:
            if StoreFiles.exists(files.restored) {
                try finish(nil)
                return Recovery(
                    reason: "The recovery of the database \(files.database) was interrupted; it is complete now.")
            }
            guard !files.copies().isEmpty else { return nil }
            return try recover(reason: "The database \(files.database) was missing.")
        case .unusable(let kind, let why, let damage):
            var recovery = try recover(reason: "The database \(files.database) could not be used: \(why)", kind: kind)
            recovery.damage = damage
            return recovery
        }
    }

    private func recover(reason: String, kind: String = "lost") throws -> Recovery {
        var recovery = Recovery(reason: reason)
        // A lost database may have left its log, which must not be applied to another database.
        if ([""] + DatabaseCopy.companions).contains(where: { StoreFiles.exists(files.database + $0) }) {
            recovery.movedTo = files.pathAside(kind, at: now)
        }
        try restore(&recovery)
        try finish(recovery.movedTo)
        return recovery
    }

    /// Replaces the database by the restored one. If the process ends before that, the next start finds the unusable
    /// database again, or only the restored one.
    private func finish(_ aside: String?) throws {
        if let aside { try files.moveAside(to: aside) }
        try StoreFiles.publish(files.restored, as: files.database)
        files.remove(files.suspicion)
    }

    /// Reads a database without changing it.
    ///
    /// - Throws: `newerDatabase`, and read errors that don’t justify replacing the file.
    func inspect(_ path: String, whole: Bool = false) throws -> Finding {
        guard let size = DatabaseCopy.size(of: path) else { return .nothing }
        if size == 0, (DatabaseCopy.size(of: path + "-wal") ?? 0) == 0 { return .nothing }
        try refuseNewer(header: StoreFiles.header(of: path), path)
        do {
            var configuration = progress.configuration
            configuration.readonly = true
            let database = try DatabaseQueue(path: path, configuration: configuration)
            defer { try? database.close() }
            return try database.read { db in
                let application = try Int32.fetchOne(db, sql: "PRAGMA application_id") ?? 0
                let version = try Int32.fetchOne(db, sql: "PRAGMA user_version") ?? 0
                if application == 0, version == 0, try Int.fetchOne(db, sql: "SELECT count(*) FROM sqlite_master") == 0
                {
                    return .nothing
                }
                guard application == Schema.applicationID else {
                    return .unusable(kind: "foreign", why: "it belongs to another program (\(application)).")
                }
                try refuseNewer(header: (application, version), path)
                let isWhole = whole || size <= Self.wholeCheckLimit || StoreFiles.exists(files.suspicion)
                if !isWhole, try isTrusted(db, path) { return .sound }
                let damage = try Store.damage(db, tables: isWhole ? nil : Self.essentialTables)
                return damage.map { .unusable(kind: "damaged", why: "it is damaged (\($0)).", $0) } ?? .sound
            }
        } catch  where StorageFailure.isDamage(error) {
            return .unusable(kind: "damaged", why: "it is damaged or isn’t a database (\(error)).")
        }
    }

    /// Whether a large database was closed properly, and a check of the whole file found no damage in the last days:
    /// reading it again would take longer than starting everything else.
    private func isTrusted(_ db: Database, _ path: String) throws -> Bool {
        guard (DatabaseCopy.size(of: path + "-wal") ?? 0) == 0,
            let checked = try db.meta(Schema.Meta.checked).flatMap({ Int64($0) })
        else { return false }
        return Self.trustedAge.contains(now.milliseconds.subtractingReportingOverflow(checked).partialValue)
    }

    /// The age, in ms, of a check of the whole file that makes a partial one unnecessary.
    private static let trustedAge: Range<Int64> = 0..<2 * MaintenanceSchedule.day

    private func refuseNewer(header: (application: Int32, version: Int32)?, _ path: String) throws {
        guard let header, header.application == Schema.applicationID, header.version > Schema.version else { return }
        throw Failure(
            .newerDatabase,
            """
            The database \(path) was written by a newer version (its format is \(header.version), this version reads \
            up to \(Schema.version)). Nothing was changed. Install that version again, or restore an older backup.
            """)
    }

    /// Builds the database from the newest good copies at another path, then renames it.
    private func restore(_ recovery: inout Recovery) throws {
        var good = goodCopies()
        while !good.isEmpty {
            do { return try restore(good, &recovery) } catch  where Self.isOfCopy(error) {
                // The next copy may be readable.
                good.removeFirst()
            }
        }
        try restore(good, &recovery)
    }

    /// Whether the content of a copy caused an error, and not the disk or the password file.
    private static func isOfCopy(_ error: any Error) -> Bool {
        if let failure = error as? Failure { return [.invalidArgument, .limitReached].contains(failure.known) }
        return error is BinaryDecodingError || StorageFailure.isDamage(error)
    }

    /// - Parameter good: the copies, newest first; without any, the database is new.
    private func restore(_ good: [DatabaseCopy], _ recovery: inout Recovery) throws {
        let newest = good.first
        let base = good.first { $0.kind == .backup }
        files.removeDatabase(files.restoring)
        if let base { try FileManager.default.copyItem(atPath: base.path, toPath: files.restoring) }
        let database = try DatabaseQueue(path: files.restoring, configuration: progress.configuration)
        try Schema.migrator(movedSecrets: files.movedSecrets).migrate(database)
        if let newest, newest.kind == .snapshot { try overlay(newest.path, on: database) }
        recovery.restored = newest?.path
        recovery.reaches = newest?.at
        recovery.libraryReaches = newest?.kind == .snapshot ? base?.at : nil
        try database.write { db in
            try clearValidators(db)
            try db.setMeta(Schema.Meta.incarnation, Store.newIncarnation())
            try db.execute(sql: "DELETE FROM meta WHERE key = ?", arguments: [Schema.Meta.reaches])
            let alert = PersistenceAlerts.recovered(recovery, now: now)
            try db.execute(
                sql: "INSERT OR REPLACE INTO record (owner, collection, key, value) VALUES (?, 'alert', ?, ?)",
                arguments: [ServiceName.persistence.text, alert.id, alert.wireData])
        }
        try database.close()
        try StoreFiles.publish(files.restoring, as: files.restored)
    }

    /// The undamaged copies, newest first, without those of a newer version. A copy that is dated in the future comes
    /// last: the clock was wrong when it was made.
    private func goodCopies() -> [DatabaseCopy] {
        let latest = now.milliseconds + 3_600_000
        let copies = files.copies()
        let ordered = copies.filter { $0.at.milliseconds <= latest } + copies.filter { $0.at.milliseconds > latest }
        return ordered.filter { (try? inspect($0.path, whole: true)) == .sound }
    }

    /// Replaces records, podcasts and states with those of a newer side snapshot.
    private func overlay(_ snapshot: String, on database: DatabaseQueue) throws {
        let side = files.restoring + ".side"
        files.removeDatabase(side)
        defer { files.removeDatabase(side) }
        try FileManager.default.copyItem(atPath: snapshot, toPath: side)
        let older = try DatabaseQueue(path: side, configuration: progress.configuration)
        try Schema.migrator(movedSecrets: files.movedSecrets).migrate(older)
        try older.close()
        try database.writeWithoutTransaction { db in
            try db.execute(sql: "ATTACH ? AS side", arguments: [side])
            try db.inTransaction(.immediate) {
                try db.execute(
                    sql: """
                        DELETE FROM main.record WHERE NOT \(Self.isSeen);
                        INSERT INTO main.record SELECT * FROM side.record WHERE NOT \(Self.isSeen);
                        INSERT OR REPLACE INTO main.owner SELECT * FROM side.owner;
                        INSERT INTO main.podcast (id, title, subscribed, value)
                            SELECT id, title, subscribed, value FROM side.podcast WHERE true
                            ON CONFLICT (id) DO UPDATE SET
                                title = excluded.title, subscribed = excluded.subscribed, value = excluded.value;
                        INSERT OR REPLACE INTO main.play_session SELECT * FROM side.play_session;
                        DELETE FROM main.podcast_address;
                        INSERT INTO main.podcast_address SELECT * FROM side.podcast_address;
                        DELETE FROM main.podcast_tag;
                        INSERT INTO main.podcast_tag SELECT * FROM side.podcast_tag;
                        """)
                let forgotten = try String.fetchAll(
                    db, sql: "SELECT id FROM main.podcast WHERE id NOT IN (SELECT id FROM side.podcast)")
                var library = LibraryWriter(db: db, now: now)
                for id in forgotten {
                    try library.deletePodcast(id)
                    try db.execute(sql: "DELETE FROM main.record WHERE \(Self.isSeen) AND key = ?", arguments: [id])
                }
                let states = try Data.fetchAll(
                    db,
                    sql: """
                        SELECT s.value FROM side.episode_state AS s
                        LEFT JOIN main.episode_state AS m USING (episode) WHERE m.value IS NOT s.value
                        """)
                for value in states { try Self.restoreState(value, library) }
                try library.finish()
                return .commit
            }
            try db.execute(sql: "DETACH side")
        }
    }

    /// The records of the feeds service that list the stored episodes of each podcast. They belong to the episodes,
    /// which a side snapshot doesn’t contain: with newer ones, the missing episodes would never be stored again.
    static let isSeen = "(owner = 'feeds' AND collection = 'seen')"

    /// Stores the state of an episode, on which the episode’s row depends; an invalid one is skipped.
    private static func restoreState(_ value: Data, _ library: LibraryWriter) throws {
        guard let state = try? WireEpisodeState(serializedBytes: value) else { return }
        do { try library.put(state) } catch is Failure { return }
    }

    /// Clears the validators of feeds: a server that finds them current would never send the missing episodes. A podcast
    /// of which no episodes are known counts as never read, so that its episodes aren’t new.
    private func clearValidators(_ db: Database) throws {
        let known = Set(try String.fetchAll(db, sql: "SELECT key FROM record WHERE \(Self.isSeen)"))
        for row in try Row.fetchAll(db, sql: "SELECT id, value FROM podcast") {
            let (id, value): (String, Data) = (row[0], row[1])
            // A check of the file doesn’t find damage within a value; the next refresh replaces it.
            guard var podcast = try? WirePodcast(serializedBytes: value) else { continue }
            podcast.etag = ""
            podcast.lastModified = ""
            podcast.nextRefresh = 0
            if !known.contains(id) { podcast.lastRefresh = 0 }
            try db.execute(
                sql: "UPDATE podcast SET value = ? WHERE id = ?", arguments: [podcast.wireData, id])
        }
    }
}
