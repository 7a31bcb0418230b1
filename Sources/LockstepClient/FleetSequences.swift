import PodcastModel

/// The states, updates or events of a connection. The sequence keeps the connection alive while it is read, and ends with it.
public struct FleetSequence<Element: Sendable>: AsyncSequence, Sendable {
    let fleet: Fleet
    let begin: @Sendable (Fleet) -> () async -> Element?

    /// Begins to observe.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, read: begin(fleet)) }

    /// Waits for the next element.
    public struct Iterator: AsyncIteratorProtocol {
        let fleet: Fleet
        let read: () async -> Element?

        /// The next element; nil when the connection has ended or the task is cancelled.
        public mutating func next() async -> Element? { await read() }
    }
}

/// A change of the fleet’s state.
public struct FleetUpdate: Sendable {
    /// The state after the changes.
    public let state: FleetState
    /// The parts that have changed since the update before.
    public let changes: Set<FleetChange>
}
