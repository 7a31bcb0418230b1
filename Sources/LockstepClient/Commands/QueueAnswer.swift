public import PodcastModel
package import WireMessages

/// A queue’s answer to a command: the effect, and the queue after it.
public struct QueueAnswer: Sendable {
    package let wire: WireQueueReply

    init(_ wire: WireQueueReply) {
        self.wire = wire
    }

    /// Whether the command has changed something; false: it was so already.
    public var changed: Bool { wire.changed }
    /// The name of the queue that the command was about.
    public var queue: String { wire.queue.isEmpty ? QueueName.default : wire.queue }
    /// The queue’s name as sentences say it: Up Next, or the name in quotation marks.
    public var title: String { QueueName.shown(queue) }
    /// Whether that is the queue that goes on when what is loaded ends.
    public var isPlaying: Bool { wire.playing }
    /// The number of the queue’s changes so far.
    public var revision: UInt64 { wire.revision }
    /// The maximum number of the queue’s entries.
    public var limit: Int { Int(wire.limit) }
    /// The entries that were added, removed, moved or played, 500 at most.
    public var entries: [QueueState.Entry] { wire.entries.compactMap(QueueState.Entry.init) }
    /// The number of entries that were added, removed or cleared.
    public var count: Int { Int(wire.count) }
    /// The episodes that weren’t added, since the queue holds them.
    public var alreadyThere: [EpisodeID] { wire.alreadyThere.compactMap(EpisodeID.init) }
    /// The index at which a moved entry stands; nil: nothing was to be moved.
    public var index: Int? { wire.hasIndex ? Int(wire.index) : nil }
    /// The entry that follows what is loaded; nil: none does.
    public var following: QueueState.Entry? { wire.hasFollowing ? QueueState.Entry(wire.following) : nil }
    /// The effect of undo, redo, restore, deduplicate or clear, in words; empty: none.
    public var summary: String { DisplayText.sanitised(wire.description_p) }
    /// The player, where it has answered itself; nil: a load was decided, or the command wasn’t about the player.
    public var player: PlayerState? { wire.hasPlayer ? PlayerState(wire.player) : nil }
    /// The ID of the load that was decided or that plays; nil: the command wasn’t about the player.
    public var loadID: LoadID? { LoadID(wire.loadID.isEmpty ? wire.player.loadID : wire.loadID) }
    /// The changes that `QueueClient.history` asked for, the newest first.
    public var history: [QueueChange] { wire.history.map(QueueChange.init) }

    /// The object that `lockstep queue add --json` documents.
    public var json: JSONValue {
        .object([
            "changed": .bool(changed), "revision": .unsigned(revision),
            "entries": .array(wire.entries.map { .object(["id": .string($0.id), "episode": $0.episode.json]) }),
            "count": .unsigned(UInt64(count)), "alreadyThere": .array(wire.alreadyThere.map { .string($0) }),
            "description": .text(wire.description_p),
        ])
    }
}

/// A change of a queue, as its history keeps it.
public struct QueueChange: Sendable {
    private let wire: WireHistoryItem

    init(_ wire: WireHistoryItem) {
        self.wire = wire
    }

    /// The revision that it has led to.
    public var revision: UInt64 { wire.revision }
    /// The time at which it was made.
    public var at: Timestamp { Timestamp(milliseconds: wire.at) }
    /// The change in words.
    public var summary: String { DisplayText.sanitised(wire.description_p) }
    /// Whether it has been undone since.
    public var isUndone: Bool { wire.undone }
    /// The program or rule that has made it.
    public var origin: CommandOrigin { CommandOrigin(wire.origin) }
    /// The number of entries after it.
    public var entryCount: Int { Int(wire.entries) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}
