import GRDB
import PodcastModel
import WireMessages

/// The alerts that the database's service raises itself.
enum PersistenceAlerts {
    /// The collection of the service's own records that holds alerts nobody has answered.
    static let collection = "alert"

    /// A copy was restored, or none was there.
    static func recovered(_ recovery: Recovery, now: Timestamp) -> WireAlert {
        var text = recovery.reason
        if let moved = recovery.movedTo { text += " It was kept as \(moved)." }
        var alert = self.alert("recovery", .error, "The database was lost", text, ["dismiss"], now: now)
        if let reaches = recovery.reaches {
            alert.code = "databaseRestored"
            alert.title = "The database was restored as of \(CalendarTime(reaches).readable)"
            text += " The newest good copy was restored; it reaches \(CalendarTime(reaches).readable)."
            text += " What changed after that is lost."
            if let library = recovery.libraryReaches {
                text += " Lists of episodes reach \(CalendarTime(library).readable) until the feeds are refreshed."
            }
        } else {
            alert.code = "databaseLost"
            text += " There was no good copy, so the library is empty."
        }
        alert.message = text
        return alert
    }

    /// The disk is full; ends by itself.
    static func diskFull(_ failure: Failure, now: Timestamp) -> WireAlert {
        alert(FailureCode.diskFull.rawValue, .error, "The disk is full", failure.message, ["dismiss"], now: now)
    }

    /// An automatic backup failed; ends with the next one that succeeds.
    static func backupFailed(_ failure: Failure, now: Timestamp) -> WireAlert {
        alert("backupFailed", .warning, "No backup was made", failure.message, ["retry", "dismiss"], now: now)
    }

    private static func alert(
        _ code: String, _ severity: WireAlert.Severity, _ title: String, _ message: String, _ actions: [String],
        now: Timestamp
    ) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(code) \(now.milliseconds)").text
        alert.code = code
        alert.owner = ServiceName.persistence.text
        alert.severity = severity
        alert.title = title
        alert.message = message
        alert.actions = actions
        alert.raisedAt = now.milliseconds
        return alert
    }

    /// Writes an alert among the service's own records.
    static func store(_ alert: WireAlert, _ db: Database) throws {
        try db.execute(
            sql: "INSERT OR REPLACE INTO record (owner, collection, key, value) VALUES (?, ?, ?, ?)",
            arguments: [ServiceName.persistence.text, collection, alert.id, alert.wireData])
    }
}
