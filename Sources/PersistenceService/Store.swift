import BusKit
import FoundationEssentials
import GRDB
import GRDBSQLite
import NIOConcurrencyHelpers
package import PodcastModel
import WireMessages

/// The database, accessed synchronously.
///
/// One connection writes (one thread at a time calls `write`); any number of threads may read concurrently without
/// waiting for it. A write is on the disk when the call returns: the log is synchronised at each transaction.
package final class Store: Sendable {
    package let files: StoreFiles
    /// The identity of the database; it changes when a copy is restored.
    package let incarnation: String
    /// Whether the database wasn’t closed before it was opened: after a crash or a power failure.
    let wasInterrupted: Bool
    let pool: DatabasePool
    /// Generations by owner that could not be written because the disk was full; they fence until the process ends.
    let unwrittenGenerations = NIOLockedValueBox<[String: UInt32]>([:])

    /// The length of the write-ahead log, in pages of 4 KiB, at which a commit runs the checkpoint itself: 32 MiB.
    static let forcedCheckpointPages = 8_192
    /// The maximum size of the log’s file after a checkpoint, in bytes.
    static let logSizeLimit = 8 << 20
    /// The writer’s page cache in KiB, enough for the pages that a large feed changes.
    static let writerCache = 4_096

    /// The maximum number of concurrent readers.
    static let readerLimit = 6

    /// Opens the database, creates it, or restores the newest good copy if the file is damaged, foreign or lost.
    ///
    /// - Returns: the store, and the recovery, if one was necessary.
    /// - Throws: `newerDatabase` for a file of a newer version, which is left as it is; `diskFull`; `storageFailed`.
    ///
    /// An upgrade of a large database takes minutes, during which `progress` reports.
    package static func open(
        _ files: StoreFiles, now: Timestamp, progress: OpeningProgress = OpeningProgress {}
    ) throws(Failure) -> (store: Store, recovery: Recovery?) {
        try files.prepare()
        // A closed database has no log, or an empty one.
        let wasInterrupted = (DatabaseCopy.size(of: files.database + "-wal") ?? 0) > 0
        do {
            let recovery = try StoreRecovery(files: files, now: now, progress: progress).run()
            do {
                return (try Store(files, wasInterrupted: wasInterrupted, progress), recovery)
            } catch  where StorageFailure.isDamage(error) {
                // The partial check missed damage: the repeated check reads everything.
                try files.suspect()
                let recovery = try StoreRecovery(files: files, now: now, progress: progress).run()
                return (try Store(files, wasInterrupted: wasInterrupted, progress), recovery)
            }
        } catch {
            throw StorageFailure.of(error, doing: "opening", path: files.database)
        }
    }

    private init(_ files: StoreFiles, wasInterrupted: Bool, _ progress: OpeningProgress) throws {
        var configuration = Store.configuration
        configuration.maximumReaderCount = Store.readerLimit
        let pool = try DatabasePool(path: files.database, configuration: configuration)
        pool.writeWithoutTransaction { db in progress.begin(db) }
        try Schema.migrator(movedSecrets: files.movedSecrets).migrate(pool)
        incarnation = try pool.writeWithoutTransaction { db in
            // GRDB sets NORMAL, with which a commit isn’t on the disk when it returns.
            try db.execute(sql: "PRAGMA synchronous = FULL")
            try Store.checkDurability(db)
            try db.execute(sql: "PRAGMA cache_size = \(-Store.writerCache)")
            try db.execute(sql: "PRAGMA journal_size_limit = \(Store.logSizeLimit)")
            // Checkpoints wait for an idle moment; if there is none, SQLite runs one before a commit returns.
            try db.execute(sql: "PRAGMA wal_autocheckpoint = \(Store.forcedCheckpointPages)")
            if let incarnation = try db.meta(Schema.Meta.incarnation) { return incarnation }
            let incarnation = Store.newIncarnation()
            try db.setMeta(Schema.Meta.incarnation, incarnation)
            return incarnation
        }
        self.files = files
        self.wasInterrupted = wasInterrupted
        self.pool = pool
        pool.writeWithoutTransaction { db in
            try? Store.removeTraces(db)
            progress.end(db)
        }
    }

    /// Rewrites the file after passwords were removed from it, because deleted rows stay readable until then. Without
    /// enough space it is retried at the next start.
    static func removeTraces(_ db: Database) throws {
        guard try db.meta(Schema.Meta.traces) != nil else { return }
        try db.execute(sql: "VACUUM")
        // The log has the old pages until it is truncated. The mark stays until then, so that a crash repeats this.
        if try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal" { try db.checkpoint(.truncate) }
        try db.execute(sql: "DELETE FROM meta WHERE key = ?", arguments: [Schema.Meta.traces])
    }

    static var configuration: Configuration {
        var configuration = Configuration()
        configuration.label = "lockstep"
        configuration.foreignKeysEnabled = false
        configuration.busyMode = .timeout(5)
        configuration.prepareDatabase { db in try db.execute(sql: "PRAGMA cell_size_check = ON") }
        return configuration
    }

    /// - Throws: `storageFailed` unless a commit of this connection waits for the disk.
    static func checkDurability(_ db: Database) throws {
        let level = try Int.fetchOne(db, sql: "PRAGMA synchronous")
        let journal = try String.fetchOne(db, sql: "PRAGMA journal_mode")
        guard level == 2, journal == "wal" else {
            throw Failure(
                .storageFailed,
                "The database would not be durable (synchronous \(level ?? -1), journal \(journal ?? "unknown")).")
        }
    }

    static func newIncarnation() -> String {
        let digits = String(UInt64.random(in: .min ... .max), radix: 16)
        return "d" + String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Copies the log into the database and closes all connections.
    package func close() {
        // GRDB closes its writer first, and the remaining readers may not checkpoint the log.
        _ = try? pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }
        try? pool.close()
    }

    /// Copies the write-ahead log into the database, up to the pages that a reader needs; the next write restarts the
    /// log if all of it was copied. The writer’s memory is freed. Call it from the writing thread.
    ///
    /// - Returns: the number of pages that the log still holds: all while a reader needs one, else 0.
    package func checkpoint() throws(Failure) -> Int {
        try access("copying its log") {
            try pool.writeWithoutTransaction { db in
                let log = try db.checkpoint(.passive)
                sqlite3_db_release_memory(db.sqliteConnection)
                return log.checkpointedFrameCount >= log.walFrameCount ? 0 : log.walFrameCount
            }
        }
    }

    /// Checks the whole database; nil if it isn’t damaged. It takes a second for some hundred MB.
    ///
    /// - Throws: `storageFailed` if it can’t be read.
    package func damage() throws(Failure) -> DatabaseDamage? {
        do { return try pool.read { db in try Store.damage(db, tables: nil) } } catch {
            if StorageFailure.isDamage(error) { return DatabaseDamage(["\(error)"]) }
            throw StorageFailure.of(error, doing: "being checked", path: files.database)
        }
    }

    /// Returns the damage that `quick_check` finds in the named tables, or in all.
    static func damage(_ db: Database, tables: [String]?) throws -> DatabaseDamage? {
        for check in tables.map({ $0.map { "quick_check('\($0)')" } }) ?? ["quick_check"] {
            let rows = try String.fetchAll(db, sql: "PRAGMA \(check)")
            // A disk that can’t be read at the moment isn’t a damaged database.
            if let row = rows.first(where: DatabaseDamage.isReadError) {
                throw DatabaseError(resultCode: .SQLITE_IOERR, message: row)
            }
            if let damage = DatabaseDamage(rows) { return damage }
        }
        return nil
    }

    /// Whether a database that is too large to be read completely at its start must be read now.
    private func needsCheck(now: Timestamp) throws(Failure) -> Bool {
        guard (DatabaseCopy.size(of: files.database) ?? 0) > StoreRecovery.wholeCheckLimit else { return false }
        guard !wasInterrupted, let text = try read("opening", { db in try db.meta(Schema.Meta.checked) }),
            let checked = Int64(text)
        else { return true }
        return !(0..<MaintenanceSchedule.day).contains(
            now.milliseconds.subtractingReportingOverflow(checked).partialValue)
    }

    /// - Throws: `databaseDamaged`; then the next start reads the whole database and restores it.
    package func facts(now: Timestamp) throws(Failure) -> StoreFacts {
        do throws(Failure) { return try storedFacts(now: now) } catch {
            if error.code == StorageFailure.damaged { try? files.suspect() }
            throw error
        }
    }

    private func storedFacts(now: Timestamp) throws(Failure) -> StoreFacts {
        var facts = StoreFacts(incarnation: incarnation)
        facts.ownRecords = try allRecords(of: ServiceName.persistence.text)
        facts.copies = files.copies()
        facts.needsBackup = !files.copiesWithPasswords().isEmpty
        (facts.podcasts, facts.episodes) = try counts()
        facts.needsCheck = try needsCheck(now: now)
        facts.loggedPages = Int(clamping: (DatabaseCopy.size(of: files.database + "-wal") ?? 0) / 4_096)
        return facts
    }

    /// Reads in one snapshot of the database.
    func read<Value>(_ doing: String, _ body: (Database) throws -> Value) throws(Failure) -> Value {
        try access(doing) { try pool.read(body) }
    }

    /// Calls `body`; its errors become failures whose messages name the operation, `doing` (a clause such as `saving`).
    func access<Value>(_ doing: String, _ body: () throws -> Value) throws(Failure) -> Value {
        do { return try body() } catch { throw StorageFailure.of(error, doing: doing, path: files.database) }
    }

    package func counts() throws(Failure) -> (podcasts: UInt64, episodes: UInt64) {
        try read("counting") { db in
            let row = try Row.fetchOne(db, sql: "SELECT count(*), coalesce(sum(episodes), 0) FROM podcast_count")
            let (podcasts, episodes): (Int64, Int64) = (row?[0] ?? 0, row?[1] ?? 0)
            return (UInt64(clamping: podcasts), UInt64(clamping: episodes))
        }
    }
}
