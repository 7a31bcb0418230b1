import BusKit
import PodcastModel

/// The states of a fleet, the newest first; see `Fleet.states`. It keeps the connection alive while it is read.
public struct FleetStates: AsyncSequence, Sendable {
    let fleet: Fleet
    let tick: Duration?

    /// Begins with the newest state.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, tick: tick) }

    /// Waits for the next state.
    public struct Iterator: AsyncIteratorProtocol {
        private let fleet: Fleet
        private let feed: Feed<FleetState>
        private let ticker: Ticker?

        init(fleet: Fleet, tick: Duration?) {
            self.fleet = fleet
            feed = fleet.hub.states()
            ticker = tick.map { [feed] in Ticker(every: $0, fleet.hub, feed) }
        }

        /// The next state; nil when the connection has ended or the task is cancelled.
        public mutating func next() async -> FleetState? { await feed.next() }
    }
}

/// Every change of a fleet with the state that it has led to; see `Fleet.updates`. It keeps the connection alive while it is
/// read.
public struct FleetUpdates: AsyncSequence, Sendable {
    let fleet: Fleet

    /// Begins with the newest state, in which `everything` has changed.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet) }

    /// Waits for the next update.
    public struct Iterator: AsyncIteratorProtocol {
        private let fleet: Fleet
        private let feed: Feed<FleetUpdate>

        init(fleet: Fleet) {
            self.fleet = fleet
            feed = fleet.hub.updates()
        }

        /// The next update; nil when the connection has ended or the task is cancelled.
        public mutating func next() async -> FleetUpdate? { await feed.next() }
    }
}

/// A change of the fleet’s state.
public struct FleetUpdate: Sendable {
    /// The state after the changes.
    public let state: FleetState
    /// The parts that have changed since the update before.
    public let changes: Set<FleetChange>
}

/// The events of the stream; see `Fleet.events`. It keeps the connection alive while it is read.
public struct FleetEvents: AsyncSequence, Sendable {
    let fleet: Fleet
    let log: WatchLog

    /// Begins with the retained events, unless they are left out.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, log: log) }

    /// Waits for the next event.
    public struct Iterator: AsyncIteratorProtocol {
        private let fleet: Fleet
        private let updates: FeedSubscription
        private var log: WatchLog
        private var waiting: ArraySlice<FleetEvent> = []

        init(fleet: Fleet, log: WatchLog) {
            (self.fleet, self.log) = (fleet, log)
            updates = fleet.client.subscribe()
        }

        /// The next event; nil when the connection has ended or the task is cancelled.
        public mutating func next() async -> FleetEvent? {
            while waiting.isEmpty {
                guard let update = await updates.feed.next() else { return nil }
                waiting = log.events(for: update)[...]
            }
            return waiting.popFirst()
        }
    }
}

/// Repeats the newest state in a feed while something in it is counting, until it is released.
private final class Ticker: Sendable {
    /// The shortest time between two ticks.
    private static let shortestTick = Duration.milliseconds(10)

    private let task: Task<Void, Never>

    init(every tick: Duration, _ hub: FleetHub, _ feed: Feed<FleetState>) {
        task = Task {
            while !Task.isCancelled {
                try? await Task.sleep(for: max(tick, Self.shortestTick))
                hub.tick(feed)
            }
        }
    }

    deinit { task.cancel() }
}
