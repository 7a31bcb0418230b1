import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// The state of a connection and those who observe it. Updates come from one task; everything else may be called from any.
///
/// Feeds are filled under the lock, so that each gets the states in order. A feed whose consumer is gone is found when it is
/// filled the next time.
final class FleetHub: Sendable {
    private struct Subscriber {
        weak var states: Feed<FleetState>?
        weak var updates: Feed<FleetUpdate>?
        var isGone: Bool { states == nil && updates == nil }
    }

    private struct Shared {
        var state: FleetState
        var hasState = false
        var isEnded = false
        var subscribers: [Subscriber] = []
    }

    private let shared: NIOLockedValueBox<Shared>

    /// The maximum number of updates that wait for a slow consumer. Each holds a state.
    static let updateLimit = 256

    /// A hub of a connection that observes `selection`; nil: nothing.
    init(observing selection: TopicSelection?) {
        shared = NIOLockedValueBox(Shared(state: FleetState(FleetView(), observing: selection)))
    }

    var state: FleetState { shared.withLockedValue { $0.state } }

    /// Applies an update and tells everybody.
    func apply(_ update: ReplicaUpdate) {
        shared.withLockedValue { shared in
            if !shared.isEnded { Self.apply(update, to: &shared) }
        }
    }

    private static func apply(_ update: ReplicaUpdate, to shared: inout Shared) {
        let changes = shared.state.view.apply(update)
        let isFirst = !shared.hasState && shared.state.connection == .live
        if isFirst { shared.hasState = true }
        guard shared.hasState, !changes.isEmpty else { return }
        tell(isFirst ? [.everything] : Set(changes.compactMap(FleetChange.init)), &shared)
    }

    private static func tell(_ changes: Set<FleetChange>, _ shared: inout Shared) {
        shared.subscribers.removeAll(where: \.isGone)
        for subscriber in shared.subscribers {
            subscriber.states?.push(shared.state)
            subscriber.updates?.push(FleetUpdate(state: shared.state, changes: changes))
        }
    }

    /// Ends all sequences.
    ///
    /// - Parameter failure: why the connection has ended; nil: somebody has ended it.
    func end(_ failure: Failure?) {
        let subscribers = shared.withLockedValue { shared -> [Subscriber] in
            guard !shared.isEnded else { return [] }
            shared.isEnded = true
            shared.state.ending = .some(failure)
            Self.tell([.connection], &shared)
            defer { shared.subscribers = [] }
            return shared.subscribers
        }
        for subscriber in subscribers {
            subscriber.states?.finish()
            subscriber.updates?.finish()
        }
    }

    // MARK: - Observing

    /// A feed of the newest states; the first one is there already if anything is known.
    func states() -> Feed<FleetState> {
        let feed = Feed<FleetState>(limit: 1) { $0 }
        subscribe(Subscriber(states: feed)) { if $0.hasState { feed.push($0.state) } }
        return feed
    }

    /// A feed of all updates from now on.
    func updates() -> Feed<FleetUpdate> {
        let feed = Feed<FleetUpdate>(limit: Self.updateLimit) { FleetUpdate(state: $0.state, changes: [.everything]) }
        subscribe(Subscriber(updates: feed)) {
            if $0.hasState { feed.push(.init(state: $0.state, changes: [.everything])) }
        }
        return feed
    }

    private func subscribe(_ subscriber: Subscriber, _ begin: (Shared) -> Void) {
        let isObserved = shared.withLockedValue { shared in
            guard !shared.isEnded, shared.state.selection != nil else { return false }
            shared.subscribers.append(subscriber)
            begin(shared)
            return true
        }
        guard !isObserved else { return }
        subscriber.states?.finish()
        subscriber.updates?.finish()
    }

    /// Gives a feed the state again while something in it is counting.
    func tick(_ feed: Feed<FleetState>) {
        shared.withLockedValue { shared in
            if !shared.isEnded, shared.hasState, shared.state.player.isCounting { feed.push(shared.state) }
        }
    }

    /// The first state for which `condition` holds, or the newest when the time is over or the task is cancelled.
    ///
    /// - Returns: the state, and whether the condition holds.
    func first(
        within limit: Duration, where condition: @escaping @Sendable (FleetState) -> Bool
    ) async -> (state: FleetState, isMet: Bool) {
        let feed = states()
        // A cancelled wait ends the feed.
        let timer = Task {
            try? await Task.sleep(for: limit)
            feed.finish()
        }
        defer { timer.cancel() }
        while let state = await feed.next() {
            if condition(state) { return (state, true) }
        }
        return (state, false)
    }
}
