import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

/// Buffers one consumer’s updates. On overflow the buffered updates are replaced by a snapshot of the current state:
/// the consumer misses events, can detect that, and misses no retained value.
///
/// Its limit is the size of the bus’s ring plus the events that arrive during a full replay, so that a consumer whose
/// backlog a replay could cover doesn’t overflow the buffer.
package final class UpdateBuffer: Sendable {
    private struct State {
        var buffer: [ReplicaUpdate] = []
        var bytes = 0
        var next = 0
        var waiter: CheckedContinuation<ReplicaUpdate?, Never>?
        /// The callers that wait until the consumer has handled every update.
        var drains: [CheckedContinuation<Void, Never>] = []
        var isFinished = false
        var count: Int { buffer.count - next }
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    private let byteLimit: Int

    init(limit: Int = BusLimits.ringEvents + 4_096, byteLimit: Int = 24 << 20) {
        self.limit = limit
        self.byteLimit = byteLimit
    }

    /// Adds an update. `replica` and `connection` are the state that includes it.
    func push(_ update: ReplicaUpdate, replica: Replica, connection: ConnectionState) {
        let waiter = state.withLockedValue { state -> CheckedContinuation<ReplicaUpdate?, Never>? in
            guard !state.isFinished else { return nil }
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            if state.count < limit, state.bytes + update.bytes <= byteLimit || state.count == 0 {
                state.buffer.append(update)
                state.bytes += update.bytes
            } else if case .live = update {
                // Telemetry beyond the limit is dropped: it is lossy by definition.
            } else {
                state.buffer = [.snapshot(replica), .connection(connection)]
                state.bytes = 0
                state.next = 0
            }
            return nil
        }
        waiter?.resume(returning: update)
    }

    /// Ends the feed; a waiting consumer gets nil.
    func finish() {
        let (waiter, drains) = state.withLockedValue { state in
            state.isFinished = true
            defer { (state.waiter, state.drains) = (nil, []) }
            return (state.waiter, state.drains)
        }
        waiter?.resume(returning: nil)
        for drain in drains { drain.resume() }
    }

    /// Returns when the consumer has handled every earlier update, which is when it requests the next one.
    package func drained() async {
        await withCheckedContinuation { continuation in
            let isDrained = state.withLockedValue { state in
                if state.isFinished || state.waiter != nil { return true }
                state.drains.append(continuation)
                return false
            }
            if isDrained { continuation.resume() }
        }
    }

    /// Returns the next update, in order; nil at the end or when the task is cancelled. Only one consumer may call it.
    package func next() async -> ReplicaUpdate? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let (now, drains) = state.withLockedValue {
                    state -> (ReplicaUpdate??, [CheckedContinuation<Void, Never>]) in
                    if let update = Self.take(&state) { return (.some(update), []) }
                    if state.isFinished || state.waiter != nil { return (.some(nil), []) }
                    state.waiter = continuation
                    defer { state.drains = [] }
                    return (nil, state.drains)
                }
                if let now { continuation.resume(returning: now) }
                for drain in drains { drain.resume() }
            }
        } onCancel: {
            finish()
        }
    }

    private static func take(_ state: inout State) -> ReplicaUpdate? {
        guard state.next < state.buffer.count else { return nil }
        let update = state.buffer[state.next]
        state.bytes -= update.bytes
        state.next += 1
        if state.next == state.buffer.count || state.next >= 256 {
            state.buffer.removeFirst(state.next)
            state.next = 0
        }
        return update
    }
}

extension ReplicaUpdate {
    /// The number of bytes that the update counts toward the limit. A snapshot shares the replica’s storage.
    fileprivate var bytes: Int {
        switch self {
        case .event(let event), .live(let event): event.topic.text.utf8.count + event.payload.count
        case .snapshot, .connection: 0
        }
    }
}
