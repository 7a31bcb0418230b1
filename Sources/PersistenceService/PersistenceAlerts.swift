import PodcastModel
import WireMessages

/// The alerts of the persistence service.
enum PersistenceAlerts {
    static let backupFailed = "backupFailed"

    /// The database was restored from a copy, or is empty because there was none.
    static func recovered(_ recovery: Recovery, now: Timestamp) -> WireAlert {
        var alert = alert("databaseLost", .error, "The database was lost", recovery.reason, now: now)
        if let moved = recovery.movedTo { alert.message += " It was kept as \(moved)." }
        guard let reaches = recovery.reaches.map({ LocalTime.calendar($0).minuteText }) else {
            alert.message += " There was no intact copy, so the library is empty."
            return alert
        }
        alert.code = "databaseRestored"
        alert.title = "The database was restored as of \(reaches)"
        alert.message += " The newest good copy was restored; it reaches \(reaches). What changed after that is lost."
        if let library = recovery.libraryReaches {
            alert.message +=
                " Lists of episodes reach \(LocalTime.calendar(library).minuteText) until the feeds are refreshed."
        }
        return alert
    }

    /// The disk is full; the alert ends when there is space again.
    static func diskFull(_ failure: Failure, now: Timestamp) -> WireAlert {
        alert(FailureCode.diskFull.rawValue, .error, "The disk is full", failure.message, now: now)
    }

    /// An automatic backup failed; the alert ends when one succeeds.
    static func backupFailed(_ failure: Failure, now: Timestamp) -> WireAlert {
        var alert = alert(backupFailed, .warning, "No backup was made", failure.message, now: now)
        alert.actions = ["retry", "dismiss"]
        return alert
    }

    private static func alert(
        _ code: String, _ severity: WireAlert.Severity, _ title: String, _ message: String, now: Timestamp
    ) -> WireAlert {
        WireAlert(
            code, of: .persistence, named: "\(code) \(now.milliseconds)", title: title, message: message,
            severity: severity, at: now)
    }
}
