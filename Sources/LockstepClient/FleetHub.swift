import BusKit
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// The state of a connection and those who observe it. Updates come from one task; everything else may be called from any.
final class FleetHub: Sendable {
    private struct Subscriber<Element: Sendable> {
        var continuation: AsyncStream<Element>.Continuation
        /// Whether elements were dropped that a `.everything` must stand for.
        var hasMissed = false
    }

    private struct Shared {
        var view = FleetView()
        var hasState = false
        var isEnded = false
        var nextID: UInt64 = 0
        var states: [UInt64: Subscriber<FleetState>] = [:]
        var changes: [UInt64: Subscriber<FleetChange>] = [:]
    }

    private let shared = NIOLockedValueBox(Shared())
    private let observes: Bool

    /// The maximum number of changes that wait for a slow consumer.
    static let changeLimit = 4_096

    init(observes: Bool) {
        self.observes = observes
    }

    var state: FleetState { shared.withLockedValue { FleetState($0.view) } }

    /// Takes over an update and tells everybody.
    func apply(_ update: ReplicaUpdate) {
        shared.withLockedValue { shared in
            let changes = shared.view.apply(update)
            if shared.view.connection == .live { shared.hasState = true }
            guard shared.hasState, !changes.isEmpty else { return }
            if !shared.states.isEmpty {
                let state = FleetState(shared.view)
                for subscriber in shared.states.values { subscriber.continuation.yield(state) }
            }
            for id in shared.changes.keys {
                for change in changes { Self.yield(FleetChange(change), to: &shared.changes[id]) }
            }
        }
    }

    private static func yield(_ change: FleetChange, to subscriber: inout Subscriber<FleetChange>?) {
        guard let continuation = subscriber?.continuation else { return }
        let hasMissed = subscriber?.hasMissed ?? false
        if case .dropped = continuation.yield(hasMissed ? .everything : change) {
            subscriber?.hasMissed = true
        } else {
            subscriber?.hasMissed = false
        }
    }

    /// Ends all sequences.
    func end() {
        apply(.connection(.disconnected(since: SystemClocks.monotonic())))
        let (states, changes) = shared.withLockedValue { shared in
            defer {
                shared.isEnded = true
                shared.states = [:]
                shared.changes = [:]
            }
            return (Array(shared.states.values), Array(shared.changes.values))
        }
        for subscriber in states { subscriber.continuation.finish() }
        for subscriber in changes { subscriber.continuation.finish() }
    }

    // MARK: - Observing

    func states(every tick: Duration?) -> AsyncStream<FleetState> {
        let (stream, continuation) = AsyncStream<FleetState>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let id = shared.withLockedValue { shared -> UInt64? in
            guard !shared.isEnded, observes else { return nil }
            shared.nextID += 1
            shared.states[shared.nextID] = Subscriber(continuation: continuation)
            if shared.hasState { continuation.yield(FleetState(shared.view)) }
            return shared.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        let ticker = tick.map { tick in
            Task { [weak self] in
                while !Task.isCancelled {
                    try? await Task.sleep(for: tick)
                    guard let self else { return }
                    let state = self.state
                    if state.player.isCounting { continuation.yield(state) }
                }
            }
        }
        continuation.onTermination = { [weak self] _ in
            ticker?.cancel()
            self?.shared.withLockedValue { _ = $0.states.removeValue(forKey: id) }
        }
        return stream
    }

    func changes() -> AsyncStream<FleetChange> {
        let (stream, continuation) = AsyncStream<FleetChange>.makeStream(
            bufferingPolicy: .bufferingOldest(Self.changeLimit))
        let id = shared.withLockedValue { shared -> UInt64? in
            guard !shared.isEnded, observes else { return nil }
            shared.nextID += 1
            shared.changes[shared.nextID] = Subscriber(continuation: continuation)
            return shared.nextID
        }
        guard let id else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.shared.withLockedValue { _ = $0.changes.removeValue(forKey: id) }
        }
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

    /// Waits until the state includes what was published at `position`, two seconds at most: the command is done, and a late
    /// state is no failure of it.
    func arrive(at position: StreamPosition, of owner: ServiceName) async {
        guard observes else { return }
        let wait = PositionWait(position: position, owner: owner, deadline: MonotonicTime(nanoseconds: 0))
        _ = await first(within: .seconds(2)) { state in
            state.connection == .live && wait.isOver(state.view.replica)
        }
    }
}
