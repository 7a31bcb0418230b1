import PodcastModel

/// Turns a held-down key into few requests: one is in flight, and later presses become one more behind it.
struct KeyRepeatCoalescer<Value: Sendable & Equatable>: Sendable {
    /// The load that the last key and the waiting request are about; nil: they don’t depend on one.
    private(set) var subject: LoadID?
    private var inFlight: Value?
    private var waiting: Value?

    /// Nothing is in flight.
    init() {}

    /// The value after all requests; nil: none is under way.
    var target: Value? { waiting ?? inFlight }

    /// Handles a key: `change` leads from the target, or else from `current`, to the next value.
    ///
    /// A request that waits for another `subject` (an episode that has gone since) is dropped.
    /// - Returns: the value to request now; nil: it waits for the one in flight.
    mutating func press(subject: LoadID?, from current: Value, _ change: (Value) -> Value) -> Value? {
        if subject != self.subject {
            self.subject = subject
            waiting = nil
            // The one in flight for the old subject still has to come back.
            if inFlight != nil {
                waiting = change(current)
                return nil
            }
        }
        let next = change(target ?? current)
        guard inFlight == nil else {
            waiting = next
            return nil
        }
        inFlight = next
        return next
    }

    /// The request in flight has been answered or has failed.
    ///
    /// - Returns: the value to request next; nil: nothing waits.
    mutating func finished() -> Value? {
        let done = inFlight
        inFlight = waiting == done ? nil : waiting
        waiting = nil
        return inFlight
    }

    /// Drops the waiting request, after a failure that it would meet too.
    mutating func dropWaiting() { waiting = nil }
}
