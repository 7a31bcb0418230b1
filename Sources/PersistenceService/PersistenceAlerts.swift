import GRDB
import PodcastModel
import WireMessages

/// The alerts that the database's service raises itself.
enum PersistenceAlerts {
    /// The collection of the service's own records that holds alerts nobody has answered.
    static let collection = "alert"
    /// The collection that holds the winning answers, by alert.
    static let answers = "answer"

    /// A copy was restored, or none was there.
    static func recovered(_ recovery: Recovery, now: Timestamp) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "recovery \(now.milliseconds)").text
        alert.code = "databaseRestored"
        alert.owner = ServiceName.persistence.text
        alert.severity = .error
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        var text = recovery.reason
        if let moved = recovery.movedTo { text += " It was kept as \(moved)." }
        if let reaches = recovery.reaches {
            alert.title = "Restored as of \(CalendarTime(reaches).readable)"
            text += " The newest good copy was restored; it reaches \(CalendarTime(reaches).readable)."
            text += " What changed after that is lost."
            if let library = recovery.libraryReaches {
                text += " Lists of episodes reach \(CalendarTime(library).readable) until the feeds are refreshed."
            }
        } else {
            alert.code = "databaseLost"
            alert.title = "The database was lost"
            text += " There was no good copy, so the library is empty."
        }
        alert.message = text
        return alert
    }

    /// The disk takes nothing; leaves by itself.
    static func diskFull(_ failure: Failure, now: Timestamp) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "diskFull \(now.milliseconds)").text
        alert.code = FailureCode.diskFull.rawValue
        alert.owner = ServiceName.persistence.text
        alert.severity = .error
        alert.title = "The disk is full"
        alert.message = failure.message
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        return alert
    }

    /// A backup that nobody asked for did not succeed; leaves with the next one that does.
    static func backupFailed(_ failure: Failure, now: Timestamp) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "backupFailed \(now.milliseconds)").text
        alert.code = "backupFailed"
        alert.owner = ServiceName.persistence.text
        alert.severity = .warning
        alert.title = "No backup was made"
        alert.message = failure.message
        alert.actions = ["retry", "dismiss"]
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
