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

    /// What an answer leads to.
    enum Answering {
        /// It is decided.
        case replied([PersistenceMachine.Effect])
        /// It counts when this is written.
        case write([WireChange])
        /// It counts at once; the alert was no record.
        case volatile([PersistenceMachine.Effect])
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

    /// Shows an alert; with one of the same code there already, only if it is to be replaced.
    mutating func raise(_ alert: WireAlert, replacing: Bool) -> [PersistenceMachine.Effect] {
        let isThere = alerts.standing.values.contains { $0.code == alert.code }
        if isThere, !replacing { return [] }
        return clear(code: alert.code) + [.publish(alerts.raise(alert).publications)]
    }

    /// The cause of the passing alerts of this code is gone.
    mutating func clear(code: String) -> [PersistenceMachine.Effect] {
        let durable = durable
        let gone = alerts.end { $0.code == code && !durable.contains($0.id) }.publications
        return gone.isEmpty ? [] : [.publish(gone)]
    }

    /// The first answer wins; the same one again is answered alike, another one is refused.
    mutating func answer(
        _ answer: WireAnswerAlert, _ ticket: PersistenceMachine.Ticket, at now: Timestamp
    ) -> Answering {
        let id = answer.alert
        var next = alerts
        do throws(Failure) {
            if let earlier = settling[id] {
                _ = try answer.isFirst(after: earlier.answer.action, to: nil)
                settling[id]?.tickets.append(ticket)
                return .replied([])
            }
            guard let change = try next.answer(answer, at: now) else {
                return .replied([Self.reply(ticket, answer, changed: false)])
            }
            guard durable.contains(id) else {
                alerts = next
                return .volatile([.publish(change.publications), Self.reply(ticket, answer, changed: true)])
            }
            settling[id] = Settling(answer: answer, at: now, tickets: [ticket])
            return .write(change.changes)
        } catch {
            return .replied([.reply(ticket, .failure(error))])
        }
    }

    /// An answer is written, or cannot be.
    mutating func settle(_ id: String, _ failure: Failure?) -> [PersistenceMachine.Effect] {
        guard let settled = settling.removeValue(forKey: id) else { return [] }
        if let failure { return settled.tickets.map { .reply($0, .failure(failure)) } }
        durable.remove(id)
        let change = try? alerts.answer(settled.answer, at: settled.at)
        return (change.map { [.publish($0.publications)] } ?? [])
            + settled.tickets.enumerated().map { Self.reply($1, settled.answer, changed: $0 == 0) }
    }

    private static func reply(
        _ ticket: PersistenceMachine.Ticket, _ answer: WireAnswerAlert, changed: Bool
    ) -> PersistenceMachine.Effect {
        var reply = WirePersistenceReply()
        reply.alertAnswered = answer.answered(changed: changed)
        return .reply(ticket, .success(reply.wireBytes))
    }
}
