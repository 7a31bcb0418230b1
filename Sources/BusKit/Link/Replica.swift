package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A topic's value as the stream retains it.
package struct RetainedValue: Sendable, Hashable {
    /// The last whole value.
    package var put: StreamEvent
    /// What changed since, in order.
    package var deltas: [StreamEvent]

    /// A value of these parts.
    package init(put: StreamEvent, deltas: [StreamEvent] = []) {
        self.put = put
        self.deltas = deltas
    }

    /// The last event that it holds.
    package var newest: StreamEvent { deltas.last ?? put }
}

/// What an observer knows: every retained value at one place of the stream.
///
/// After the bus has restarted, the values of a service stay visible, stale, until the service is ready again; what
/// it puts until then is kept aside and takes their place at once. So nobody sees half of a service's state.
package struct Replica: Sendable {
    /// The place up to which everything has been applied.
    package private(set) var position: StreamPosition
    /// The visible values.
    package private(set) var entries: [Topic: RetainedValue]
    /// The services that are ready, with their generations.
    package private(set) var ready: [ServiceName: UInt32]
    /// Values of services that are not ready yet but have older ones to show.
    private var arriving: [ServiceName: [Topic: RetainedValue]]

    package init() {
        position = StreamPosition(epoch: 0, sequence: 0)
        entries = [:]
        ready = [:]
        arriving = [:]
    }

    /// Whether a visible value may be out of date, because its owner is not ready.
    package func isStale(_ topic: Topic) -> Bool {
        guard let owner = topic.owner, owner != .bus else { return false }
        return ready[owner] == nil
    }

    /// The visible values in order of their places: the older epoch first.
    package var ordered: [RetainedValue] {
        entries.values.sorted { $0.put.position < $1.put.position }
    }

    /// Applies the next event.
    /// - Returns: the topics whose visible value changed.
    @discardableResult
    package mutating func apply(_ event: StreamEvent) -> [Topic] {
        position = event.position
        if !arriving.isEmpty, let owner = event.topic.owner, var aside = arriving.removeValue(forKey: owner) {
            Self.change(&aside, by: event)
            arriving[owner] = aside
            return []
        }
        guard Self.change(&entries, by: event) else { return [] }
        guard event.header.kind == .put, event.topic.text.hasPrefix(Self.servicePrefix) else { return [event.topic] }
        return [event.topic] + serviceChanged(event)
    }

    /// Passes by an event that is not kept.
    mutating func skip(to position: StreamPosition) {
        self.position = position
    }

    /// Takes over everything that the bus retains at `position`.
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
        arriving = [:]
        for (owner, old) in held {
            let mine = next.filter { $0.key.owner == owner }
            for topic in mine.keys { next[topic] = nil }
            next.merge(old) { _, old in old }
            arriving[owner] = mine
        }
        entries = next
        self.ready = ready
        self.position = position
    }

    /// Whether it shows values of an earlier epoch, whose services are not ready in this one.
    var holdsOldValues: Bool { !arriving.isEmpty }

    /// Lets go of the values of earlier epochs, as whoever joins now has never seen them: what their services have put in
    /// this epoch takes their place.
    mutating func dropOldValues() {
        for (owner, aside) in arriving {
            for topic in entries.keys where topic.owner == owner { entries[topic] = nil }
            entries.merge(aside) { _, new in new }
        }
        arriving = [:]
    }

    static let servicePrefix = "stream/bus/service/"

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

    private mutating func serviceChanged(_ event: StreamEvent) -> [Topic] {
        guard let status = try? WireServiceStatus(serializedBytes: event.payload),
            let name = ServiceName(String(event.topic.text.dropFirst(Self.servicePrefix.count)))
        else { return [] }
        guard status.state == .ready else {
            ready[name] = nil
            return entries.keys.filter { $0.owner == name }
        }
        ready[name] = status.generation
        var changed = Set(entries.keys.filter { $0.owner == name })
        if let aside = arriving.removeValue(forKey: name) {
            for topic in changed { entries[topic] = nil }
            entries.merge(aside) { _, new in new }
            changed.formUnion(aside.keys)
        }
        return Array(changed)
    }
}

/// How an observer stands to the bus.
package enum ConnectionState: Sendable, Hashable {
    /// It has never been in step.
    case connecting
    /// It was in step and is catching up; what it shows may be old.
    case resyncing
    /// It is in step.
    case live
    /// Nothing has been heard from the bus since that moment; what it shows is old.
    case disconnected(since: MonotonicTime)
}

/// What a consumer of the stream is told, in order.
package enum ReplicaUpdate: Sendable {
    /// Everything that is retained, at a place: the first thing, and again after each resync or overflow. Events between
    /// the last one before it and this place have been missed, all that is retained has not.
    case snapshot(Replica)
    /// The next event.
    case event(StreamEvent)
    /// Telemetry, lossy and in no order with the events.
    case live(StreamEvent)
    /// The connection changed.
    case connection(ConnectionState)
}
