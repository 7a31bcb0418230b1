import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The alerts of the database's service: those that are records, and those that pass with their cause.
struct AlertBoard: Sendable {
    private var alerts = OwnerAlerts(.persistence)
    /// Alerts that are records.
    private var durable: Set<String> = []
    /// Answers that are being written, with those who wait for it.
    private var settling: [String: Settling] = [:]

    private struct Settling: Sendable {
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
            if let earlier = settling[id] {
                _ = try answer.isFirst(after: earlier.answer.action, to: nil)
                settling[id]?.tickets.append(ticket)
                return .replied
            }
            guard let change = try next.answer(answer, at: now) else {
                effects.append(Self.reply(ticket, answer, changed: false))
                return .replied
            }
            if durable.contains(id) {
                settling[id] = Settling(answer: answer, at: now, tickets: [ticket])
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
    mutating func settle(_ id: String, _ failure: Failure?, _ effects: inout [PersistenceMachine.Effect]) {
        guard let settled = settling.removeValue(forKey: id) else { return }
        if let failure {
            effects += settled.tickets.map { .reply($0, .failure(failure)) }
            return
        }
        durable.remove(id)
        if let change = try? alerts.answer(settled.answer, at: settled.at) {
            effects.append(.publish(change.publications))
        }
        effects += settled.tickets.enumerated().map { Self.reply($1, settled.answer, changed: $0 == 0) }
    }

    private static func reply(
        _ ticket: PersistenceMachine.Ticket, _ answer: WireAnswerAlert, changed: Bool
    ) -> PersistenceMachine.Effect {
        var reply = WirePersistenceReply()
        reply.alertAnswered = answer.answered(changed: changed)
        return .reply(ticket, .success(reply.wireBytes))
    }
}
