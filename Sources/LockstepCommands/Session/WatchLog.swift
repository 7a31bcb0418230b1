import BusKit
import LockstepClient
import PodcastModel
import WireMessages

/// What `watch` prints for the updates of the stream: pure, a line an event.
///
/// The retained state comes first, each part of it with the place that it was published at; a resync comes the same
/// way, followed by a line with a null payload for each key that is gone.
struct WatchLog: Sendable {
    /// One line's content.
    struct Line: Sendable, Hashable {
        /// The bus's life.
        var epoch: UInt64
        /// The place in it.
        var sequence: UInt64
        var topic: String
        /// `snapshot`, or the event's own kind.
        var kind: String
        /// Seconds since 1970, UTC.
        var at: Double
        var payload: JSONValue

        /// The documented object.
        var json: JSONValue {
            .object([
                "epoch": .unsigned(epoch), "sequence": .unsigned(sequence), "topic": .string(topic),
                "kind": .string(kind), "at": .number(at), "payload": payload,
            ])
        }
    }

    private let prefixes: [String]
    private let changesOnly: Bool
    private var replica = Replica()

    /// A log of the topics that begin with one of `prefixes` (none: all); with `changesOnly` it leaves the first
    /// retained state out.
    init(prefixes: [String], changesOnly: Bool) {
        // `playback` is as good as `stream/playback`.
        self.prefixes = prefixes.map { $0.hasPrefix("stream/") || $0.hasPrefix("live/") ? $0 : "stream/" + $0 }
        self.changesOnly = changesOnly
    }

    /// The lines of an update, in order.
    mutating func lines(for update: ReplicaUpdate) -> [Line] {
        switch update {
        case .connection: return []
        case .live(let event): return shows(event.topic) ? [line(event, kind: "live")] : []
        case .event(let event): return lines(for: event)
        case .snapshot(let snapshot): return lines(for: snapshot)
        }
    }

    private mutating func lines(for event: StreamEvent) -> [Line] {
        let changed = replica.apply(event)
        // A service that is ready again has replaced all that it had put before; what it did not put again is gone.
        let gone = changed.filter { $0 != event.topic && replica.entries[$0] == nil }
        let own = shows(event.topic) ? [line(event, kind: Self.word(event.header.kind))] : []
        return own + lines(forGone: gone, at: event.position, time: event.header.time)
    }

    private mutating func lines(for snapshot: Replica) -> [Line] {
        let isFirst = replica.position.epoch == 0
        let gone = replica.entries.keys.filter { snapshot.entries[$0] == nil }
        replica = snapshot
        guard !(isFirst && changesOnly) else { return [] }
        let events = snapshot.entries.values.flatMap { [$0.put] + $0.deltas }.sorted { $0.position < $1.position }
        let newest = events.last?.header.time ?? 0
        return events.filter { shows($0.topic) }.map { line($0, kind: "snapshot") }
            + lines(forGone: gone, at: snapshot.position, time: newest)
    }

    private func lines(forGone topics: [Topic], at position: StreamPosition, time: UInt64) -> [Line] {
        topics.filter(shows).sorted().map { topic in
            Line(
                epoch: position.epoch, sequence: position.sequence, topic: topic.text, kind: "snapshot",
                at: Self.seconds(time), payload: .null)
        }
    }

    private func shows(_ topic: Topic) -> Bool {
        prefixes.isEmpty || prefixes.contains { topic.text.hasPrefix($0) }
    }

    private func line(_ event: StreamEvent, kind: String) -> Line {
        Line(
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
