import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// The state of a connection and its observers. One task delivers the updates; any task may call all other members.
///
/// Buffers are filled under the lock, so that each gets the states in order. A released buffer is removed when the
/// next update is delivered.
final class FleetHub: Sendable {
    private struct Subscriber {
        weak var feed: FleetUpdateBuffer?
    }

    private struct Shared {
        var state: FleetState
        var hasState = false
        var isEnded = false
        var subscribers: [Subscriber] = []

        mutating func notify(_ changes: Set<FleetChange>) {
            subscribers.removeAll { $0.feed == nil }
            for subscriber in subscribers { subscriber.feed?.push(FleetUpdate(state: state, changes: changes)) }
        }
    }

    private let shared: NIOLockedValueBox<Shared>

    /// The maximum number of buffered updates for a slow consumer; each holds a state.
    static let updateLimit = 256

    /// Creates the hub of a connection that observes `selection`; nil for nothing.
    init(observing selection: TopicSelection?) {
        shared = NIOLockedValueBox(Shared(state: FleetState(FleetView(), observing: selection)))
    }

    var state: FleetState { shared.withLockedValue { $0.state } }

    func apply(_ update: ReplicaUpdate) {
        shared.withLockedValue { shared in
            guard !shared.isEnded else { return }
            let changes = shared.state.view.apply(update)
            let isFirst = !shared.hasState && shared.state.connection == .live
            if isFirst { shared.hasState = true }
            guard shared.hasState, !changes.isEmpty else { return }
            shared.notify(isFirst ? [.everything] : changes)
        }
    }

    /// Ends all sequences.
    ///
    /// - Parameter failure: the reason for the end; nil if it was requested.
    func end(_ failure: Failure?) {
        let subscribers = shared.withLockedValue { shared -> [Subscriber] in
            guard !shared.isEnded else { return [] }
            shared.isEnded = true
            shared.state.ending = .some(failure)
            shared.notify([.connection])
            defer { shared.subscribers = [] }
            return shared.subscribers
        }
        for subscriber in subscribers { subscriber.feed?.finish() }
    }

    // MARK: - Observing

    /// Returns a buffer of updates that starts with the state if there is one; a limit of 1 keeps the newest.
    func updates(limit: Int = updateLimit) -> FleetUpdateBuffer {
        let feed = FleetUpdateBuffer(limit: limit)
        let isObserved = shared.withLockedValue { shared in
            guard !shared.isEnded, shared.state.selection != nil else { return false }
            shared.subscribers.append(Subscriber(feed: feed))
            if shared.hasState { feed.push(FleetUpdate(state: shared.state, changes: [.everything])) }
            return true
        }
        if !isObserved { feed.finish() }
        return feed
    }

    /// Repeats the state in a buffer while a value is counting, until the buffer is released.
    func repeatState(in feed: FleetUpdateBuffer, every tick: Duration) {
        let tick = max(tick, .milliseconds(10))
        Task { [weak feed] in
            while true {
                try? await Task.sleep(for: tick)
                guard let feed else { return }
                repeatState(in: feed)
            }
        }
    }

    func repeatState(in feed: FleetUpdateBuffer) {
        shared.withLockedValue { shared in
            guard !shared.isEnded, shared.hasState, shared.state.player.isCounting else { return }
            feed.push(FleetUpdate(state: shared.state, changes: []))
        }
    }

    /// Returns the first state for which `condition` holds, or the newest on timeout or cancellation.
    ///
    /// - Returns: the state, and whether the condition holds.
    func first(
        within limit: Duration, where condition: @escaping @Sendable (FleetState) -> Bool
    ) async -> (state: FleetState, isMet: Bool) {
        let feed = updates(limit: 1)
        // Cancelling the wait ends the buffer.
        let timer = Task {
            try? await Task.sleep(for: limit)
            feed.finish()
        }
        defer { timer.cancel() }
        while let state = await feed.next()?.state {
            if condition(state) { return (state, true) }
        }
        return (state, false)
    }
}
