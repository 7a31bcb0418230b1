import PodcastModel

/// Turns a held-down key into few requests: one is in flight, and later presses become one more behind it.
struct KeyRepeatCoalescer: Sendable {
    /// The load that the last key and the waiting request are about; nil: they don’t depend on one.
    private(set) var subject: LoadID?
    private var inFlight: Double?
    private var waiting: Double?

    /// The value after all requests; nil: none is under way.
    var target: Double? { waiting ?? inFlight }

    /// Handles a key: `change` leads from the target, or else from `current`, to the next value.
    ///
    /// A request that waits for another `subject` (an episode that has gone since) is dropped.
    /// - Returns: the value to request now; nil: it waits for the one in flight.
    mutating func press(subject: LoadID? = nil, from current: Double, _ change: (Double) -> Double) -> Double? {
        let isSame = subject == self.subject
        self.subject = subject
        // The request in flight for an old subject still has to come back.
        let next = change(isSame ? target ?? current : current)
        if inFlight != nil {
            waiting = next
            return nil
        }
        inFlight = next
        return next
    }

    /// The request in flight has been answered or has failed. A failure would meet the one behind it, too.
    ///
    /// - Returns: the value to request next; nil: nothing waits.
    mutating func finished(failed: Bool = false) -> Double? {
        inFlight = failed || waiting == inFlight ? nil : waiting
        waiting = nil
        return inFlight
    }
}
