public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands to the playlists. Each returns when its effect is durable, and throws the queue service’s refusal:
/// `notFound` for a missing playlist, item or episode, `ambiguous` for a text with several matches.
public struct PlaylistClient: Sendable {
    let fleet: Fleet

    /// Creates an empty playlist, or one whose rule chooses the episodes; an existing one isn’t changed.
    ///
    /// - Throws: `invalidArgument` for an invalid ID, title or rule; `notFound` for an unknown list in the rule;
    ///   `limitReached`.
    public func create(
        _ id: String, title: String = "", smart: SmartPlaylist? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) { request in
            request.create.title = title
            if let smart { request.create.smart = smart.wire }
        }
    }

    /// The positions of an episode in all playlists.
    public func positions(of episode: EpisodeID) async throws(Failure) -> [PlaylistPosition] {
        try await ask("") { $0.find.episode = episode.text }.wire.positions.map {
            PlaylistPosition(id: $0.playlist, title: DisplayText.sanitised($0.title), number: Int($0.index) + 1)
        }
    }

    /// A rule with the names and IDs of its queues and playlists in place of their titles.
    ///
    /// - Throws: `notFound` or `ambiguous` for a list; `notApplicable` for a smart playlist.
    func resolved(_ rule: EpisodeRule) async throws(Failure) -> EpisodeRule {
        try EpisodeRule(try await ask("") { $0.resolve.rule = rule.description }.wire.rule)
    }

    /// Changes the rule of a smart playlist; nil keeps a value, and an empty queue ends the addition to one.
    ///
    /// - Throws: `notApplicable` for another playlist; otherwise as `create`.
    public func edit(
        _ id: String, rule: String? = nil, order: EpisodeOrder? = nil, limit: Int? = nil, queue: String? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) { request in
            request.change = WireChangePlaylist()
            if let rule { request.change.rule = rule }
            if let order { request.change.order = order.wire }
            if let limit { request.change.limit = UInt32(clamping: limit) }
            if let queue { request.change.queue = queue }
        }
    }

    /// Changes the title and the settings; nil keeps a value.
    public func change(
        _ id: String, title: String? = nil, isContinuous: Bool? = nil, isShuffled: Bool? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) { request in
            request.change = WireChangePlaylist()
            if let title { request.change.title = title }
            if let isContinuous { request.change.continuous = isContinuous }
            if let isShuffled { request.change.shuffle = isShuffled }
        }
    }

    /// Restores a deleted playlist by its ID or title, for a day.
    ///
    /// - Throws: `notFound`; `notApplicable` if a queue has its ID; `limitReached`.
    public func undelete(_ text: String) async throws(Failure) -> QueueAnswer {
        try await ask("") { $0.undelete.text = text }
    }

    /// Deletes a playlist; `undelete` restores it.
    ///
    /// - Throws: `notApplicable` for the favourites, and for a playlist with items unless `withItems` is true.
    public func delete(_ id: String, withItems: Bool = false) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.delete.withItems = withItems }
    }

    /// Returns all items of a playlist in order.
    ///
    /// - Throws: `unavailable` if the playlist changes each time that it is read.
    public func items(_ id: String) async throws(Failure) -> PlaylistItems {
        for _ in 1...5 {
            if let items = try await unchangedItems(id) { return items }
        }
        throw Failure(.unavailable, "The playlist “\(id)” was changed while it was read. Try again.")
    }

    /// Returns nil if the playlist was changed between two pages.
    private func unchangedItems(_ id: String) async throws(Failure) -> PlaylistItems? {
        var items: [WireQueueEntry] = []
        var playlist: PlaylistState?
        while true {
            let page = try await self.items(id, from: items.count)
            let latest = page.playlist
            guard playlist == nil || playlist?.revision == latest.revision else { return nil }
            playlist = latest
            items += page.wire
            if page.wire.isEmpty || items.count >= latest.count {
                return PlaylistItems(playlist: latest, wire: items)
            }
        }
    }

    /// Returns the items from an index on, as many as one reply holds.
    public func items(_ id: String, from offset: Int) async throws(Failure) -> PlaylistItems {
        let answer = try await ask(id) { $0.items.offset = UInt32(clamping: offset) }
        guard let playlist = answer.playlist else {
            throw Failure(.malformed, "The reply about the playlist “\(id)” can’t be read.")
        }
        return PlaylistItems(playlist: playlist, wire: answer.wire.entries)
    }

    /// Adds episodes at the end, or at the front. Episodes that the playlist already contains keep their positions.
    ///
    /// - Throws: `limitReached` if the playlist can’t hold them all.
    public func add(
        _ episodes: [EpisodeID], to id: String, atFront: Bool = false
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) {
            $0.add.episodes = episodes.map(\.text)
            $0.add.next = atFront
        }
    }

    /// Removes the items that match these texts, `QueueClient.textLimit` at most.
    public func remove(named texts: [String], from id: String) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.remove.texts = texts }
    }

    /// Removes these episodes; those that the playlist doesn’t contain are ignored.
    public func remove(_ episodes: [EpisodeID], from id: String) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.remove.episodes = episodes.map(\.text) }
    }

    /// Moves the items that match these texts, in the playlist’s order.
    public func move(
        named texts: [String], to target: QueueClient.MoveTarget, in id: String
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) {
            $0.move.texts = texts
            switch target {
            case .before(let text): $0.move.beforeText = text
            case .after(let text): $0.move.afterText = text
            case .index(let index): $0.move.index = UInt32(clamping: index)
            }
        }
    }

    /// Removes all items.
    public func clear(_ id: String) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.clear = WireClearQueue() }
    }

    /// Sorts the items; items without a value of the key are last.
    public func sort(
        _ id: String, by key: QueueClient.SortKey, descending: Bool = false
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) {
            $0.sort.by = key.wire
            $0.sort.descending = descending
        }
    }

    /// Removes items with the same audio as an earlier one.
    public func deduplicate(_ id: String) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.deduplicate = WireRemoveDuplicates() }
    }

    /// Undoes the newest change of the items.
    ///
    /// - Parameter change: the change that must be the newest one, `QueueAnswer.undo`; nil for any.
    /// - Throws: `revisionMismatch`.
    public func undo(in id: String, change: UInt64? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.undo.change = change ?? 0 }
    }

    /// Redoes the last undone change.
    public func redo(in id: String) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.redo = WireRedo() }
    }

    /// Returns the changes of the items, the newest first; 0 for all.
    public func history(of id: String, limit: UInt32 = 0) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.history.limit = limit }
    }

    /// Restores the items of an earlier revision, as one change that can be undone.
    public func restore(_ id: String, revision: UInt64) async throws(Failure) -> QueueAnswer {
        try await ask(id) { $0.restore.revision = revision }
    }

    /// Adds the items to Up Next after the current entry, and plays the first one.
    ///
    /// - Parameter text: the item to start with; nil for the first one.
    /// - Parameter isShuffled: whether the order is random; nil for the playlist’s setting.
    /// - Parameter isContinuous: whether the items after the first one are added; nil for the playlist’s setting.
    /// - Parameter seed: of the random order; 0 for a new one.
    public func play(
        _ id: String, from text: String? = nil, isShuffled: Bool? = nil, isContinuous: Bool? = nil, seed: UInt64 = 0
    ) async throws(Failure) -> QueueAnswer {
        try await ask(id) { request in
            request.play.fromText = text ?? ""
            request.play.seed = seed
            if let isShuffled { request.play.shuffle = isShuffled }
            if let isContinuous { request.play.continuous = isContinuous }
        }
    }

    private func ask(
        _ id: String, _ fill: (inout WirePlaylistRequest) -> Void
    ) async throws(Failure) -> QueueAnswer {
        var request = WireQueueRequest()
        request.playlist.playlist = id
        fill(&request.playlist)
        return QueueAnswer(try await fleet.ask(.queue, request, reply: WireQueueReply.self))
    }
}

/// A playlist with its items, or a part of them, at one revision.
public struct PlaylistItems: Sendable {
    /// The playlist’s title and settings.
    public let playlist: PlaylistState
    let wire: [WireQueueEntry]

    /// The items, in order.
    public var entries: [QueueState.Entry] { wire.compactMap(QueueState.Entry.init) }

    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue {
        let episodes = wire.map { entry in
            entry.episode.json.adding([
                "entry": .string(entry.id), "addedAt": .moment(milliseconds: entry.addedAt),
                "reason": .text(entry.reason),
            ])
        }
        return playlist.json.adding("episodes", .array(episodes))
    }
}

/// The position of an episode in a playlist.
public struct PlaylistPosition: Sendable, Hashable {
    /// The playlist’s ID.
    public let id: String
    /// The playlist’s title.
    public let title: String
    /// The episode’s number in the playlist, from 1.
    public let number: Int

    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue {
        .object(["playlist": .string(id), "name": .text(title), "place": .integer(Int64(number))])
    }
}
