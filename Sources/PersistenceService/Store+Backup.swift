package import BusKit
import FoundationEssentials
import GRDB
package import PodcastModel
import SwiftProtobuf
package import WireMessages

extension Store {
    package func copy(_ kind: DatabaseCopy.Kind, now: Timestamp) throws(Failure) -> DatabaseCopy {
        switch kind {
        case .backup: try backup(now: now)
        case .snapshot: try sideSnapshot(now: now)
        }
    }

    /// Copies the whole database, checks the copy, and removes copies that newer ones replace.
    ///
    /// The writer doesn’t wait for it. Copies of versions that stored passwords in addresses are removed at any age.
    ///
    /// - Throws: `diskFull`, `storageFailed`; `databaseDamaged` if the copy is damaged. Then earlier copies stay.
    package func backup(now: Timestamp) throws(Failure) -> DatabaseCopy {
        let free = StoreFiles.freeBytes(beside: files.backups + "/") ?? .max
        let size = DatabaseCopy.size(of: files.database) ?? 0
        if let failure = Store.refusal(ofCopy: size, free: free, in: files.backups) { throw failure }
        let copy = try makeCopy(.backup, now: now) { target in
            try pool.backup(to: target)
            // Free pages are copied too.
            try target.writeWithoutTransaction { db in try Store.removeTraces(db) }
        }
        for old in files.copiesWithPasswords() { files.remove(old.path) }
        rotate(now: now)
        return copy
    }

    /// The failure of a copy of this size that would leave too little space for the database itself; nil if there is
    /// enough.
    static func refusal(ofCopy size: UInt64, free: UInt64, in folder: String) -> Failure? {
        let needed = size + min(size / 4 + (1 << 20), 64 << 20)
        guard free < needed else { return nil }
        return Failure(
            .diskFull,
            "The backup needs \(needed / 1_000_000 + 1) MB in \(folder), and the disk has \(free / 1_000_000) MB left. Free some space and try again."
        )
    }

    /// The age up to which a side snapshot contains play sessions, in ms: backups are made at least that often.
    private static let sessionAge: Int64 = 35 * MaintenanceSchedule.day

    /// Copies owners with their records, podcasts without episodes, positions and recent play sessions: small data that
    /// changes often and that feeds can’t return.
    ///
    /// - Throws: `diskFull`, `storageFailed`.
    package func sideSnapshot(now: Timestamp) throws(Failure) -> DatabaseCopy {
        let copy = try makeCopy(.snapshot, now: now) { target in
            try Schema.migrator(movedSecrets: files.movedSecrets).migrate(target)
            try target.writeWithoutTransaction { db in
                try db.execute(sql: "ATTACH ? AS live", arguments: [files.database])
                // An immediate transaction would also lock the live database, for all commits.
                try db.inTransaction(.deferred) {
                    let tables = ["owner", "podcast", "podcast_address", "podcast_tag", "episode_state"]
                    for table in tables { try Store.copy(table, db) }
                    // A recovery doesn’t use the lists of stored episodes, which are most of a large library’s records.
                    try Store.copy("record", where: "NOT \(StoreRecovery.isSeen)", db)
                    let oldest = now.milliseconds - Store.sessionAge
                    try Store.copy("play_session", where: "started >= \(oldest)", db)
                    return .commit
                }
                try db.execute(sql: "DETACH live")
            }
        }
        rotate(now: now)
        return copy
    }

    private static func copy(_ table: String, where condition: String = "true", _ db: Database) throws {
        let columns = try db.columns(in: table).map(\.name).joined(separator: ", ")
        try db.execute(
            sql: "INSERT INTO main.\(table) (\(columns)) SELECT \(columns) FROM live.\(table) WHERE \(condition)")
    }

    package func listBackups() -> WireBackups {
        let entries = files.copies().map { copy in
            WireBackups.Entry.with {
                $0.path = copy.path
                $0.at = copy.at.milliseconds
                $0.bytes = copy.bytes
                $0.sideSnapshot = copy.kind == .snapshot
            }
        }
        return .with { $0.entries = entries }
    }

    /// Fills and checks a new file, then renames it; a failure leaves no file.
    private func makeCopy(
        _ kind: DatabaseCopy.Kind, now: Timestamp, fill: (DatabaseQueue) throws -> Void
    ) throws(Failure) -> DatabaseCopy {
        let path = DatabaseCopy.path(kind, at: now, in: files.backups)
        let partial = StoreFiles.partial(path)
        files.removeDatabase(partial)
        do {
            var configuration = Store.configuration
            configuration.label = "lockstep.copy"
            let target = try DatabaseQueue(path: partial, configuration: configuration)
            // A crash loses nothing: the copy counts only once it is renamed.
            try target.writeWithoutTransaction { db in try db.execute(sql: "PRAGMA synchronous = OFF") }
            try fill(target)
            try target.writeWithoutTransaction { db in
                _ = try String.fetchOne(db, sql: "PRAGMA journal_mode = DELETE")
                try db.setMeta(Schema.Meta.reaches, String(now.milliseconds))
                if let damage = try Store.damage(db, tables: nil) {
                    throw Failure(
                        code: StorageFailure.damaged, message: "The copy of \(files.database) is damaged: \(damage)",
                        retry: true)
                }
            }
            try target.close()
            try StoreFiles.publish(partial, as: path)
            return DatabaseCopy(kind: kind, path: path, at: now, bytes: DatabaseCopy.size(of: path) ?? 0)
        } catch {
            files.removeDatabase(partial)
            throw StorageFailure.of(error, doing: "being copied", path: path)
        }
    }

    private func rotate(now: Timestamp) {
        for copy in BackupRotation.expired(files.copies(), now: now) { files.remove(copy.path) }
    }
}

/// Decides which copies are kept.
enum BackupRotation {
    /// The number of newest copies of each kind that are kept at any age.
    static let newest = 3
    /// The number of days for each of which the newest copy of each kind is kept.
    static let days = 7

    /// The copies that are no longer needed.
    static func expired(_ copies: [DatabaseCopy], now: Timestamp) -> [DatabaseCopy] {
        let newestFirst = copies.sorted { $0.at > $1.at }
        var kept: Set<DatabaseCopy> = []
        let oldest = now.milliseconds - Int64(days) * MaintenanceSchedule.day
        for kind in DatabaseCopy.Kind.allCases {
            let copies = newestFirst.filter { $0.kind == kind }
            kept.formUnion(copies.prefix(newest))
            var seen: Set<String> = []
            kept.formUnion(
                copies.filter {
                    $0.at.milliseconds > oldest && seen.insert(CalendarTime($0.at).dayText).inserted
                })
        }
        return newestFirst.filter { !kept.contains($0) }
    }
}
