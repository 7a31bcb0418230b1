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
        let copy = try makeCopy(.backup, now: now) { target in
            try pool.backup(to: target)
            // Free pages are copied too.
            try target.writeWithoutTransaction { db in try Store.removeTraces(db) }
        }
        for old in files.copiesWithPasswords() { files.remove(old.path) }
        rotate(now: now)
        return copy
    }

    /// Copies owners with their records, podcasts without episodes, and positions: small data that changes often.
    ///
    /// - Throws: `diskFull`, `storageFailed`.
    package func sideSnapshot(now: Timestamp) throws(Failure) -> DatabaseCopy {
        let copy = try makeCopy(.snapshot, now: now) { target in
            try Schema.migrator(movedSecrets: files.movedSecrets).migrate(target)
            try target.writeWithoutTransaction { db in
                try db.execute(sql: "ATTACH ? AS live", arguments: [files.database])
                try db.inTransaction(.immediate) {
                    for table in ["owner", "record", "podcast", "podcast_address", "podcast_tag", "episode_state"] {
                        let columns = try db.columns(in: table).map(\.name).joined(separator: ", ")
                        try db.execute(
                            sql: "INSERT INTO main.\(table) (\(columns)) SELECT \(columns) FROM live.\(table)")
                    }
                    return .commit
                }
                try db.execute(sql: "DETACH live")
            }
        }
        rotate(now: now)
        return copy
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
    /// The number of newest backups that are kept at any age.
    static let newestBackups = 3
    /// The number of days for each of which the newest backup is kept.
    static let days = 7
    static let newestSnapshots = 3

    /// The copies that are no longer needed.
    static func expired(_ copies: [DatabaseCopy], now: Timestamp) -> [DatabaseCopy] {
        let newestFirst = copies.sorted { $0.at > $1.at }
        let backups = newestFirst.filter { $0.kind == .backup }
        var kept = Set(backups.prefix(newestBackups))
        var seen: Set<String> = []
        let oldest = now.milliseconds - Int64(days) * 86_400_000
        for copy in backups where copy.at.milliseconds > oldest && seen.insert(CalendarTime(copy.at).dayText).inserted {
            kept.insert(copy)
        }
        kept.formUnion(newestFirst.filter { $0.kind == .snapshot }.prefix(newestSnapshots))
        return newestFirst.filter { !kept.contains($0) }
    }
}
