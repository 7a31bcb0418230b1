import NIOConcurrencyHelpers

/// A changing value for which tests can wait until it meets a condition.
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

    /// Creates a value that no test waits for yet.
    package init(_ value: Value) {
        state = NIOLockedValueBox(State(value: value))
    }

    /// The current value, read under the lock.
    package var now: Value { state.withLockedValue(\.value) }

    /// Changes the value and resumes the waits whose condition it meets. Conditions are checked after every change,
    /// so no value is missed.
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

    /// Waits until the value meets the condition.
    /// - Returns: the value that met it; nil if none did within `limit`, or if the task is cancelled.
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
