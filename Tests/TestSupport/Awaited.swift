import NIOConcurrencyHelpers

/// A value that changes, for tests that wait until it is as they need it.
package final class Awaited<Value: Sendable>: Sendable {
    private struct Waiter: Sendable {
        var condition: @Sendable (Value) -> Bool
        var met: AsyncStream<Value>.Continuation
    }
    private struct State {
        var value: Value
        var waiters: [Int: Waiter] = [:]
        var count = 0
    }
    private let state: NIOLockedValueBox<State>

    /// A value to begin with.
    package init(_ value: Value) {
        state = NIOLockedValueBox(State(value: value))
    }

    /// The current value.
    package var now: Value { state.withLockedValue(\.value) }

    /// Changes it, and wakes those whose condition it then meets. Conditions are judged in the order of changes: none is
    /// missed between two of them.
    @discardableResult
    package func change<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result {
        let (result, met, value) = try state.withLockedValue { state in
            let result = try body(&state.value)
            let met = state.waiters.filter { $0.value.condition(state.value) }
            for key in met.keys { state.waiters[key] = nil }
            return (result, met.values.map(\.met), state.value)
        }
        for waiter in met { waiter.yield(value) }
        return result
    }

    /// Waits until it meets the condition.
    /// - Returns: the value that did; nil when none has within `limit`, or when the task is cancelled.
    package func first(within limit: Duration, where condition: @escaping @Sendable (Value) -> Bool) async -> Value? {
        let met = AsyncStream<Value>.makeStream()
        let key = state.withLockedValue { state in
            state.count += 1
            if condition(state.value) {
                met.continuation.yield(state.value)
            } else {
                state.waiters[state.count] = Waiter(condition: condition, met: met.continuation)
            }
            return state.count
        }
        let timer = Task {
            try await ContinuousClock().sleep(for: limit)
            met.continuation.finish()
        }
        defer {
            timer.cancel()
            state.withLockedValue { _ = $0.waiters.removeValue(forKey: key) }
        }
        var values = met.stream.makeAsyncIterator()
        return await values.next()
    }
}
