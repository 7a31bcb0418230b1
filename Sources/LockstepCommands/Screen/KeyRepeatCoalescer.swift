import PodcastModel

/// Coalesces the repeats of a held key: one request is in flight, and later presses are merged into the next one.
struct KeyRepeatCoalescer: Sendable {
    /// The load of the last key and the waiting request; nil if they don’t depend on one.
    private(set) var subject: LoadID?
    private var inFlight: Double?
    private var waiting: Double?

    /// The value after all requests; nil if none is pending.
    var target: Double? { waiting ?? inFlight }

    /// Handles a key: `change` computes the next value from the target, or else from `current`.
    ///
    /// A waiting request with another `subject` (an episode that was unloaded) is dropped.
    /// - Returns: the value to request now; nil if it waits for the one in flight.
    mutating func press(subject: LoadID? = nil, from current: Double, _ change: (Double) -> Double) -> Double? {
        let isSame = subject == self.subject
        self.subject = subject
        // The request in flight for an old subject is still unanswered.
        let next = change(isSame ? target ?? current : current)
        if inFlight != nil {
            waiting = next
            return nil
        }
        inFlight = next
        return next
    }

    /// Handles the end of the request in flight. Its failure also drops the waiting request.
    ///
    /// - Returns: the value to request next; nil if none is waiting.
    mutating func finished(failed: Bool = false) -> Double? {
        inFlight = failed || waiting == inFlight ? nil : waiting
        waiting = nil
        return inFlight
    }
}
