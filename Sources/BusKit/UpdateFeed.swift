import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// One consumer's updates, bounded. When the consumer is too slow, what waits is replaced by a snapshot of the present
/// state: it misses events, knows that it does, and misses nothing that is retained.
final class UpdateFeed: Sendable {
    private struct State {
        var buffer: [ReplicaUpdate] = []
        var next = 0
        var waiter: CheckedContinuation<ReplicaUpdate?, Never>?
        var isFinished = false
        var count: Int { buffer.count - next }
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    /// Called, from the poll thread, when there is something to take and nobody waits in `next`.
    private let notify: (@Sendable () -> Void)?

    init(limit: Int = 1_024, notify: (@Sendable () -> Void)? = nil) {
        self.limit = limit
        self.notify = notify
    }

    /// Adds an update. `replica` and `connection` are the state that includes it.
    func push(_ update: ReplicaUpdate, replica: Replica, connection: ConnectionState) {
        let (waiter, wasEmpty) = state.withLockedValue { state -> (CheckedContinuation<ReplicaUpdate?, Never>?, Bool) in
            guard !state.isFinished else { return (nil, false) }
            if let waiter = state.waiter {
                state.waiter = nil
                return (waiter, false)
            }
            let wasEmpty = state.count == 0
            if state.count < limit {
                state.buffer.append(update)
            } else if case .live = update {
                // Telemetry is lossy by nature.
            } else {
                state.buffer = [.snapshot(replica), .connection(connection)]
                state.next = 0
            }
            return (nil, wasEmpty)
        }
        waiter?.resume(returning: update)
        if waiter == nil, wasEmpty { notify?() }
    }

    /// Nothing more comes.
    func finish() {
        let waiter = state.withLockedValue { state -> CheckedContinuation<ReplicaUpdate?, Never>? in
            state.isFinished = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    /// The next update, in order; nil at the end or when the task is cancelled. For one consumer.
    func next() async -> ReplicaUpdate? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let now: ReplicaUpdate?? = state.withLockedValue { state in
                    if let update = Self.take(&state) { return update }
                    if state.isFinished || state.waiter != nil { return .some(nil) }
                    state.waiter = continuation
                    return nil
                }
                if let now { continuation.resume(returning: now) }
            }
        } onCancel: {
            finish()
        }
    }

    /// All that waits.
    func takeAll() -> [ReplicaUpdate] {
        state.withLockedValue { state in
            defer {
                state.buffer = []
                state.next = 0
            }
            return Array(state.buffer[state.next...])
        }
    }

    private static func take(_ state: inout State) -> ReplicaUpdate? {
        guard state.next < state.buffer.count else { return nil }
        let update = state.buffer[state.next]
        state.next += 1
        if state.next == state.buffer.count || state.next >= 256 {
            state.buffer.removeFirst(state.next)
            state.next = 0
        }
        return update
    }
}
