import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// An alert is answered: it takes effect when it is durable.
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

    /// Answers that have waited for another are given, or refused by what that one was.
    mutating func giveAnswers(_ answers: [PlayerAlerts.Answer]) {
        for answer in answers {
            do throws(Failure) { try answerAlert(answer) } catch { pending.refuse(answer.command.id, error) }
        }
    }

    /// The session as an answer will leave it: stored with the answer, so that it holds if the process dies in between.
    private func outcome(of answer: PlayerAlerts.Answer) -> [WireChange] {
        guard let alert = pending.alerts.standing[answer.answer.alert], let session, session.isConcerned(by: alert),
            let outcome = session.answered(answer.answer, mayPlay: !pending.alerts.isOverruled(answer))
        else { return [] }
        var stored = outcome.record(now: now, context: context, clean: pending.isStopping)
        if answer.answer.action == "restart" { stored.position = 0 }
        return [.putting("session", "current", stored)]
    }

    /// Overrules the answers on their way, as somebody has paused or stopped. The sessions stored with them would play;
    /// this one is stored after them.
    mutating func overruleAnswers() {
        guard pending.alerts.overrule() else { return }
        pending.writes.mark(.session)
        pending.commit = true
    }

    /// Carries out an answer that is durable.
    mutating func carryOut(_ answer: PlayerAlerts.Answer) {
        let id = answer.answer.alert
        let (alert, waiting) = pending.alerts.committed(id, keeping: Set(output.alertIDs.values))
        if let alert, session?.isConcerned(by: alert) == true {
            let plays = session?.carryOut(answer.answer, &pending) == true && !pending.alerts.isOverruled(answer)
            if plays { answer.answer.action == "resume" ? resume() : play() }
        }
        giveAnswers(waiting)
    }
}
