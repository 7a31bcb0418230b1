import FoundationEssentials
import GRDB
import LibC
import PodcastModel

/// Converts errors of the database to failures.
enum StorageFailure {
    /// The database file itself is damaged; the service can’t continue with it.
    static let damaged = "databaseDamaged"

    /// Only the full-text search index is damaged; it can be rebuilt.
    static let searchDamaged = "searchIndexDamaged"

    /// Returns a failure whose message names the operation, `doing` (a clause such as `saving`).
    static func of(_ error: any Error, doing: String, path: String) -> Failure {
        switch error {
        case let failure as Failure: failure
        case let error as DatabaseError: of(error, doing: doing, path: path)
        case let error as FileCallError where error.number == ENOSPC || error.number == EDQUOT: full(path)
        default: Failure(.storageFailed, "The database \(path) failed while \(doing): \(error)")
        }
    }

    private static func full(_ path: String) -> Failure {
        Failure(.diskFull, "The disk that holds \(path) is full: nothing was saved. Free some space and try again.")
    }

    /// Whether an error means that the file is damaged or isn’t a database, rather than temporarily unreadable.
    static func isDamage(_ error: any Error) -> Bool {
        guard let error = error as? DatabaseError, !isSearchDamage(error) else { return false }
        return error.resultCode == .SQLITE_CORRUPT || error.resultCode == .SQLITE_NOTADB
    }

    /// Whether an error is caused by the search index (a virtual table) only.
    static func isSearchDamage(_ error: any Error) -> Bool {
        (error as? DatabaseError)?.extendedResultCode == .SQLITE_CORRUPT_VTAB
    }

    private static func of(_ error: DatabaseError, doing: String, path: String) -> Failure {
        if isDamage(error) {
            return Failure(
                code: damaged, message: "The database \(path) is damaged (\(error.message ?? "\(error.resultCode)")).",
                retry: true)
        }
        if isSearchDamage(error) {
            return Failure(
                code: searchDamaged, message: "The full-text search index is damaged; it is being rebuilt.",
                retry: true)
        }
        if error.resultCode == .SQLITE_FULL || error.resultCode == .SQLITE_IOERR && StoreFiles.isDiskFull(beside: path)
        {
            return full(path)
        }
        let reason = error.message ?? "error \(error.extendedResultCode.rawValue)"
        return Failure(.storageFailed, "The database \(path) failed while \(doing): \(reason).")
    }
}
