import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The player’s alerts and the answers to them, which are carried out when they are durable.
struct PlayerAlerts: Sendable {
    /// A reason for which alerts end.
    enum Cause {
        case resumed(LoadID)
        /// The load was replaced.
        case left(LoadID)
        /// Any episode is loaded.
        case loaded
        /// The cause of all alerts of this code is gone.
        case code(String)
    }

    struct Answer: Sendable {
        let command: Command
        let answer: WireAnswerAlert
        /// The value of `overrules` when the answer was given.
        fileprivate let overrules: Int
    }

    /// The titles of a failure’s alert: of a final failure, and while playback resumes when the server is available.
    static let stoppedTitle = "Playback stopped"
    static let interruptedTitle = "Playback is interrupted"

    /// The codes of informational alerts, during which playback continues.
    private static let informingCodes: Set<String> = ["playsStream", "audioChanged", "startsOver"]

    private var alerts = OwnerAlerts(.playback)
    private var pending = PendingAnswers<Answer>()
    /// The number of pauses and stops so far.
    private var overrules = 0

    var active: [String: WireAlert] { alerts.active }

    // MARK: Alerts

    /// Raises an alert, unless one with its code and subject is active and isn’t being answered. The active alert of
    /// an error keeps its ID and time, and gets the new text and actions.
    mutating func raise(_ alert: WireAlert) -> OwnerChange {
        let same = active.values.first {
            $0.code == alert.code && $0.subject == alert.subject && !pending.contains($0.id)
        }
        guard let same else { return alerts.raise(alert) }
        guard alert.severity == .error else { return OwnerChange() }
        var reworded = same
        (reworded.title, reworded.message, reworded.actions) = (alert.title, alert.message, alert.actions)
        return reworded == same ? OwnerChange() : alerts.raise(reworded)
    }

    /// Replaces the text of an active alert.
    mutating func reword(_ alert: WireAlert, _ title: String, _ message: String) -> OwnerChange {
        var alert = alert
        (alert.title, alert.message) = (title, message)
        return alerts.raise(alert)
    }

    /// Ends the alerts whose cause is gone. Loading another episode doesn’t end alerts about a device, and playback
    /// doesn’t end informational alerts.
    mutating func end(_ cause: Cause) -> OwnerChange {
        alerts.end { alert in
            let isOfDevice = DeviceAlert.codes.contains(alert.code)
            switch cause {
            case .resumed(let load):
                return alert.subject == load.text && !isOfDevice && !Self.informingCodes.contains(alert.code)
            case .left(let load): return alert.subject == load.text && !isOfDevice
            case .loaded: return !alert.subject.isEmpty && !isOfDevice
            case .code(let code): return alert.code == code
            }
        }
    }

    // MARK: Answers

    func isAnswered(_ id: String) -> Bool { alerts.isAnswered(id) || pending.contains(id) }

    func answer(_ answer: WireAnswerAlert, by command: Command) -> Answer {
        Answer(command: command, answer: answer, overrules: overrules)
    }

    /// Whether playback was paused or stopped after an answer was given, so that the answer starts nothing.
    func isOverruled(_ answer: Answer) -> Bool { answer.overrules < overrules }

    /// Overrules the answers that are being committed because playback was paused or stopped.
    ///
    /// - Returns: whether answers are being committed.
    mutating func overrule() -> Bool {
        overrules += 1
        return !pending.alerts.isEmpty
    }

    /// Begins to commit the answer to an alert.
    ///
    /// - Parameter kept: alerts whose answers must not be evicted.
    mutating func begin(
        _ answer: Answer, keeping kept: Set<String>, at time: Timestamp
    ) throws(Failure) -> PendingAnswers<Answer>.Start {
        try pending.begin(answer.answer, by: answer, to: alerts, at: time, keeping: kept)
    }

    /// Handles a durable answer; see `PendingAnswers.committed`.
    mutating func committed(_ id: String, keeping kept: Set<String>) -> (alert: WireAlert?, requests: [Answer]) {
        pending.committed(id, in: &alerts, keeping: kept)
    }

    /// Removes an answer that couldn’t be saved, and returns the answers that waited for its outcome.
    mutating func refused(_ id: String) -> [Answer] { pending.refused(id) }

    // MARK: The database and the stream

    mutating func restore(_ record: StoredRecord) throws {
        // Earlier versions stored the alert inside a record with its load.
        if record.collection == "alert", let old = try? WirePlaybackAlertRecord(wireBytes: record.value),
            old.alert.id == record.key
        {
            var alert = old.alert
            alert.subject = old.loadID
            _ = alerts.raise(alert)
        } else {
            _ = try alerts.restore(record)
        }
    }

    func change(_ id: String) -> WireChange {
        // While the answer to an alert is being committed, the alert must not be stored again.
        pending.contains(id) ? .deleting("alert", id) : alerts.change(id)
    }

    var everything: [WireChange] { alerts.everything }
    var retained: [Publication] { alerts.retained }
}

extension PlaybackMachine {
    /// Commits the answer to an alert, which takes effect when it is durable.
    mutating func answerAlert(_ answer: PlayerAlerts.Answer) throws(Failure) {
        let request = answer.command.id
        var reply = WirePlaybackReply()
        let start = try pending.alerts.begin(answer, keeping: Set(output.alertIDs.values), at: now.wall)
        switch start {
        case .joined: break
        case .repeated:
            reply.changed = false
            reply.alertAnswered = answer.answer.answered(changed: false)
            pending.reply(request, reply)
        case .commit(var change):
            reply.changed = true
            reply.alertAnswered = answer.answer.answered(changed: true)
            change.changes += outcome(of: answer)
            commit(.answer(answer), change, answering: request, reply)
        }
    }

    /// Handles the answers that waited for another answer to the same alert.
    mutating func processAnswers(_ answers: [PlayerAlerts.Answer]) {
        for answer in answers {
            do throws(Failure) { try answerAlert(answer) } catch { pending.refuse(answer.command.id, error) }
        }
    }

    /// Returns the change that stores the session after an answer together with the answer, in case the process dies.
    private func outcome(of answer: PlayerAlerts.Answer) -> [WireChange] {
        guard let alert = pending.alerts.active[answer.answer.alert], let session, session.isSubject(of: alert),
            let outcome = session.answered(answer.answer, mayPlay: !pending.alerts.isOverruled(answer))
        else { return [] }
        var stored = outcome.record(now: now, context: context, clean: pending.isStopping)
        if answer.answer.action == "restart" { stored.position = 0 }
        return [.putting("session", "current", stored)]
    }

    /// Overrules the answers that are being committed because playback is paused or stopped. The sessions stored with
    /// the answers would play; the present session is stored after them.
    mutating func overruleAnswers() {
        guard pending.alerts.overrule() else { return }
        pending.writes.mark(.session)
        pending.commit = true
    }

    mutating func apply(_ answer: PlayerAlerts.Answer) {
        let id = answer.answer.alert
        let (alert, waiting) = pending.alerts.committed(id, keeping: Set(output.alertIDs.values))
        if let alert, session?.isSubject(of: alert) == true {
            let plays = session?.apply(answer.answer, &pending) == true && !pending.alerts.isOverruled(answer)
            if plays { answer.answer.action == "resume" ? resume() : play() }
        }
        processAnswers(waiting)
    }
}
