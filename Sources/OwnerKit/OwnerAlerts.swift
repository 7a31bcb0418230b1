package import BusKit
package import PodcastModel
package import WireMessages

/// An owner’s alerts, and the newest answers that they got: for clients that answer what another one has answered.
///
/// Stored as the records `alert`/<id> and `answer`/<id>. Every change of it says what is to be written and published.
package struct OwnerAlerts: Sendable {
    /// The maximum number of answers that are remembered; the oldest go first.
    package static let answerLimit = 64

    private let owner: ServiceName
    /// The alerts that stand, by id.
    package private(set) var standing: [String: WireAlert] = [:]
    /// The answers, by the alert’s id.
    private var answers: [String: WireAlertAnswerRecord] = [:]

    /// An owner’s, without any.
    package init(_ owner: ServiceName) {
        self.owner = owner
    }

    /// Takes a stored record over; false if it is of another kind.
    package mutating func restore(_ record: StoredRecord) throws -> Bool {
        switch record.collection {
        case "alert": standing[record.key] = try WireAlert(wireBytes: record.value)
        case "answer":
            var answer = try WireAlertAnswerRecord(wireBytes: record.value)
            // An older form names the alert where this one names the answer.
            if answer.action == record.key { answer.action = try WireAlertAnswered(wireBytes: record.value).action }
            answers[record.key] = answer
        default: return false
        }
        return true
    }

    /// Whether an alert has been answered, as far as that is remembered.
    package func isAnswered(_ id: String) -> Bool { answers[id] != nil }

    /// Raises an alert, in place of one of the same id.
    package mutating func raise(_ alert: WireAlert) -> OwnerChange {
        standing[alert.id] = alert
        return OwnerChange(
            changes: [.putting("alert", alert.id, alert)],
            publications: [Publication(.put, .alert(owner, alert.id), alert.wireBytes)])
    }

    /// Ends the alerts whose cause is gone.
    package mutating func end(where isOver: (WireAlert) -> Bool) -> OwnerChange {
        var change = OwnerChange()
        for id in standing.values.filter(isOver).map(\.id).sorted() { change.append(end(id)) }
        return change
    }

    /// Answers an alert: the first answer wins. Nil: the same one was given before, and nothing is to be done.
    ///
    /// - Throws: see `WireAnswerAlert.isFirst`.
    package mutating func answer(_ answer: WireAnswerAlert, at time: Timestamp) throws(Failure) -> OwnerChange? {
        let isFirst = try answer.isFirst(after: answers[answer.alert]?.action, to: standing[answer.alert])
        guard isFirst else { return nil }
        var change = end(answer.alert)
        var record = WireAlertAnswerRecord()
        record.action = answer.action
        record.at = time.milliseconds
        answers[answer.alert] = record
        change.changes.append(.putting("answer", answer.alert, record))
        let others = answers.filter { $0.key != answer.alert }
        if answers.count > Self.answerLimit,
            let oldest = others.min(by: { ($0.value.at, $0.key) < ($1.value.at, $1.key) })?.key
        {
            answers[oldest] = nil
            change.changes.append(.deleting("answer", oldest))
        }
        return change
    }

    private mutating func end(_ id: String) -> OwnerChange {
        standing[id] = nil
        return OwnerChange(
            changes: [.deleting("alert", id)], publications: [Publication(.delete, .alert(owner, id))])
    }

    /// Everything, for a database that has lost some.
    package var everything: [WireChange] {
        standing.sorted { $0.key < $1.key }.map { .putting("alert", $0.key, $0.value) }
            + answers.sorted { $0.key < $1.key }.map { .putting("answer", $0.key, $0.value) }
    }

    /// Everything, for the stream.
    package var retained: [Publication] {
        standing.sorted { $0.key < $1.key }.map { Publication(.put, .alert(owner, $0.key), $0.value.wireBytes) }
    }
}
