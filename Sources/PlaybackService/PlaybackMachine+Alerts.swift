import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// An answer to an alert that another answer is on its way to.
struct WaitingAnswer: Sendable {
    let command: Command
    let answer: WireAnswerAlert
    /// Somebody has paused or stopped since: it plays nothing any more.
    var isOverruled = false
}

extension PlaybackMachine {
    /// Raises an alert about what is loaded, unless one of its code stands. Without `id` it gets a new one.
    mutating func raise(
        _ code: String, title: String, _ message: String, _ severity: WireAlert.Severity, actions: [String],
        as id: String? = nil
    ) {
        let load = session?.loadID.text ?? ""
        // One device is missing, however many episodes are loaded meanwhile.
        let isOfAny = DeviceAlert.codes.contains(code)
        // One that is being answered tells nobody of this.
        let standing = alerts.values.contains {
            $0.alert.code == code && (isOfAny || $0.loadID == load) && answering[$0.alert.id] == nil
        }
        guard !standing else { return }
        var record = WirePlaybackAlertRecord()
        record.loadID = load
        record.alert.id = id ?? newAlertID("\(code)/\(load)")
        record.alert.code = code
        record.alert.title = title
        record.alert.message = message
        record.alert.severity = severity
        record.alert.actions = actions
        record.alert.raisedAt = now.wall.milliseconds
        record.alert.owner = Self.owner.text
        record.alert.episode = session?.episode.id ?? ""
        record.alert.podcast = session?.episode.podcastID ?? ""
        put(record)
    }

    private mutating func put(_ record: WirePlaybackAlertRecord) {
        alerts[record.alert.id] = record
        book.mark(.alert(record.alert.id))
        pending.publications.append(Publication(.put, .alert(.playback, record.alert.id), record.alert.wireBytes))
    }

    /// An alert says something else from here on.
    mutating func reword(_ id: String, _ message: String) {
        guard var record = alerts[id] else { return }
        record.alert.message = message
        put(record)
        pending.commit = true
    }

    /// An ID that no alert has had.
    mutating func newAlertID(_ subject: String) -> String {
        AlertID.derived(from: "\(subject)/\(now.wall.milliseconds)/\(nextSerial())").text
    }

    /// The causes of a load's alerts are gone: it goes on, or (`all`) something else is loaded.
    mutating func endAlerts(of load: LoadID, all: Bool = false) {
        // A missing device is not cured by another episode, and what the listener should know not by playing on.
        end {
            $0.loadID == load.text && !DeviceAlert.codes.contains($0.alert.code)
                && (all || !Self.tellingCodes.contains($0.alert.code))
        }
    }

    /// Something is loaded where nothing was: what an alert was about is past.
    mutating func endAlertsOfOthers() {
        end { !$0.loadID.isEmpty && !DeviceAlert.codes.contains($0.alert.code) }
    }

    /// Alerts that tell of something while it plays on.
    private static let tellingCodes: Set<String> = ["playsStream", "audioChanged"]

    /// The cause of all alerts of a code is gone.
    mutating func endAlerts(code: String) {
        end { $0.alert.code == code }
    }

    private mutating func end(_ isOver: (WirePlaybackAlertRecord) -> Bool) {
        for (id, record) in alerts.sorted(by: { $0.key < $1.key }) where isOver(record) {
            alerts[id] = nil
            book.mark(.alert(id))
            pending.commit = true
            pending.publications.append(Publication(.delete, .alert(.playback, id)))
        }
    }

    // MARK: Answers

    /// The first answer to become durable wins; one that comes meanwhile waits to see which it was.
    mutating func answerAlert(_ waiting: WaitingAnswer) throws(Failure) {
        let (command, answer) = (waiting.command, waiting.answer)
        if answering[answer.alert] != nil {
            answering[answer.alert]?.append(waiting)
            return
        }
        let isFirst = try answer.isFirst(after: answers[answer.alert]?.action, to: alerts[answer.alert]?.alert)
        guard isFirst, let record = alerts[answer.alert] else {
            return pending.replies.append(
                (command.id, .success(Self.reply(answer.alert, answer.action, changed: false))))
        }
        var won = WirePlaybackAnswerRecord()
        won.action = answer.action
        won.at = now.wall.milliseconds
        answering[answer.alert] = []
        if waiting.isOverruled { overruled.insert(answer.alert) }
        let id = nextTransaction()
        book.begin(id, .answer(alert: answer.alert, won, request: command.id))
        pending.transactions.append(
            Transaction(
                id: id,
                changes: [.deleting("alert", answer.alert), .putting("answer", answer.alert, won)] + oldAnswers()
                    + outcome(of: waiting, to: record),
                publications: [Publication(.delete, .alert(.playback, answer.alert))],
                answering: (command.id, Self.reply(answer.alert, answer.action, changed: true))))
    }

    /// An answer that has waited for another is given, or refused by what that one was.
    mutating func giveAnswer(_ waiting: WaitingAnswer) {
        do throws(Failure) { try answerAlert(waiting) } catch { pending.refuse(waiting.command.id, error) }
    }

    /// The session as an answer will leave it: stored with the answer, so that it holds if the process dies in between.
    private func outcome(of waiting: WaitingAnswer, to record: WirePlaybackAlertRecord) -> [WireChange] {
        guard var session, concerns(record, session), session.status != .finished else { return [] }
        let action = waiting.answer.action
        switch action {
        case "skip" where session.status.isFailed:
            session.skip = true
            session.skippedAlert = record.alert.id
        case "retry", "accept", "resume", "restart":
            if !waiting.isOverruled { session.status = .loading(plays: true) }
        default:
            return []
        }
        var stored = session.record(now: now, context: context, clean: isStopping)
        if action == "restart" { stored.position = 0 }
        return [.putting(Self.sessionKey.0, Self.sessionKey.1, stored)]
    }

    /// Whoever pauses or stops means what was answered before, too, though it is not done yet. What is stored with those
    /// answers plays; this follows it.
    mutating func overruleAnswers() {
        guard !answering.isEmpty else { return }
        overruled.formUnion(answering.keys)
        for alert in answering.keys {
            for index in answering[alert, default: []].indices { answering[alert]?[index].isOverruled = true }
        }
        book.mark(.session)
        pending.commit = true
    }

    /// Whether an alert is about what is loaded: those about a sound device are, whatever was loaded when they were raised.
    private func concerns(_ record: WirePlaybackAlertRecord, _ session: PlaybackSession) -> Bool {
        record.loadID == session.loadID.text || DeviceAlert.codes.contains(record.alert.code)
    }

    private static func reply(_ alert: String, _ action: String, changed: Bool) -> [UInt8] {
        var reply = WirePlaybackReply()
        reply.changed = changed
        reply.alertAnswered.alert = alert
        reply.alertAnswered.action = action
        return reply.wireBytes
    }

    /// Deletes the oldest answer when a new one makes too many; never one to a device’s alert that keeps its ID.
    private mutating func oldAnswers() -> [WireChange] {
        let kept = Set(output.alertIDs.values)
        guard answers.count >= Self.answersKept,
            let oldest = answers.filter({ !kept.contains($0.key) })
                .min(by: { ($0.value.at, $0.key) < ($1.value.at, $1.key) })
        else { return [] }
        answers[oldest.key] = nil
        return [.deleting("answer", oldest.key)]
    }

    /// An answer is durable: now it is done.
    mutating func settle(_ alert: String, _ answer: WirePlaybackAnswerRecord) {
        let record = alerts.removeValue(forKey: alert)
        answers[alert] = answer
        let isOverruled = overruled.remove(alert) != nil
        if let record, let session, concerns(record, session) {
            switch answer.action {
            case "retry":
                if !isOverruled { play() }
            case "accept":
                self.session?.audio.acceptReplacement()
                if !isOverruled { play() }
            case "resume":
                if !isOverruled { resume() }
            case "skip" where session.status.isFailed:
                self.session?.skip = true
                self.session?.skippedAlert = alert
                saveSession()
            case "restart":
                move(to: .zero)
                if !isOverruled { play() }
            default:
                break
            }
        }
        (answering.removeValue(forKey: alert) ?? []).forEach { giveAnswer($0) }
    }
}
