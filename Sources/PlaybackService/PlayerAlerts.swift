import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The player's alerts, and the answers to them, which are carried out when they are durable.
struct PlayerAlerts: Sendable {
    /// A reason for which alerts end.
    enum Cause {
        /// The load goes on.
        case resumed(LoadID)
        /// Something else is loaded in place of the load.
        case left(LoadID)
        /// Something is loaded where nothing was.
        case loaded
        /// The cause of all alerts of a code is gone.
        case code(String)
    }

    /// An answer to an alert.
    struct Answer: Sendable {
        let command: Command
        let answer: WireAnswerAlert
        /// How often playing had been overruled before it was given.
        fileprivate let overrules: Int
    }

    /// Alerts that tell of something while it plays on.
    private static let tellingCodes: Set<String> = ["playsStream", "audioChanged"]

    private var alerts = OwnerAlerts(.playback)
    private var pending = PendingAnswers<Answer>()
    /// How often somebody has paused or stopped while answers were on their way.
    private var overrules = 0

    var standing: [String: WireAlert] { alerts.standing }

    // MARK: Alerts

    /// Raises an alert, unless one of its code and subject stands; one that is being answered tells nobody of this.
    mutating func raise(_ alert: WireAlert) -> OwnerChange {
        alerts.raise(unlessStanding: alert) { pending.contains($0.id) }
    }

    /// Replaces the message of an alert.
    mutating func reword(_ alert: WireAlert, _ message: String) -> OwnerChange {
        var alert = alert
        alert.message = message
        return alerts.raise(alert)
    }

    /// Ends the alerts whose cause is gone. A missing device is not cured by another episode, and what the listener should
    /// know not by playing on.
    mutating func end(_ cause: Cause) -> OwnerChange {
        alerts.end { alert in
            let isOfDevice = DeviceAlert.codes.contains(alert.code)
            switch cause {
            case .resumed(let load):
                return alert.subject == load.text && !isOfDevice && !Self.tellingCodes.contains(alert.code)
            case .left(let load): return alert.subject == load.text && !isOfDevice
            case .loaded: return !alert.subject.isEmpty && !isOfDevice
            case .code(let code): return alert.code == code
            }
        }
    }

    // MARK: Answers

    /// Whether an alert has been answered, or is being answered.
    func isAnswered(_ id: String) -> Bool { alerts.isAnswered(id) || pending.contains(id) }

    /// An answer that a command gives now.
    func answer(_ answer: WireAnswerAlert, by command: Command) -> Answer {
        Answer(command: command, answer: answer, overrules: overrules)
    }

    /// Whether somebody has paused or stopped since an answer was given: it plays nothing any more.
    func isOverruled(_ answer: Answer) -> Bool { answer.overrules < overrules }

    /// Whoever pauses or stops means what was answered before, too, though it is not done yet.
    ///
    /// - Returns: whether anything was.
    mutating func overrule() -> Bool {
        overrules += 1
        return !pending.alerts.isEmpty
    }

    /// Begins an answer. The first one to become durable wins; one that comes meanwhile waits to see which it was.
    ///
    /// - Parameter kept: alerts whose answers must not be forgotten.
    mutating func begin(
        _ answer: Answer, keeping kept: Set<String>, at time: Timestamp
    ) throws(Failure) -> PendingAnswers<Answer>.Start {
        try pending.begin(answer.answer, by: answer, to: alerts, at: time, keeping: kept)
    }

    /// An answer is durable.
    ///
    /// - Returns: the alert, if it was still standing, and the answers that have waited for this one.
    mutating func committed(_ id: String, keeping kept: Set<String>) -> (alert: WireAlert?, waiting: [Answer]) {
        let (alert, waiting) = pending.committed(id, in: &alerts, keeping: kept)
        return (alert, waiting)
    }

    /// An answer could not be saved.
    ///
    /// - Returns: those that have waited for it.
    mutating func refused(_ id: String) -> [Answer] { pending.refused(id) }

    // MARK: The database and the stream

    /// Takes a stored record over; false if it is of another kind.
    mutating func restore(_ record: StoredRecord) throws -> Bool {
        // An older form has the alert in a record of its own, beside its load.
        if record.collection == "alert", let old = try? WirePlaybackAlertRecord(wireBytes: record.value),
            old.alert.id == record.key
        {
            var alert = old.alert
            alert.subject = old.loadID
            _ = alerts.raise(alert)
            return true
        }
        return try alerts.restore(record)
    }

    /// An alert as it is stored.
    func change(_ id: String) -> WireChange {
        // The answer to it is on its way, and must not find it stored again behind it.
        pending.contains(id) ? .deleting("alert", id) : alerts.change(id)
    }

    var everything: [WireChange] { alerts.everything }
    var retained: [Publication] { alerts.retained }
}
