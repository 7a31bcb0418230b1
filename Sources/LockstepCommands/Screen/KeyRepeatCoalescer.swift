/// Turns a held-down key into few requests: one is in flight, what is pressed meanwhile becomes one more behind it.
struct KeyRepeatCoalescer<Value: Sendable & Equatable>: Sendable {
    /// What the last key was about: what waits is for this one.
    private(set) var subject = ""
    private var inFlight: Value?
    private var waiting: Value?

    /// Nothing is in flight.
    init() {}

    /// What will hold once all is through; nil: nothing is under way.
    var target: Value? { waiting ?? inFlight }

    /// A key: `change` leads from the value that is aimed at, or else from `current`, to the next.
    ///
    /// What waits for another `subject` (an episode that has gone since) is forgotten.
    /// - Returns: the value to request now; nil: it waits for the one in flight.
    mutating func press(subject: String, from current: Value, _ change: (Value) -> Value) -> Value? {
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

    /// Forgets what waits, after a failure that would meet it too.
    mutating func dropWaiting() { waiting = nil }
}
