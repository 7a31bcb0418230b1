package import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// An owner’s alerts and their newest answers, which detect repeated ones. They are stored as the records `alert`/<id>
/// and `answer`/<id>.
///
/// An owner that keeps its alerts in its speculative state calls `answer`; an owner that may only act on a durable
/// answer uses `PendingAnswers`.
package struct OwnerAlerts: Sendable {
    /// The maximum number of stored answers; the oldest are evicted first.
    package static let answerLimit = 64

    private let owner: ServiceName
    private var alerts = KeyedRecords<WireAlert>("alert")
    private var answers = KeyedRecords<WireAlertAnswerRecord>("answer", limit: answerLimit) { $0.at }

    package init(_ owner: ServiceName) {
        self.owner = owner
    }

    /// Restores a record; false if it is of another kind.
    package mutating func restore(_ record: StoredRecord) throws -> Bool {
        var record = record
        // In an older format the key names the alert instead of the answer.
        if record.collection == answers.collection,
            try WireAlertAnswerRecord(wireBytes: record.value).action == record.key
        {
            let action = try WireAlertAnswered(wireBytes: record.value).action
            record.value = WireAlertAnswerRecord.with { $0.action = action }.wireBytes
        }
        return try alerts.restore(record) || answers.restore(record)
    }

    /// The alerts without an answer whose cause hasn’t ended, by ID.
    package var active: [String: WireAlert] { alerts.values }

    /// Whether an alert has a stored answer.
    package func isAnswered(_ id: String) -> Bool { answers[id] != nil }

    // MARK: Raising and ending

    /// Raises an alert, replacing one with the same ID.
    package mutating func raise(_ alert: WireAlert) -> OwnerChange {
        var change = OwnerChange(publications: [Publication(.put, .alert(owner, alert.id), alert.wireBytes)])
        alerts.put(alert.id, alert, &change.changes)
        return change
    }

    /// Raises an alert unless an alert with its code and subject is active.
    package mutating func raise(unlessActive alert: WireAlert) -> OwnerChange {
        let isActive = active.values.contains { $0.code == alert.code && $0.subject == alert.subject }
        return isActive ? OwnerChange() : raise(alert)
    }

    /// Removes the alerts whose cause has ended.
    package mutating func end(where isOver: (WireAlert) -> Bool) -> OwnerChange {
        var change = OwnerChange()
        for (id, alert) in alerts.sorted where isOver(alert) { end(id, &change) }
        return change
    }

    private mutating func end(_ id: String, _ change: inout OwnerChange) {
        alerts.remove(id, &change.changes)
        change.publications.append(Publication(.delete, .alert(owner, id)))
    }

    // MARK: Answers

    /// Answers an alert: the first answer wins. Returns nil if the same answer was given before.
    ///
    /// - Parameter kept: the alerts whose answers must not be evicted.
    /// - Throws: see `WireAnswerAlert.isFirst`.
    package mutating func answer(
        _ answer: WireAnswerAlert, at time: Timestamp, keeping kept: Set<String> = []
    ) throws(Failure) -> OwnerChange? {
        guard try answer.isFirst(after: answers[answer.alert]?.action, to: alerts[answer.alert]) else { return nil }
        return record(answer, at: time, keeping: kept)
    }

    /// Records an answer, whether or not its alert still exists.
    fileprivate mutating func record(
        _ answer: WireAnswerAlert, at time: Timestamp, keeping kept: Set<String>
    ) -> OwnerChange {
        var change = OwnerChange()
        end(answer.alert, &change)
        let stored = WireAlertAnswerRecord.with {
            $0.action = answer.action
            $0.at = time.milliseconds
        }
        answers.put(answer.alert, stored, keeping: kept, &change.changes)
        return change
    }

    // MARK: Records

    /// The write of an alert’s current value for the database; a deletion if there is no alert.
    package func change(_ id: String) -> WireChange { alerts.change(id) }

    package var everything: [WireChange] { alerts.everything + answers.everything }

    package var retained: [Publication] {
        alerts.sorted.map { Publication(.put, .alert(owner, $0.key), $0.value.wireBytes) }
    }
}

/// Answers that are being committed, each with the requests that wait for it.
///
/// The alert remains until its answer is durable. A request that answers it meanwhile waits for the outcome.
package struct PendingAnswers<Request: Sendable>: Sendable {
    package enum Start: Sendable {
        /// The answer takes effect when this is durable: the owner must call `committed`, or `refused` on failure.
        case commit(OwnerChange)
        /// Another answer to this alert is being written. `committed` or `refused` returns the request.
        case joined
        /// The same answer was given before; nothing changes.
        case repeated
    }

    private struct Pending: Sendable {
        var answer: WireAnswerAlert
        var at: Timestamp
        var requests: [Request]
    }

    private var pending: [String: Pending] = [:]

    package init() {}

    package var alerts: Set<String> { Set(pending.keys) }

    package func contains(_ alert: String) -> Bool { pending[alert] != nil }

    /// Starts committing the answer to an alert. While an answer is pending, a further request waits for its outcome.
    ///
    /// - Throws: the failures of `WireAnswerAlert.isFirst`.
    package mutating func begin(
        _ answer: WireAnswerAlert, by request: Request, to alerts: OwnerAlerts, at time: Timestamp,
        keeping kept: Set<String> = []
    ) throws(Failure) -> Start {
        if pending[answer.alert] != nil {
            pending[answer.alert]?.requests.append(request)
            return .joined
        }
        var alerts = alerts
        guard let change = try alerts.answer(answer, at: time, keeping: kept) else { return .repeated }
        pending[answer.alert] = Pending(answer: answer, at: time, requests: [])
        return .commit(change)
    }

    /// Records that the answer is durable, and removes the alert.
    /// - Returns: the alert before its removal, and the waiting requests, which must be handled again.
    package mutating func committed(
        _ alert: String, in alerts: inout OwnerAlerts, keeping kept: Set<String> = []
    ) -> (alert: WireAlert?, requests: [Request]) {
        guard let done = pending.removeValue(forKey: alert) else { return (nil, []) }
        let answered = alerts.active[alert]
        // The alert may have ended meanwhile: the answer is recorded all the same.
        _ = alerts.record(done.answer, at: done.at, keeping: kept)
        return (answered, done.requests)
    }

    /// Records that the answer couldn’t be saved: the alert remains.
    /// - Returns: the waiting requests, which must be handled again.
    package mutating func refused(_ alert: String) -> [Request] {
        pending.removeValue(forKey: alert)?.requests ?? []
    }
}
