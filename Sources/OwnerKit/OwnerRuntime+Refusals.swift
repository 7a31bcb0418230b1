import BusKit
import Logging
import PodcastModel
import ProcessKit
import WireMessages

/// The topics whose value the bus has refused as too large. Each is reported once and retried at intervals, so that an owner
/// whose state can’t be published doesn’t put it again and again.
struct RefusedPuts: Sendable {
    /// The wait before a refused value is put again.
    static let retryBackoff = Backoff.constant(.seconds(60))

    private var refused: Set<Topic> = []
    private var retrying: Set<Topic> = []
    /// The time at which the refused values are put again; nil if none is refused.
    private(set) var retryAt: MonotonicTime?

    /// Records a refusal; returns true the first time.
    mutating func insert(_ topic: Topic, now: MonotonicTime) -> Bool {
        let isKnown = retrying.remove(topic) != nil
        if retryAt == nil { retryAt = now.advanced(by: Self.retryBackoff.wait()) }
        return refused.insert(topic).inserted && !isKnown
    }

    func contains(_ topic: Topic) -> Bool { refused.contains(topic) || retrying.contains(topic) }

    /// Returns the topics to put again, and those whose last attempt was accepted.
    mutating func removeDue(now: MonotonicTime) -> (retry: Set<Topic>, accepted: Set<Topic>) {
        guard let retryAt, now >= retryAt else { return ([], []) }
        let accepted = retrying
        retrying = refused
        refused = []
        self.retryAt = retrying.isEmpty ? nil : now.advanced(by: Self.retryBackoff.wait())
        return (retrying, accepted)
    }

    /// Removes a topic after the bus has accepted a put.
    mutating func remove(_ topic: Topic) {
        refused.remove(topic)
        retrying.remove(topic)
    }
}

// Handles publications that the bus refuses.

extension OwnerRuntime {
    mutating func handleRejection(
        of publication: Publication, _ code: String, _ now: Moment, _ effects: inout [Effect]
    ) {
        let topic = publication.topic
        switch (publication.kind, code) {
        case (.put, FailureCode.tooLarge.rawValue):
            guard refusedPuts.insert(topic, now: now.monotonic) else { return }
            effects.append(
                .log(.error, "the bus refuses \(topic): \(publication.payload.count) bytes are too large to publish"))
            publish([Publication(.put, Self.alertTopic(topic), Self.alert(topic, now).wireBytes)], &effects)
        case (.delta, "noPut") where refusedPuts.contains(topic):
            // The delta follows the refused value, whose next put includes it.
            return
        case (.delta, _):
            effects.append(.log(.warning, "the bus refuses a delta of \(topic): \(code)"))
            refusedPuts.remove(topic)
            if hasPublishedRetained { topicsToPutWhole.insert(topic) }
        default:
            effects.append(.log(.warning, "the bus refuses \(publication.kind) of \(topic): \(code)"))
        }
    }

    /// Puts refused values again, and removes the alerts about accepted ones.
    mutating func retryRefusedPuts(_ now: Moment, _ effects: inout [Effect]) {
        let (retry, accepted) = refusedPuts.removeDue(now: now.monotonic)
        publish(accepted.map { Publication(.delete, Self.alertTopic($0)) }, &effects)
        topicsToPutWhole.formUnion(retry)
    }

    private static func alertTopic(_ topic: Topic) -> Topic {
        .alert(Machine.owner, AlertID.derived(from: "tooLarge \(topic)").text)
    }

    private static func alert(_ topic: Topic, _ now: Moment) -> WireAlert {
        WireAlert(
            FailureCode.tooLarge.rawValue, of: Machine.owner, named: "tooLarge \(topic)",
            title: "\(Machine.owner) can’t show all of its state",
            message:
                "“\(topic)” is too large to publish. What you see of it is out of date; your data is saved and complete.",
            severity: .error, actions: [], at: now.wall)
    }
}
