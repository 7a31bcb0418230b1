import FoundationEssentials
import GRDB
import GRDBSQLite
import NIOConcurrencyHelpers
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A unit of work for the writer.
package enum StoreWrite: Sendable {
    case load(WireLoad)
    case commit(WireCommitBatch)
    /// Changes of the service’s own records.
    case own([WireChange])
    /// A meaningless value, written to test whether the disk accepts data.
    case probe
    /// The time of this check of the whole database, which found no damage.
    case checked
}

/// The results of a group of writes.
package struct StoreBatchResult: Sendable {
    /// The results, one for each write, in order.
    package var results: [Result<WirePersistenceReply, Failure>] = []
    package var changed: StoreChanges = []
    /// The number of pages by which the log has grown.
    package var pages = 0
    /// The failures of transactions: from a full disk, a damaged file or search index, or others.
    package var failures: [Failure] = []
}

/// The parts of the database that were changed.
package struct StoreChanges: OptionSet, Sendable {
    package let rawValue: Int
    package init(rawValue: Int) { self.rawValue = rawValue }

    /// The content of a side snapshot: the queue, the session, subscriptions.
    static let snapshot = StoreChanges(rawValue: 1)
    /// Podcasts or episodes: the counts may differ.
    static let library = StoreChanges(rawValue: 2)
}

extension Store {
    /// Writes in one transaction; when it returns, successful writes are on the disk.
    ///
    /// If the transaction fails, each write is retried alone, so that one (of a large feed on a full disk) doesn’t make
    /// the others fail. Call it from one thread at a time.
    package func write(_ writes: [StoreWrite], now: Timestamp) -> StoreBatchResult {
        do {
            return try transact(writes, now: now)
        } catch {
            guard writes.count > 1, !StorageFailure.isDamage(error) else {
                return failed(writes, StorageFailure.of(error, doing: "saving", path: files.database))
            }
        }
        var sum = StoreBatchResult()
        for write in writes {
            let one = self.write([write], now: now)
            sum.results += one.results
            sum.changed.formUnion(one.changed)
            sum.pages += one.pages
            sum.failures += one.failures
        }
        return sum
    }

    private func transact(_ writes: [StoreWrite], now: Timestamp) throws -> StoreBatchResult {
        var result = StoreBatchResult()
        try pool.writeWithoutTransaction { db in
            var session = WriteSession(
                db: db, now: now, incarnation: incarnation, generations: unwrittenGenerations.withLockedValue { $0 })
            try db.inTransaction(.immediate) {
                result.results = try writes.map { try session.perform($0) }
                try session.finish()
                return .commit
            }
            result.changed = session.changed
            result.pages = db.takeLoggedPages()
            unwrittenGenerations.withLockedValue { $0 = [:] }
        }
        return result
    }

    private func failed(_ writes: [StoreWrite], _ failure: Failure) -> StoreBatchResult {
        let results = writes.map { write -> Result<WirePersistenceReply, Failure> in
            switch write {
            case .load(let load) where failure.known == .diskFull: loadInMemory(load)
            case .commit(let batch): .success(refusal(of: batch, failure))
            case .load, .own, .probe, .checked: .failure(failure)
            }
        }
        return StoreBatchResult(results: results, failures: [failure])
    }

    /// Loads an owner while the disk is full: the generation is kept in memory until it can be written.
    private func loadInMemory(_ load: WireLoad) -> Result<WirePersistenceReply, Failure> {
        do throws(Failure) {
            let row = try read("loading") { db in try OwnerRow.fetch(db, load.owner) }
            return unwrittenGenerations.withLockedValue { generations in
                let known = max(row.generation, generations[load.owner] ?? 0)
                guard load.generation >= known else {
                    return .failure(WriteSession.fenced(load.owner, load.generation, known))
                }
                generations[load.owner] = load.generation
                return .success(row.loaded(incarnation))
            }
        } catch {
            return .failure(error)
        }
    }

    private func refusal(of batch: WireCommitBatch, _ failure: Failure) -> WirePersistenceReply {
        let row = try? pool.read { db in try OwnerRow.fetch(db, batch.owner) }
        return .with {
            $0.outcomes.incarnation = incarnation
            $0.outcomes.outcomes = batch.commits.map { _ in .refused(failure, revision: row?.revision ?? 0) }
        }
    }

    /// Rebuilds the full text index. Call it from the writing thread; it takes seconds for a large library.
    package func rebuildSearch() throws(Failure) {
        try access("rebuilding the search") {
            try pool.writeWithoutTransaction { db in
                // `DROP TABLE` would open the index first, which fails for a damaged one.
                try db.execute(sql: "PRAGMA writable_schema = ON")
                defer { try? db.execute(sql: "PRAGMA writable_schema = RESET") }
                try db.inTransaction(.immediate) {
                    try db.execute(sql: "DELETE FROM sqlite_master WHERE type = 'table' AND name = 'episode_search'")
                    for part in ["data", "idx", "docsize", "config"] {
                        try db.execute(sql: "DROP TABLE IF EXISTS episode_search_\(part)")
                    }
                    return .commit
                }
                try db.execute(sql: "PRAGMA writable_schema = RESET")
                try db.inTransaction(.immediate) {
                    try db.execute(sql: Schema.search)
                    try db.execute(sql: "INSERT INTO episode_search (episode_search) VALUES ('rebuild')")
                    return .commit
                }
            }
        }
    }

    /// Removes commit IDs and stored replies from before `moment`. Call it from the writing thread.
    ///
    /// - Returns: the number of removed rows.
    package func prune(before moment: Timestamp) throws(Failure) -> Int {
        try access("tidying") {
            try pool.write { db in
                try ["commit_id", "reply"].reduce(0) { count, table in
                    try db.execute(sql: "DELETE FROM \(table) WHERE at < ?", arguments: [moment.milliseconds])
                    return count + db.changesCount
                }
            }
        }
    }
}

/// The row of an owner.
struct OwnerRow: Sendable, Hashable {
    var generation: UInt32 = 0
    var revision: UInt64 = 0
    /// The IDs of its newest commits, concatenated, oldest first.
    var recent = Data()

    /// The maximum number of commits whose IDs stay in the row.
    static let recentLimit = 32

    var recentIDs: some Sequence<Data> {
        stride(from: recent.startIndex, to: recent.endIndex, by: RequestID.length).lazy.map { [recent] start in
            recent[start..<min(start + RequestID.length, recent.endIndex)]
        }
    }

    /// Reads the row of an owner; an unknown owner has generation and revision 0.
    static func fetch(_ db: Database, _ name: String) throws -> OwnerRow {
        let statement = try db.cachedStatement(sql: "SELECT generation, revision, recent FROM owner WHERE name = ?")
        guard let row = try Row.fetchOne(statement, arguments: [name]) else { return OwnerRow() }
        let revision: Int64 = row[1]
        return OwnerRow(generation: row[0], revision: UInt64(clamping: revision), recent: row[2])
    }

    /// The reply to an owner that has loaded.
    func loaded(_ incarnation: String) -> WirePersistenceReply {
        .with {
            $0.loaded.revision = revision
            $0.loaded.incarnation = incarnation
        }
    }
}

extension WireCommitOutcome {
    static func refused(_ failure: Failure, revision: UInt64) -> WireCommitOutcome {
        .with {
            $0.kind = .refused
            $0.revision = revision
            $0.failure = WireFailure(failure)
        }
    }
}

extension Database {
    /// The number of pages that this connection has appended to the write-ahead log since the last call.
    fileprivate func takeLoggedPages() -> Int {
        var (pages, highest): (Int32, Int32) = (0, 0)
        let status = sqlite3_db_status(sqliteConnection, SQLITE_DBSTATUS_CACHE_WRITE, &pages, &highest, 1)
        return status == SQLITE_OK ? Int(pages) : 0
    }
}
