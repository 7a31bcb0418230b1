import PodcastModel

/// The states, updates or events of a connection. Its iterator retains the connection and ends with it.
public struct FleetSequence<Element: Sendable>: AsyncSequence, Sendable {
    let fleet: Fleet
    let begin: @Sendable (Fleet) -> () async -> Element?

    /// Creates an iterator and starts observing.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, read: begin(fleet)) }

    /// Waits for the next element.
    public struct Iterator: AsyncIteratorProtocol {
        let fleet: Fleet
        let read: () async -> Element?

        /// Returns the next element; nil when the connection has ended or the task is cancelled.
        public mutating func next() async -> Element? { await read() }
    }
}

/// A change of the fleet’s state.
public struct FleetUpdate: Sendable {
    /// The state after the changes.
    public let state: FleetState
    /// The parts that have changed since the previous update.
    public let changes: Set<FleetChange>
}
