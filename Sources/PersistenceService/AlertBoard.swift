import BusKit
import PodcastModel
import WireMessages

/// The alerts of the database's service: those that are records, and those that pass with their cause.
struct AlertBoard: Sendable {
    private var alerts: [String: WireAlert] = [:]
    /// The winning answers, by alert.
    private var answers: [String: String] = [:]
    /// Alerts that are records.
    private var durable: Set<String> = []
    /// Answers that are being written, with those who wait for it.
    private var settling: [String: (action: String, tickets: [PersistenceMachine.Ticket])] = [:]

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
            if record.collection == PersistenceAlerts.answers {
                answers[record.key] = (try? WireAlertAnswered(wireBytes: [UInt8](record.value)))?.action
            } else if record.collection == PersistenceAlerts.collection,
                let alert = try? WireAlert(wireBytes: [UInt8](record.value))
            {
                alerts[record.key] = alert
                durable.insert(record.key)
            }
        }
    }

    /// Every alert as it stands on the stream.
    var publications: [Publication] {
        alerts.values.sorted { $0.id < $1.id }.map { Publication(.put, .alert(.persistence, $0.id), $0.wireBytes) }
    }

    /// Shows an alert; with one of the same code there already, only if it is to be replaced.
    mutating func raise(_ alert: WireAlert, replacing: Bool) -> [PersistenceMachine.Effect] {
        let isThere = alerts.values.contains { $0.code == alert.code }
        if isThere, !replacing { return [] }
        let cleared = clear(code: alert.code)
        alerts[alert.id] = alert
        return cleared + [.publish([Publication(.put, .alert(.persistence, alert.id), alert.wireBytes)])]
    }

    /// The cause of the passing alerts of this code is gone.
    mutating func clear(code: String) -> [PersistenceMachine.Effect] {
        let gone = alerts.values.filter { $0.code == code && !durable.contains($0.id) }.map(\.id).sorted()
        return gone.map { remove($0) }
    }

    private mutating func remove(_ id: String) -> PersistenceMachine.Effect {
        alerts[id] = nil
        durable.remove(id)
        return .publish([Publication(.delete, .alert(.persistence, id))])
    }

    /// The first answer wins; the same one again is answered alike, another one is refused.
    mutating func answer(_ answer: WireAnswerAlert, _ ticket: PersistenceMachine.Ticket) -> Answering {
        let id = answer.alert
        do throws(Failure) {
            guard try answer.isFirst(after: answers[id] ?? settling[id]?.action, to: alerts[id]) else {
                if answers[id] != nil { return .replied([Self.reply(ticket, id, answer.action)]) }
                settling[id]?.tickets.append(ticket)
                return .replied([])
            }
        } catch {
            return .replied([.reply(ticket, .failure(error))])
        }
        guard durable.contains(id) else {
            answers[id] = answer.action
            return .volatile([remove(id), Self.reply(ticket, id, answer.action)])
        }
        settling[id] = (answer.action, [ticket])
        var winner = WireAlertAnswered()
        winner.alert = id
        winner.action = answer.action
        return .write([.deleting(PersistenceAlerts.collection, id), .putting(PersistenceAlerts.answers, id, winner)])
    }

    /// An answer is written, or cannot be.
    mutating func settle(_ id: String, _ failure: Failure?) -> [PersistenceMachine.Effect] {
        guard let settled = settling.removeValue(forKey: id) else { return [] }
        if let failure { return settled.tickets.map { .reply($0, .failure(failure)) } }
        answers[id] = settled.action
        return [remove(id)] + settled.tickets.map { Self.reply($0, id, settled.action) }
    }

    private static func reply(
        _ ticket: PersistenceMachine.Ticket, _ alert: String, _ action: String
    ) -> PersistenceMachine.Effect {
        var reply = WirePersistenceReply()
        reply.alertAnswered.alert = alert
        reply.alertAnswered.action = action
        return .reply(ticket, .success(reply.wireBytes))
    }
}
