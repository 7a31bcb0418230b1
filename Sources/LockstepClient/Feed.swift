import NIOConcurrencyHelpers

/// The elements that wait for one consumer, bounded: where it is too slow, `overflow` makes one element that stands for all
/// that wait and the one that comes.
///
/// Nobody is resumed under the lock: the handler of a cancellation takes it while the runtime holds a lock of the task.
final class Feed<Element: Sendable>: Sendable {
    private struct State {
        var elements: ArraySlice<Element> = []
        var waiter: CheckedContinuation<Element?, Never>?
        var isFinished = false
    }

    private let state = NIOLockedValueBox(State())
    private let limit: Int
    private let overflow: @Sendable (Element) -> Element

    init(limit: Int, overflow: @escaping @Sendable (Element) -> Element) {
        (self.limit, self.overflow) = (limit, overflow)
    }

    /// Adds an element.
    func push(_ element: Element) {
        let waiter = state.withLockedValue { state -> CheckedContinuation<Element?, Never>? in
            guard !state.isFinished else { return nil }
            if let waiter = state.waiter {
                state.waiter = nil
                return waiter
            }
            if state.elements.count < limit {
                state.elements.append(element)
            } else {
                state.elements = [overflow(element)]
            }
            return nil
        }
        waiter?.resume(returning: element)
    }

    /// Ends the feed behind the elements that wait.
    func finish() {
        let waiter = state.withLockedValue { state in
            state.isFinished = true
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: nil)
    }

    /// The next element; nil at the end, when the task is cancelled, and for a second consumer.
    func next() async -> Element? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let next = state.withLockedValue { state -> Element?? in
                    if let element = state.elements.popFirst() { return .some(element) }
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
