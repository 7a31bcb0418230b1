package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A topic’s value as the stream retains it.
package struct RetainedValue: Sendable, Hashable {
    package var put: StreamEvent
    /// The deltas since the put, in order.
    package var deltas: [StreamEvent]

    package init(put: StreamEvent, deltas: [StreamEvent] = []) {
        self.put = put
        self.deltas = deltas
    }
}

/// An observer’s copy of every retained value at one position of the stream.
///
/// After a restart of the bus, the values of a service stay visible, stale, until the service is ready again; its new
/// values are staged until then and replace them at once, so observers never see a partial state.
package struct Replica: Sendable {
    /// The position up to which every event was applied.
    package private(set) var position = StreamPosition(epoch: 0, sequence: 0)
    /// The values that observers see.
    package private(set) var entries: [Topic: RetainedValue] = [:]
    /// The services that are ready, with their generations.
    package private(set) var ready: [ServiceName: UInt32] = [:]
    /// New values of services that are not ready yet and have stale values.
    private var staged: [ServiceName: [Topic: RetainedValue]] = [:]

    package init() {}

    /// Whether a visible value may be out of date, because its owner is not ready.
    package func isStale(_ topic: Topic) -> Bool {
        guard let owner = topic.owner, owner != .bus else { return false }
        return ready[owner] == nil
    }

    /// The visible values by position, the older epoch first.
    package var ordered: [RetainedValue] {
        entries.values.sorted { $0.put.position < $1.put.position }
    }

    /// Applies the next event.
    /// - Returns: the topics whose visible value changed.
    @discardableResult
    package mutating func apply(_ event: StreamEvent) -> [Topic] {
        position = event.position
        if !staged.isEmpty, let owner = event.topic.owner, var values = staged.removeValue(forKey: owner) {
            Self.change(&values, by: event)
            staged[owner] = values
            return []
        }
        guard Self.change(&entries, by: event) else { return [] }
        guard event.header.kind == .put, let service = Self.service(event.topic) else { return [event.topic] }
        return [event.topic] + serviceChanged(service, event)
    }

    /// Advances past an event that isn’t selected.
    mutating func skip(to position: StreamPosition) {
        self.position = position
    }

    /// Replaces the replica with the values that the bus retains at `position`.
    package mutating func replace(
        at position: StreamPosition, ready: [ServiceName: UInt32], entries fresh: [StreamEvent]
    ) {
        var next: [Topic: RetainedValue] = [:]
        for event in fresh { Self.change(&next, by: event) }
        var held: [ServiceName: [Topic: RetainedValue]] = [:]
        for (topic, value) in entries where value.put.header.epoch != position.epoch {
            guard let owner = topic.owner, owner != .bus, ready[owner] == nil else { continue }
            held[owner, default: [:]][topic] = value
        }
        staged = [:]
        for (owner, old) in held {
            let mine = next.filter { $0.key.owner == owner }
            for topic in mine.keys { next[topic] = nil }
            next.merge(old) { _, old in old }
            staged[owner] = mine
        }
        entries = next
        self.ready = ready
        self.position = position
    }

    /// Whether it contains values of an earlier epoch, whose services are not ready in this one.
    var hasStaleValues: Bool { !staged.isEmpty }

    /// Replaces the values of earlier epochs, which a new observer doesn’t have, with those that their services put in
    /// this epoch.
    mutating func dropStaleValues() {
        for (owner, values) in staged {
            for topic in entries.keys where topic.owner == owner { entries[topic] = nil }
            entries.merge(values) { _, new in new }
        }
        staged = [:]
    }

    static let servicePrefix = "stream/bus/service/"

    /// The service whose status this topic holds; nil for any other topic.
    static func service(_ topic: Topic) -> ServiceName? {
        topic.text.hasPrefix(servicePrefix) ? ServiceName(String(topic.text.dropFirst(servicePrefix.count))) : nil
    }

    @discardableResult
    private static func change(_ entries: inout [Topic: RetainedValue], by event: StreamEvent) -> Bool {
        switch event.header.kind {
        case .put: entries[event.topic] = RetainedValue(put: event)
        case .delta:
            guard let index = entries.index(forKey: event.topic) else { return false }
            entries.values[index].deltas.append(event)
        case .delete: return entries.removeValue(forKey: event.topic) != nil
        default: return false
        }
        return true
    }

    private mutating func serviceChanged(_ name: ServiceName, _ event: StreamEvent) -> [Topic] {
        guard let status = try? WireServiceStatus(serializedBytes: event.payload) else { return [] }
        guard status.state == .ready else {
            ready[name] = nil
            return entries.keys.filter { $0.owner == name }
        }
        ready[name] = status.generation
        var changed = Set(entries.keys.filter { $0.owner == name })
        if let values = staged.removeValue(forKey: name) {
            for topic in changed { entries[topic] = nil }
            entries.merge(values) { _, new in new }
            changed.formUnion(values.keys)
        }
        return Array(changed)
    }
}

/// The state of an observer’s connection to the bus.
package enum ConnectionState: Sendable, Hashable {
    /// The observer has never been synchronised.
    case connecting
    /// The observer was synchronised and fetches missed events; its values may be stale.
    case resyncing
    /// The observer is synchronised.
    case live
    /// The bus has sent no message since that time; the values are stale.
    case disconnected(since: MonotonicTime)
}

/// An update for a consumer of the stream; updates are delivered in order.
package enum ReplicaUpdate: Sendable {
    /// All retained values at a position: the first update, and again after each resync or overflow. Events between the
    /// previous update and this position were missed, retained values weren’t.
    case snapshot(Replica)
    /// The next event of the stream.
    case event(StreamEvent)
    /// Telemetry, lossy and not ordered with the events.
    case live(StreamEvent)
    /// The state of the connection changed.
    case connection(ConnectionState)
}
