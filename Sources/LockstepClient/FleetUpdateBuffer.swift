import NIOConcurrencyHelpers

/// Buffers the updates for one consumer. On overflow the buffered updates are replaced by one that reports everything
/// as changed.
///
/// No consumer is resumed under the lock: a cancellation handler acquires it while the runtime holds a task’s lock.
final class FleetUpdateBuffer: Sendable {
    private struct State {
        var updates: ArraySlice<FleetUpdate> = []
        var waiter: CheckedContinuation<FleetUpdate?, Never>?
        var isFinished = false
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int

    init(limit: Int) {
        self.limit = limit
    }

    func push(_ update: FleetUpdate) {
        let waiter = state.withLockedValue { state -> CheckedContinuation<FleetUpdate?, Never>? in
            guard !state.isFinished else { return nil }
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            if state.updates.count < limit {
                state.updates.append(update)
            } else {
                state.updates = [FleetUpdate(state: update.state, changes: [.everything])]
            }
            return nil
        }
        waiter?.resume(returning: update)
    }

    /// Ends the sequence after the buffered updates.
    func finish() {
        let waiter = state.withLockedValue { state in
            state.isFinished = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    /// Returns the next update; nil at the end, on cancellation, and for a second consumer.
    func next() async -> FleetUpdate? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let next = state.withLockedValue { state -> FleetUpdate?? in
                    if let update = state.updates.popFirst() { return .some(update) }
                    if state.isFinished || state.waiter != nil { return .some(nil) }
                    state.waiter = continuation
                    return nil
                }
                if let next { continuation.resume(returning: next) }
            }
        } onCancel: {
            finish()
        }
    }
}
