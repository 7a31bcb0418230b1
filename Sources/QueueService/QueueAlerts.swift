import BusKit
import PodcastModel
import WireMessages

/// What the queue tells its listener without having been asked: that new episodes did not fit. One alert a podcast at a
/// time; each stands until it is answered, or its podcast or rule is gone.
struct QueueAlerts: Sendable {
    /// So many answers are remembered, for clients that answer what another one has answered.
    private static let answersKept = 64
    private static let fullCode = "queueFull"

    private(set) var alerts: [String: WireAlert] = [:]
    private var answers: [String: String] = [:]

    /// Takes a stored record over; false: it is none of these.
    mutating func restore(_ record: StoredRecord) throws -> Bool {
        switch record.collection {
        case "alert": alerts[record.key] = try WireAlert(wireBytes: record.value)
        case "answer": answers[record.key] = try WireAlertAnswered(wireBytes: record.value).action
        default: return false
        }
        return true
    }

    /// New episodes of a podcast did not fit into the queue of its rule. Takes the place of what was said of it before.
    mutating func raiseFull(
        _ queue: NamedQueue, _ episodes: [WireEpisode], of podcast: String, now: Timestamp
    ) -> OwnerChange {
        guard let first = episodes.first else { return OwnerChange() }
        var change = clear(podcast: podcast)
        let title = first.podcastTitle.isEmpty ? podcast : first.podcastTitle
        let what =
            episodes.count == 1
            ? "“\(first.title)” of “\(title)” was" : "\(episodes.count) new episodes of “\(title)” were"
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(Self.fullCode)/\(podcast)/\(now.milliseconds)").text
        alert.code = Self.fullCode
        alert.title = "\(QueueName.shown(queue.name)) is full"
        alert.message =
            "\(what) not added: it takes at most \(queue.limit) entries. Remove some, or raise its limit, and add what you want to hear."
        alert.severity = .warning
        alert.actions = ["dismiss"]
        alert.raisedAt = now.milliseconds
        alert.owner = ServiceName.queue.text
        alert.podcast = podcast
        if episodes.count == 1 { alert.episode = first.id }
        alerts[alert.id] = alert
        change.changes.append(.putting("alert", alert.id, alert))
        change.publications.append(Publication(.put, .alert(.queue, alert.id), alert.wireBytes))
        return change
    }

    /// What was said of a podcast is over.
    mutating func clear(podcast: String) -> OwnerChange {
        var change = OwnerChange()
        for id in alerts.values.filter({ $0.podcast == podcast }).map(\.id).sorted() { end(id, &change) }
        return change
    }

    /// An answer. Nil: the same one was given before.
    ///
    /// - Throws: see `WireAnswerAlert.isFirst`.
    mutating func answer(_ answer: WireAnswerAlert) throws(Failure) -> OwnerChange? {
        guard try answer.isFirst(after: answers[answer.alert], to: alerts[answer.alert]) else { return nil }
        var change = OwnerChange()
        end(answer.alert, &change)
        if answers.count >= Self.answersKept, let other = answers.keys.sorted().first {
            answers[other] = nil
            change.changes.append(.deleting("answer", other))
        }
        answers[answer.alert] = answer.action
        change.changes.append(Self.record(answer.alert, answer.action))
        return change
    }

    private mutating func end(_ id: String, _ change: inout OwnerChange) {
        alerts[id] = nil
        change.changes.append(.deleting("alert", id))
        change.publications.append(Publication(.delete, .alert(.queue, id)))
    }

    private static func record(_ id: String, _ action: String) -> WireChange {
        var answered = WireAlertAnswered()
        answered.alert = id
        answered.action = action
        return .putting("answer", id, answered)
    }

    /// Everything, for a database that has lost some.
    var everything: [WireChange] {
        alerts.sorted { $0.key < $1.key }.map { .putting("alert", $0.key, $0.value) }
            + answers.sorted { $0.key < $1.key }.map { Self.record($0.key, $0.value) }
    }

    /// Everything, for the stream.
    var retained: [Publication] {
        alerts.sorted { $0.key < $1.key }.map { Publication(.put, .alert(.queue, $0.key), $0.value.wireBytes) }
    }
}
