import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The alerts of the database’s service: those that are records, and those that end with their cause.
struct PersistenceAlertStore: Sendable {
    private var alerts = OwnerAlerts(.persistence)
    /// Alerts that are records.
    private var durable: Set<String> = []
    /// Answers that are being written, with the requests that wait for them.
    private var pendingAnswers: [String: PendingAnswer] = [:]

    private struct PendingAnswer: Sendable {
        var answer: WireAnswerAlert
        var at: Timestamp
        var tickets: [PersistenceMachine.Ticket]
    }

    /// The result of an answer.
    enum Result {
        /// It has been replied to, or joins one that is being written.
        case replied
        /// It counts when these changes are durable.
        case write([WireChange])
        /// It counts at once; the alert was no record.
        case ended
    }

    init(_ records: [WireRecord]) {
        for record in records {
            let stored = StoredRecord(collection: record.collection, key: record.key, value: [UInt8](record.value))
            guard (try? alerts.restore(stored)) == true, alerts.standing[record.key] != nil else { continue }
            durable.insert(record.key)
        }
    }

    /// Every alert as it stands on the stream.
    var publications: [Publication] { alerts.retained }

    /// Raises an alert; while one of the same code stands, only if it is to be replaced.
    mutating func raise(_ alert: WireAlert, replacing: Bool, _ effects: inout [PersistenceMachine.Effect]) {
        guard replacing || !alerts.standing.values.contains(where: { $0.code == alert.code }) else { return }
        clear(code: alert.code, &effects)
        effects.append(.publish(alerts.raise(alert).publications))
    }

    /// Ends the alerts of this code that are no records: their cause is gone.
    mutating func clear(code: String, _ effects: inout [PersistenceMachine.Effect]) {
        let durable = durable
        let gone = alerts.end { $0.code == code && !durable.contains($0.id) }.publications
        if !gone.isEmpty { effects.append(.publish(gone)) }
    }

    /// The first answer wins; the same one again is replied to alike, another one is refused.
    mutating func answer(
        _ answer: WireAnswerAlert, _ ticket: PersistenceMachine.Ticket, at now: Timestamp,
        _ effects: inout [PersistenceMachine.Effect]
    ) -> Result {
        let id = answer.alert
        var next = alerts
        do throws(Failure) {
            if let earlier = pendingAnswers[id] {
                _ = try answer.isFirst(after: earlier.answer.action, to: nil)
                pendingAnswers[id]?.tickets.append(ticket)
                return .replied
            }
            guard let change = try next.answer(answer, at: now) else {
                effects.append(Self.reply(ticket, answer, changed: false))
                return .replied
            }
            if durable.contains(id) {
                pendingAnswers[id] = PendingAnswer(answer: answer, at: now, tickets: [ticket])
                return .write(change.changes)
            }
            alerts = next
            effects += [.publish(change.publications), Self.reply(ticket, answer, changed: true)]
            return .ended
        } catch {
            effects.append(.reply(ticket, .failure(error)))
            return .replied
        }
    }

    /// An answer is durable, or could not be saved.
    mutating func answerCommitted(_ id: String, _ failure: Failure?, _ effects: inout [PersistenceMachine.Effect]) {
        guard let pending = pendingAnswers.removeValue(forKey: id) else { return }
        if let failure {
            effects += pending.tickets.map { .reply($0, .failure(failure)) }
            return
        }
        durable.remove(id)
        if let change = try? alerts.answer(pending.answer, at: pending.at) {
            effects.append(.publish(change.publications))
        }
        effects += pending.tickets.enumerated().map { Self.reply($1, pending.answer, changed: $0 == 0) }
    }

    private static func reply(
        _ ticket: PersistenceMachine.Ticket, _ answer: WireAnswerAlert, changed: Bool
    ) -> PersistenceMachine.Effect {
        var reply = WirePersistenceReply()
        reply.alertAnswered = answer.answered(changed: changed)
        return .reply(ticket, .success(reply.wireBytes))
    }
}
