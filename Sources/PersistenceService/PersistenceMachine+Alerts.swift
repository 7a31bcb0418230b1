import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

extension PersistenceMachine {
    /// An answer to an alert, and the request that contains it.
    typealias AlertAnswer = (ticket: Ticket, answer: WireAnswerAlert)

    /// Answers an alert; if the alert is a record, once the answer is durable.
    mutating func answerAlert(_ request: AlertAnswer, now: Moment, _ effects: inout [Effect]) throws(Failure) {
        switch try pendingAnswers.begin(request.answer, by: request, to: alerts, at: now.wall) {
        case .joined: break
        case .repeated: effects.append(Self.reply(to: request, changed: false))
        case .commit(let change):
            guard recordedAlerts.contains(request.answer.alert) else {
                return alertAnswered(request, nil, now: now, &effects)
            }
            enqueue(.own(change.changes), for: .alert(request))
        }
    }

    /// Handles an answer that is durable or could not be saved, and the requests that waited for it.
    mutating func alertAnswered(
        _ request: AlertAnswer, _ failure: Failure?, now: Moment, _ effects: inout [Effect]
    ) {
        let alert = request.answer.alert
        var waiting: [AlertAnswer]
        if let failure {
            waiting = pendingAnswers.refused(alert)
            effects.append(.reply(request.ticket, .failure(failure)))
        } else {
            waiting = pendingAnswers.committed(alert, in: &alerts).requests
            recordedAlerts.remove(alert)
            effects += [
                .publish([Publication(.delete, .alert(.persistence, alert))]), Self.reply(to: request, changed: true),
            ]
            if request.answer.action == "retry" { schedule.wantsBackup = true }
        }
        for request in waiting {
            do throws(Failure) { try answerAlert(request, now: now, &effects) } catch {
                effects.append(.reply(request.ticket, .failure(error)))
            }
        }
    }

    private static func reply(to request: AlertAnswer, changed: Bool) -> Effect {
        let reply = WirePersistenceReply.with { $0.alertAnswered = request.answer.answered(changed: changed) }
        return .reply(request.ticket, .success(reply.wireBytes))
    }

    /// Raises an alert that lasts as long as the process, unless one with its code is raised already.
    mutating func raise(_ alert: WireAlert, _ effects: inout [Effect]) {
        let raised = alerts.raise(unlessActive: alert).publications
        if !raised.isEmpty { effects.append(.publish(raised)) }
    }

    /// Ends the alerts with this code, because their cause no longer exists.
    mutating func endAlerts(code: String, _ effects: inout [Effect]) {
        let ended = alerts.end { $0.code == code }.publications
        if !ended.isEmpty { effects.append(.publish(ended)) }
    }
}
