import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// An alert is answered: it takes effect when it is durable.
    mutating func answerAlert(_ answer: PlayerAlerts.Answer) throws(Failure) {
        let (id, request) = (answer.answer.alert, answer.command.id)
        var reply = WirePlaybackReply()
        reply.alertAnswered.alert = id
        reply.alertAnswered.action = answer.answer.action
        switch try pending.alerts.begin(answer, kept: Set(output.alertIDs.values), at: now.wall) {
        case .joined: break
        case .repeated:
            reply.changed = false
            pending.reply(request, reply)
        case .commit(let changes, let record):
            reply.changed = true
            let transaction = nextTransaction()
            pending.writes.begin(transaction, .answer(alert: id, request: request))
            pending.transactions.append(
                Transaction(
                    id: transaction, changes: changes + outcome(of: answer, to: record),
                    publications: [Publication(.delete, .alert(.playback, id))],
                    answering: (request, reply.wireBytes)))
        }
    }

    /// Answers that have waited for another are given, or refused by what that one was.
    mutating func giveAnswers(_ answers: ArraySlice<PlayerAlerts.Answer>) {
        for answer in answers {
            do throws(Failure) { try answerAlert(answer) } catch { pending.refuse(answer.command.id, error) }
        }
    }

    /// The session as an answer will leave it: stored with the answer, so that it holds if the process dies in between.
    private func outcome(of answer: PlayerAlerts.Answer, to record: WirePlaybackAlertRecord) -> [WireChange] {
        guard var session, concerns(record, session), session.status != .finished else { return [] }
        let action = answer.answer.action
        switch action {
        case "skip" where session.status.isFailed:
            session.skip = true
            session.skippedAlert = record.alert.id
        case "retry", "accept", "resume", "restart":
            if !answer.isOverruled { session.status = .loading(plays: true) }
        default:
            return []
        }
        var stored = session.record(now: now, context: context, clean: pending.isStopping)
        if action == "restart" { stored.position = 0 }
        return [.putting(Self.sessionKey.0, Self.sessionKey.1, stored)]
    }

    /// Whoever pauses or stops means what was answered before, too. What is stored with those answers plays; this follows it.
    mutating func overruleAnswers() {
        guard pending.alerts.overrule() else { return }
        pending.writes.mark(.session)
        pending.commit = true
    }

    /// Whether an alert is about what is loaded: those about a sound device are, whatever was loaded when they were raised.
    private func concerns(_ record: WirePlaybackAlertRecord, _ session: PlaybackSession) -> Bool {
        record.loadID == session.loadID.text || DeviceAlert.codes.contains(record.alert.code)
    }

    /// An answer is durable: now it is done.
    mutating func carryOutAnswer(to alert: String) {
        guard let (record, answer, waiting) = pending.alerts.committed(alert, at: now.wall) else { return }
        if let record, let session, concerns(record, session) {
            switch answer.answer.action {
            case "accept": self.session?.audio.acceptReplacement()
            case "skip" where session.status.isFailed:
                self.session?.skip = true
                self.session?.skippedAlert = alert
                pending.saveSession()
            case "restart": self.session?.move(to: .zero, &pending)
            default: break
            }
            switch answer.answer.action {
            case "retry", "accept", "restart": if !answer.isOverruled { play() }
            case "resume": if !answer.isOverruled { resume() }
            default: break
            }
        }
        giveAnswers(waiting)
    }
}
