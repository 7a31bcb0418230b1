import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Unsubscribes from podcasts, and forgets them: deletes everything about them, at once or after a delay in which that
// can be undone.

extension FeedsMachine {
    /// The longest delay of a deletion, in seconds.
    private static let longestDelay: UInt32 = 30 * 86_400
    /// The maximum time until the podcasts to delete are looked for again: the wall clock may be set meanwhile.
    private static let longestWait = Duration.seconds(3_600)

    mutating func unsubscribe(
        _ command: WireUnsubscribe, _ request: Command, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        guard command.delay <= Self.longestDelay, command.forget || command.delay == 0 else {
            throw Failure(.invalidArgument, "Podcasts can be forgotten at once, or up to 30 days later.")
        }
        var change = PodcastsChange()
        try decide(command.podcasts, &change) { podcast in
            if !command.forget {
                guard podcast.subscribed else { return .keep }
            } else if command.delay > 0 {
                guard podcast.forgetAt == 0 else { return .keep }
                podcast.wasSubscribed = podcast.subscribed
                podcast.forgetAt = now.wall.milliseconds + Int64(command.delay) * 1_000
            }
            podcast.unsubscribe()
            return command.forget && command.delay == 0 ? .delete : .store(.removed)
        }
        commit(change, answering: request, now: now, &effects)
    }

    /// Keeps podcasts that were to be deleted later.
    mutating func undoForget(
        _ undo: WireUndoForget, _ request: Command, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        var change = PodcastsChange()
        try decide(undo.podcasts, &change) { podcast in
            guard podcast.forgetAt > 0 else { return .keep }
            if podcast.wasSubscribed { (podcast.subscribed, podcast.nextRefresh) = (true, now.wall.milliseconds) }
            podcast.keep()
            return .store(.updated)
        }
        commit(change, answering: request, now: now, &effects)
    }

    // MARK: - Deletions

    /// Sets the timer for the podcast that is to be deleted first.
    func scheduleForgetting(now: Moment, _ effects: inout [Effect]) {
        let first = library.current.all.values.lazy.map(\.podcast.forgetAt).filter { $0 > 0 }.min()
        let wait = first.map { min(.milliseconds(max(0, $0 - now.wall.milliseconds)), Self.longestWait) }
        effects.append(.timer(.forgetting, at: wait.map { now.monotonic.advanced(by: $0) }))
    }

    /// Deletes the podcasts whose time has come.
    mutating func forgetDue(now: Moment, _ effects: inout [Effect]) {
        var change = PodcastsChange()
        let due = library.current.all.filter { _, subscription in
            subscription.podcast.forgetAt > 0 && subscription.podcast.forgetAt <= now.wall.milliseconds
        }
        for (id, subscription) in due.sorted(by: { $0.key < $1.key }).prefix(Self.nameLimit) {
            change.delete(id, subscription)
        }
        commit(change, answering: nil, now: now, &effects)
    }

    // MARK: - Changes

    /// What happens to one of the named podcasts.
    private enum Decision {
        case keep
        case store(WireFeedResult.Kind)
        case delete
    }

    private func decide(
        _ podcasts: [String], _ change: inout PodcastsChange, _ decision: (inout WirePodcast) -> Decision
    ) throws(Failure) {
        guard !podcasts.isEmpty, podcasts.count <= Self.nameLimit else {
            throw Failure(.invalidArgument, "Name 1 to \(Self.nameLimit) podcasts in one command.")
        }
        for text in podcasts {
            guard let id = PodcastID(text), var subscription = change.next[id] ?? library.current[id] else {
                change.results.append(failed(text, Failure(.notFound, "There is no podcast “\(text.prefix(80))”.")))
                continue
            }
            let kind: WireFeedResult.Kind
            switch decision(&subscription.podcast) {
            case .keep: kind = .unchanged
            case .store(let effect):
                change.store(id, subscription)
                kind = effect
            case .delete:
                change.delete(id, subscription)
                kind = .removed
            }
            change.results.append(result(kind, subscription.podcast.url, subscription.podcast))
        }
    }

    /// Commits a change. One without an effect is only answered.
    private mutating func commit(
        _ change: PodcastsChange, answering request: Command?, now: Moment, _ effects: inout [Effect]
    ) {
        let reply = Self.stored(.with { $0.results = change.results })
        if !change.next.isEmpty {
            commit(
                change.changes, change.publications, for: Purpose(forgotten: change.forgotten),
                answering: request.map { ($0.id, reply) }, &effects
            ) { library in
                for (id, subscription) in change.next { library[id] = subscription }
            }
        } else if let request {
            effects.append(.reply(request.id, .success(reply)))
        }
        scheduleNext(now: now, &effects)
        scheduleForgetting(now: now, &effects)
    }
}

/// A change of several podcasts in one transaction.
private struct PodcastsChange {
    var results: [WireFeedResult] = []
    /// The new subscriptions; nil for those that are deleted.
    private(set) var next: [PodcastID: FeedsMachine.Subscription?] = [:]
    private(set) var changes: [WireChange] = []
    private(set) var publications: [Publication] = []

    var forgotten: [PodcastID] { next.filter { $0.value == nil }.map(\.key) }

    mutating func store(_ id: PodcastID, _ subscription: FeedsMachine.Subscription) {
        next.updateValue(subscription, forKey: id)
        changes.append(FeedsMachine.change(storing: subscription.podcast))
        publications.append(FeedsMachine.publication(subscription.podcast))
    }

    mutating func delete(_ id: PodcastID, _ subscription: FeedsMachine.Subscription) {
        next.updateValue(nil, forKey: id)
        let episodes = subscription.seen.ids
        changes += FeedsMachine.deletion(of: id)
        publications.append(Publication(.delete, .podcast(id.text)))
        publications += WireEpisodesChanged.events(of: id, episodes.count) { $0.removed = Array(episodes[$1]) }
    }
}

extension WirePodcast {
    /// Subscribes from `time` on; the podcast is no longer deleted.
    mutating func subscribe(at time: Timestamp) {
        (subscribed, subscribedAt) = (true, time.milliseconds)
        keep()
    }

    /// Ends the subscription; everything else is kept.
    mutating func unsubscribe() { (subscribed, nextRefresh) = (false, 0) }

    fileprivate mutating func keep() { (forgetAt, wasSubscribed) = (0, false) }
}
