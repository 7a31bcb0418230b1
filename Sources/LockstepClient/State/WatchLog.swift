import BusKit
import PodcastModel
import WireMessages

/// An event of the stream, as `lockstep watch` prints it.
public struct FleetEvent: Sendable, Hashable {
    /// The epoch of the bus that published the event.
    public let epoch: UInt64
    /// Its sequence number in that epoch.
    public let sequence: UInt64
    /// Its topic, not sanitised for a terminal.
    public let topic: String
    /// Its kind: `snapshot` for values that were retained before, else `put`, `delta`, `delete`, `event` or `live`.
    public let kind: String
    /// The time of its publication, in seconds since 1970, UTC.
    public let at: Double
    /// Its payload; null if the topic’s value was deleted.
    public let payload: JSONValue

    /// The object that `lockstep watch --json` documents.
    public var json: JSONValue {
        .object([
            "epoch": .unsigned(epoch), "sequence": .unsigned(sequence), "topic": .string(topic),
            "kind": .string(kind), "at": .number(at), "payload": payload,
        ])
    }
}

/// Converts the updates of the stream to events.
///
/// The retained state is first, each value with the sequence number of its publication; a resync is reported in the
/// same way, followed by an event with a null payload for each deleted key.
struct WatchLog: Sendable {
    private let prefixes: [String]
    private let changesOnly: Bool
    private var replica = Replica()

    /// Creates a log of the topics with one of `prefixes` (all if empty); `changesOnly` skips the first retained state.
    init(prefixes: [String], changesOnly: Bool) {
        self.prefixes = prefixes.map(Observation.topic)
        self.changesOnly = changesOnly
    }

    mutating func events(for update: ReplicaUpdate) -> [FleetEvent] {
        switch update {
        case .connection: return []
        case .live(let event): return shows(event.topic) ? [line(event, kind: "live")] : []
        case .event(let event): return events(for: event)
        case .snapshot(let snapshot): return events(for: snapshot)
        }
    }

    private mutating func events(for event: StreamEvent) -> [FleetEvent] {
        let changed = replica.apply(event)
        // A service that is ready again has replaced all its values; values that it didn’t publish again are deleted.
        let gone = changed.filter { $0 != event.topic && replica.entries[$0] == nil }
        let own = shows(event.topic) ? [line(event, kind: Self.word(event.header.kind))] : []
        return own + events(forGone: gone, at: event.position, time: event.header.time)
    }

    private mutating func events(for snapshot: Replica) -> [FleetEvent] {
        let isFirst = replica.position.epoch == 0
        let gone = replica.entries.keys.filter { snapshot.entries[$0] == nil }
        replica = snapshot
        guard !(isFirst && changesOnly) else { return [] }
        let retained = snapshot.entries.values.flatMap { [$0.put] + $0.deltas }.sorted { $0.position < $1.position }
        let newest = retained.last?.header.time ?? 0
        return retained.filter { shows($0.topic) }.map { line($0, kind: "snapshot") }
            + events(forGone: gone, at: snapshot.position, time: newest)
    }

    private func events(forGone topics: [Topic], at position: StreamPosition, time: UInt64) -> [FleetEvent] {
        topics.filter(shows).sorted().map { topic in
            FleetEvent(
                epoch: position.epoch, sequence: position.sequence, topic: topic.text, kind: "snapshot",
                at: Self.seconds(time), payload: .null)
        }
    }

    private func shows(_ topic: Topic) -> Bool {
        prefixes.isEmpty || prefixes.contains { topic.text.hasPrefix($0) }
    }

    private func line(_ event: StreamEvent, kind: String) -> FleetEvent {
        FleetEvent(
            epoch: event.header.epoch, sequence: event.header.sequence, topic: event.topic.text, kind: kind,
            at: Self.seconds(event.header.time), payload: StreamPayload.json(event))
    }

    private static func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds / 1_000) / 1e6 }

    private static func word(_ kind: MessageKind) -> String {
        switch kind {
        case .put: "put"
        case .delta: "delta"
        case .delete: "delete"
        case .event: "event"
        default: "live"
        }
    }
}
