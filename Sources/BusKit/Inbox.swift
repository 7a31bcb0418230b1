import NIOConcurrencyHelpers

/// Events from any thread for one loop, in the order in which they were sent. Sending never blocks; whoever sends keeps
/// its own bound.
final class Inbox<Element: Sendable>: Sendable {
    private struct State {
        var waiting: [Element] = []
        var taker: CheckedContinuation<[Element], Never>?
        var isClosed = false
    }

    private let state = NIOLockedValueBox(State())

    func send(_ element: Element) {
        let taker = state.withLockedValue { state -> CheckedContinuation<[Element], Never>? in
            guard !state.isClosed else { return nil }
            guard let taker = state.taker else {
                state.waiting.append(element)
                return nil
            }
            state.taker = nil
            return taker
        }
        taker?.resume(returning: [element])
    }

    /// All that waits, at least one; none when it is closed. For one taker.
    func take() async -> [Element] {
        await withCheckedContinuation { continuation in
            let now: [Element]? = state.withLockedValue { state in
                if !state.waiting.isEmpty || state.isClosed {
                    defer { state.waiting = [] }
                    return state.waiting
                }
                state.taker = continuation
                return nil
            }
            if let now { continuation.resume(returning: now) }
        }
    }

    /// Nothing more is accepted or handed out.
    func close() {
        let taker = state.withLockedValue { state -> CheckedContinuation<[Element], Never>? in
            state.isClosed = true
            state.waiting = []
            defer { state.taker = nil }
            return state.taker
        }
        taker?.resume(returning: [])
    }
}
