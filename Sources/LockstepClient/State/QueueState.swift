import BusKit
public import PodcastModel
package import WireMessages

/// A queue: Up Next, or another one.
public struct QueueState: Sendable, Hashable {
    /// An entry: an episode in the queue. An episode may be in several queues.
    public struct Entry: Sendable, Hashable {
        /// The entry’s ID.
        public let id: QueueEntryID
        /// The entry’s episode.
        public var episode: EpisodeSummary
        /// The time at which it was added.
        public let addedAt: Timestamp
        /// The reason why it is in the queue, as text; empty if not known.
        public let reason: String

        package init?(_ wire: WireQueueEntry) {
            guard let id = QueueEntryID(wire.id), let episode = EpisodeSummary(wire.episode) else { return nil }
            (self.id, self.episode) = (id, episode)
            addedAt = Timestamp(milliseconds: wire.addedAt)
            reason = DisplayText.sanitised(wire.reason)
        }
    }

    package private(set) var wire: WireQueueState
    /// The entries, in order.
    public private(set) var entries: [Entry]

    package init(_ wire: WireQueueState) {
        self.wire = wire
        entries = wire.entries.compactMap(Entry.init)
    }

    /// Applies a delta; only the entries that it names are decoded again.
    mutating func apply(_ event: StreamEvent) {
        guard let delta = try? WireQueueDelta(wireBytes: event.payload) else { return }
        let read = Dictionary(entries.map { ($0.id.text, $0) }) { first, _ in first }
        var named: Set<String> = []
        for step in delta.steps {
            switch step.step {
            case .insert(let insert), .update(let insert): named.insert(insert.entry.id)
            default: break
            }
        }
        wire.apply(delta)
        entries = wire.entries.compactMap { named.contains($0.id) ? Entry($0) : read[$0.id] }
    }

    /// Its name; Up Next’s is `main`.
    public var name: String { wire.name.isEmpty ? QueueName.default : wire.name }
    /// Whether it is Up Next.
    public var isUpNext: Bool { name == QueueName.default }
    /// Its display name: Up Next, or the name in quotation marks.
    public var title: String { QueueName.shown(name) }
    /// The queue’s revision, which increases with every change.
    public var revision: UInt64 { wire.revision }
    /// The current entry’s ID; nil if it has none.
    public var current: QueueEntryID? { QueueEntryID(wire.current) }
    /// The queue’s repetition, consumption and limit.
    public var modes: QueueModes { QueueModes(wire.modes) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }

    /// Returns the entry with this ID; nil if it doesn’t exist.
    public func entry(_ id: QueueEntryID?) -> Entry? { id.flatMap { id in entries.first { $0.id == id } } }

    /// Returns the queue with the player’s position and duration; the queue stores them when the episode is unloaded.
    package func withPosition(of player: PlayerState, at now: Moment = .now) -> QueueState {
        guard let loaded = player.episode, player.status != .finished else { return self }
        var wire = wire
        for index in wire.entries.indices where wire.entries[index].episode.id == loaded.id.text {
            wire.entries[index].episode.position = player.position(at: now)
            if let duration = player.duration { wire.entries[index].episode.duration = duration }
        }
        return QueueState(wire)
    }
}

/// The modes of a queue: repetition, consumption and limit.
public struct QueueModes: Sendable, Hashable {
    /// The repetition of a queue.
    public enum Repeat: String, Sendable, Hashable, CaseIterable {
        /// No entry follows the last one.
        case off
        /// The first entry follows the last one.
        case all
        /// The entry that ends is repeated.
        case one
    }

    /// The repetition of the queue.
    public let `repeat`: Repeat
    /// Whether entries are removed when they have ended.
    public let consumes: Bool
    /// The maximum number of entries.
    public let limit: Int

    init(_ wire: WireQueueModes) {
        `repeat` = Repeat(rawValue: wire.repeat.word) ?? .off
        consumes = !wire.keep
        limit = wire.limit == 0 ? RequestSizes.queueEntries : Int(wire.limit)
    }

    /// The modes that differ from their defaults, as text.
    package var words: [String] {
        var words: [String] = []
        switch `repeat` {
        case .all: words.append("repeats all")
        case .one: words.append("repeats one")
        case .off: break
        }
        if !consumes { words.append("keeps what has ended") }
        if limit < RequestSizes.queueEntries { words.append("holds \(limit) at most") }
        return words
    }

    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue {
        .object(["repeat": .string(`repeat`.rawValue), "consume": .bool(consumes), "limit": .integer(Int64(limit))])
    }
}

extension WireRepeat {
    var word: String {
        switch self {
        case .off, .UNRECOGNIZED: "off"
        case .all: "all"
        case .one: "one"
        }
    }
}

/// The queue that plays and the entry that follows, as the queue service has decided.
public struct NextState: Sendable, Hashable {
    /// The reason why nothing follows.
    public enum Reason: String, Sendable, Hashable {
        /// Nothing is loaded.
        case nothingLoaded
        /// The loaded episode has ended or failed, and no entry followed it.
        case ended
        /// The current entry is the last one.
        case lastEntry
        /// The queue has no other entry.
        case noOtherEntry

        init?(_ wire: WireQueueNext.Reason) {
            switch wire {
            case .nothingLoaded: self = .nothingLoaded
            case .ended: self = .ended
            case .lastEntry: self = .lastEntry
            case .noOtherEntry: self = .noOtherEntry
            case .unknown, .UNRECOGNIZED: return nil
            }
        }
    }

    /// The name of the queue that plays.
    public let queue: String
    /// Its current entry; nil if it has none.
    public let current: QueueState.Entry?
    /// The entry that follows when the loaded episode ends or is skipped; nil with a `reason` if none does.
    public let following: QueueState.Entry?
    /// The reason why no entry follows; nil if one does, or if it isn’t known.
    public let reason: Reason?
    /// The most recently decided loads, the newest last.
    package let loads: [WireDecidedLoad]

    init(_ wire: WireQueueNext) {
        queue = wire.queue
        current = wire.hasCurrent ? .init(wire.current) : nil
        following = wire.hasFollowing ? .init(wire.following) : nil
        reason = Reason(wire.reason)
        loads = wire.loads
    }
}
