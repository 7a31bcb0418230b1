import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// The state of a connection and those who observe it. Updates come from one task; everything else may be called from any.
///
/// Subscribers are told under the lock, so that each gets the states in order. No handler of a stream’s end may take the lock:
/// it runs while the runtime holds a lock of the cancelled task, which telling that task needs too. A stream that has ended is
/// found when it is told the next time.
final class FleetHub: Sendable {
    private struct ChangeSubscriber {
        let continuation: AsyncStream<FleetChange>.Continuation
        /// Whether changes were dropped that a `.everything` must stand for.
        var hasMissed = false
    }

    private struct Shared {
        var view = FleetView()
        var hasState = false
        var isEnded = false
        var nextID: UInt64 = 0
        var states: [UInt64: AsyncStream<FleetState>.Continuation] = [:]
        var changes: [UInt64: ChangeSubscriber] = [:]
    }

    private let shared = NIOLockedValueBox(Shared())
    private let observes: Bool

    /// The shortest time between two ticks.
    private static let shortestTick = Duration.milliseconds(10)
    /// The maximum number of changes that wait for a slow consumer.
    static let changeLimit = 4_096

    init(observes: Bool) {
        self.observes = observes
    }

    var state: FleetState { shared.withLockedValue { FleetState($0.view) } }

    /// Takes over an update and tells everybody.
    func apply(_ update: ReplicaUpdate) {
        shared.withLockedValue { shared in
            guard !shared.isEnded else { return }
            Self.apply(update, to: &shared)
        }
    }

    private static func apply(_ update: ReplicaUpdate, to shared: inout Shared) {
        var changes = shared.view.apply(update)
        if !shared.hasState, shared.view.connection == .live {
            shared.hasState = true
            changes = [.everything]
        }
        guard shared.hasState, !changes.isEmpty else { return }
        if !shared.states.isEmpty { tell(FleetState(shared.view), &shared.states) }
        for change in changes { tell(FleetChange(change), &shared.changes) }
    }

    private static func tell(
        _ state: FleetState, _ subscribers: inout [UInt64: AsyncStream<FleetState>.Continuation]
    ) {
        for (id, subscriber) in subscribers {
            if case .terminated = subscriber.yield(state) { subscribers[id] = nil }
        }
    }

    private static func tell(_ change: FleetChange, _ subscribers: inout [UInt64: ChangeSubscriber]) {
        for (id, subscriber) in subscribers {
            switch subscriber.continuation.yield(subscriber.hasMissed ? .everything : change) {
            case .terminated: subscribers[id] = nil
            case .dropped: subscribers[id]?.hasMissed = true
            default: subscribers[id]?.hasMissed = false
            }
        }
    }

    /// Ends all sequences.
    func end() {
        let (states, changes) = shared.withLockedValue { shared in
            if !shared.isEnded {
                Self.apply(.connection(.disconnected(since: SystemClocks.monotonic())), to: &shared)
            }
            defer {
                shared.isEnded = true
                shared.states = [:]
                shared.changes = [:]
            }
            return (Array(shared.states.values), Array(shared.changes.values))
        }
        for subscriber in states { subscriber.finish() }
        for subscriber in changes { subscriber.continuation.finish() }
    }

    // MARK: - Observing

    func states(every tick: Duration?) -> AsyncStream<FleetState> {
        let (stream, continuation) = AsyncStream<FleetState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLockedValue { shared -> UInt64? in
            guard !shared.isEnded, observes else { return nil }
            shared.nextID += 1
            shared.states[shared.nextID] = continuation
            if shared.hasState { continuation.yield(FleetState(shared.view)) }
            return shared.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        guard let tick else { return stream }
        let ticker = Task { [weak self] in
            while !Task.isCancelled, self?.tick(id) ?? false {
                try? await Task.sleep(for: max(tick, Self.shortestTick))
            }
        }
        continuation.onTermination = { _ in ticker.cancel() }
        return stream
    }

    /// Tells a subscriber the state again while something is counting.
    ///
    /// - Returns: whether there is such a subscriber.
    private func tick(_ id: UInt64) -> Bool {
        shared.withLockedValue { shared in
            guard let subscriber = shared.states[id] else { return false }
            let state = FleetState(shared.view)
            guard shared.hasState, state.player.isCounting else { return true }
            guard case .terminated = subscriber.yield(state) else { return true }
            shared.states[id] = nil
            return false
        }
    }

    func changes() -> AsyncStream<FleetChange> {
        let (stream, continuation) = AsyncStream<FleetChange>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.changeLimit))
        let isObserved = shared.withLockedValue { shared in
            guard !shared.isEnded, observes else { return false }
            shared.nextID += 1
            shared.changes[shared.nextID] = ChangeSubscriber(continuation: continuation)
            return true
        }
        if !isObserved { continuation.finish() }
        return stream
    }

    /// The first state for which `condition` holds, or the newest when the time is over.
    ///
    /// - Returns: the state, and whether the condition holds.
    func first(
        within limit: Duration, where condition: @escaping @Sendable (FleetState) -> Bool
    ) async -> (state: FleetState, isMet: Bool) {
        await withTaskGroup(of: FleetState?.self) { group in
            group.addTask {
                for await state in self.states(every: nil) where condition(state) { return state }
                return nil
            }
            group.addTask {
                try? await Task.sleep(for: limit)
                return nil
            }
            let result = await group.next() ?? nil
            group.cancelAll()
            if let result { return (result, true) }
            return (self.state, false)
        }
    }
}
