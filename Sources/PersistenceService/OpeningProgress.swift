import GRDB
import GRDBSQLite
import NIOConcurrencyHelpers
import PodcastModel

/// Reports the progress of opening the database every two seconds; a step that hangs reports nothing.
///
/// SQLite calls it while a statement runs, because a statement of an upgrade may take minutes.
package final class OpeningProgress: Sendable {
    package static let interval = Duration.seconds(2)
    /// The number of SQLite’s virtual machine instructions between two clock checks: less than a millisecond.
    private static let instructions: Int32 = 1_000

    private let interval: Duration
    private let report: @Sendable () -> Void
    private let due: NIOLockedValueBox<MonotonicTime>

    /// Creates a reporter that calls `report` on the thread that works on the database.
    package init(every interval: Duration = OpeningProgress.interval, _ report: @escaping @Sendable () -> Void) {
        self.interval = interval
        self.report = report
        due = NIOLockedValueBox(SystemClocks.monotonic().advanced(by: interval))
    }

    /// The configuration of a connection whose work is reported until it is closed.
    var configuration: Configuration {
        var configuration = Store.configuration
        // The configuration retains this object until the connection is closed.
        configuration.prepareDatabase { db in self.begin(db) }
        return configuration
    }

    /// Reports the work of a connection until `end` or until it is closed; until then this object must be retained.
    func begin(_ db: Database) {
        let context = Unmanaged.passUnretained(self).toOpaque()
        sqlite3_progress_handler(
            db.sqliteConnection, Self.instructions,
            { context in
                if let context { Unmanaged<OpeningProgress>.fromOpaque(context).takeUnretainedValue().reportIfDue() }
                return 0
            }, context)
    }

    func end(_ db: Database) { sqlite3_progress_handler(db.sqliteConnection, 0, nil, nil) }

    private func reportIfDue() {
        let now = SystemClocks.monotonic()
        let isDue = due.withLockedValue { due in
            guard now >= due else { return false }
            due = now.advanced(by: interval)
            return true
        }
        if isDue { report() }
    }
}
