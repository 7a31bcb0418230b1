public import PodcastModel
package import WireMessages

/// The queue service’s reply to a command to a queue or a playlist: the effect, and the resulting list.
public struct QueueAnswer: Sendable {
    package let wire: WireQueueReply

    init(_ wire: WireQueueReply) {
        self.wire = wire
    }

    /// Whether the command has changed something.
    public var changed: Bool { wire.changed }
    /// The name of the command’s queue.
    public var queue: String { wire.queue.isEmpty ? QueueName.default : wire.queue }
    /// The playlist after a command to one; nil after its deletion, and for a command to a queue.
    public var playlist: PlaylistState? { wire.hasPlaylist ? PlaylistState(wire.playlist) : nil }
    /// The list’s display name: Up Next, or the name of the queue or the playlist in quotation marks.
    public var title: String { playlist.map { DisplayText.quoted($0.title) } ?? QueueName.shown(queue) }
    /// Whether this queue continues when the loaded episode ends.
    public var isPlaying: Bool { wire.playing }
    /// The queue’s revision after the command.
    public var revision: UInt64 { wire.revision }
    /// The change of the entries that the command made, for `undo(change:)`; nil if it made none.
    public var undo: UInt64? { wire.undo == 0 ? nil : wire.undo }
    /// The maximum number of the queue’s entries.
    public var limit: Int { Int(wire.limit) }
    /// The entries that were added, removed, moved or played, 500 at most.
    public var entries: [QueueState.Entry] { wire.entries.compactMap(QueueState.Entry.init) }
    /// The number of entries that were added, removed or cleared.
    public var count: Int { Int(wire.count) }
    /// The episodes that weren’t added because the queue already holds them.
    public var alreadyThere: [EpisodeID] { wire.alreadyThere.compactMap(EpisodeID.init) }
    /// The episodes that the list already held, and that an addition to the front moved.
    public var moved: [EpisodeID] { wire.moved.compactMap(EpisodeID.init) }
    /// The index of a moved entry; nil if no entry was to be moved.
    public var index: Int? { wire.hasIndex ? Int(wire.index) : nil }
    /// The entry that follows the loaded one; nil if none does.
    public var following: QueueState.Entry? { wire.hasFollowing ? QueueState.Entry(wire.following) : nil }
    /// The effect of undo, redo, restore, deduplicate or clear as text; otherwise empty.
    public var summary: String { DisplayText.sanitised(wire.description_p) }
    /// The player’s own answer; nil if a load was decided, or the command doesn’t concern the player.
    public var player: PlayerState? { wire.hasPlayer ? PlayerState(wire.player) : nil }
    /// The ID of the decided or playing load; nil if the command doesn’t concern the player.
    public var loadID: LoadID? { LoadID(wire.loadID.isEmpty ? wire.player.loadID : wire.loadID) }
    /// The changes that `QueueClient.history` asked for, the newest first.
    public var history: [QueueChange] { wire.history.map(QueueChange.init) }

    /// The object that `lockstep queue add --json` documents.
    public var json: JSONValue {
        .object([
            "changed": .bool(changed), "revision": .unsigned(revision),
            "entries": .array(wire.entries.map { .object(["id": .string($0.id), "episode": $0.episode.json]) }),
            "count": .unsigned(UInt64(count)), "alreadyThere": .array(wire.alreadyThere.map { .string($0) }),
            "moved": .array(wire.moved.map { .string($0) }), "description": .text(wire.description_p),
        ])
    }
}

/// A change of a queue, as recorded in its history.
public struct QueueChange: Sendable {
    private let wire: WireHistoryItem

    init(_ wire: WireHistoryItem) {
        self.wire = wire
    }

    /// The queue’s revision after the command.
    public var revision: UInt64 { wire.revision }
    /// The time of the change.
    public var at: Timestamp { Timestamp(milliseconds: wire.at) }
    /// A description of the change.
    public var summary: String { DisplayText.sanitised(wire.description_p) }
    /// Whether the change was undone.
    public var isUndone: Bool { wire.undone }
    /// The program or rule that made the change.
    public var origin: CommandOrigin { CommandOrigin(wire.origin) }
    /// The number of entries after the change.
    public var entryCount: Int { Int(wire.entries) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}
