public import PodcastModel
import WireMessages

/// Commands to the queues. Each returns when its effect is in the state, and throws the queue’s refusal: `notFound` for
/// a missing queue, entry or episode, `ambiguous` for a text with several matches. If no queue is named, `toggle`,
/// `play`, `next` and `previous` use the one that plays, the others Up Next.
public struct QueueClient: Sendable {
    /// An entry or episode to play.
    public enum Target: Sendable, Hashable {
        /// The paused episode, else the current entry, else the first.
        case resume
        /// An entry, by its ID.
        case entry(QueueEntryID)
        /// An episode, which is added before the interrupted one if the queue doesn’t hold it.
        case episode(EpisodeID)
        /// An entry, by its number from 1, in Up Next or the queue that plays.
        case number(UInt32)
        /// An entry that matches a text, in Up Next or the queue that plays: by its number, its ID, its title
        /// or a part of the title.
        case text(String)
        /// An episode in Up Next or the queue that plays; it is added to Up Next if neither holds it.
        case episodeOfShownQueues(EpisodeID)
    }

    /// The target of a move. Another entry is matched by a text, as in `Target.text`.
    public enum MoveTarget: Sendable, Hashable {
        /// Before the entry that this text matches.
        case before(String)
        /// After the entry that this text matches.
        case after(String)
        /// An index, counted from 0 without the moved entry.
        case index(Int)
    }

    /// A key to sort entries by.
    public enum SortKey: String, Sendable, Hashable, CaseIterable {
        /// The episode’s title.
        case title
        /// The podcast’s title.
        case podcast
        /// The time of the episode’s publication.
        case published
        /// The episode’s length.
        case length
        /// The time at which the entry was added.
        case added
        /// The remaining time of the episode.
        case remaining
    }

    let fleet: Fleet

    // MARK: - Playing

    /// Starts playback. Returns when the load is decided; the state shows its outcome.
    ///
    /// - Parameter position: the start position in seconds; nil for the saved one.
    /// - Throws: `queueEmpty` if there is nothing to play.
    public func play(
        _ target: Target = .resume, in queue: String? = nil, at position: Double? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { request in
            switch target {
            case .resume: request.play.resume = true
            case .entry(let id): request.play.entry = id.text
            case .episode(let id): request.play.episode = id.text
            case .number(let number): request.playNamed.number = number
            case .text(let text): request.playNamed.entryText = text
            case .episodeOfShownQueues(let id): request.playNamed.episode = id.text
            }
            guard let position else { return }
            if case .playNamed = request.command {
                request.playNamed.position = position
            } else {
                request.play.position = position
            }
        }
    }

    /// Pauses playback or a pending load, or resumes the loaded episode, or starts the queue. The state when the
    /// command arrives decides.
    ///
    /// - Throws: `queueEmpty` if there is nothing to start.
    public func toggle(_ queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.toggle = WireTogglePlayback() }
    }

    /// Skips to the next entry. Paused playback stays paused.
    ///
    /// - Parameter entry: the entry that must be current, or the call does nothing; nil for any.
    /// - Throws: `atEdge` if no entry follows; `queueEmpty`.
    public func next(from entry: QueueEntryID? = nil, in queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.next.from = entry?.text ?? "" }
    }

    /// Returns to the previous entry. Paused playback stays paused.
    ///
    /// - Parameter entry: the entry that must be current, or the call does nothing; nil for any.
    /// - Throws: `atEdge` if there is none; `queueEmpty`.
    public func previous(
        from entry: QueueEntryID? = nil, in queue: String? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.previous.from = entry?.text ?? "" }
    }

    // MARK: - Editing

    /// Adds episodes at the end or after the current entry (`next`). Entries already in the queue keep their positions.
    ///
    /// - Throws: `limitReached` if the queue can’t hold them all.
    public func add(
        _ episodes: [EpisodeID], next: Bool = false, to queue: String? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) {
            $0.add.episodes = episodes.map(\.text)
            $0.add.next = next
        }
    }

    /// Removes entries by their IDs.
    public func remove(_ entries: [QueueEntryID], from queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.remove.entries = entries.map(\.text) }
    }

    /// The maximum number of texts in one request; each may be compared with every title.
    public static let textLimit = 100

    /// Removes the entries that match these texts, `textLimit` at most.
    public func remove(named texts: [String], from queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.remove.texts = texts }
    }

    /// Moves an entry, by its ID, to an index that is counted from 0 without it.
    public func move(
        _ entry: QueueEntryID, to index: Int, in queue: String? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) {
            $0.move.entry = entry.text
            $0.move.index = UInt32(clamping: index)
        }
    }

    /// Moves the entry that matches a text.
    public func move(
        named text: String, to target: MoveTarget, in queue: String? = nil
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) {
            $0.move.entryText = text
            switch target {
            case .before(let text): $0.move.beforeText = text
            case .after(let text): $0.move.afterText = text
            case .index(let index): $0.move.index = UInt32(clamping: index)
            }
        }
    }

    /// Removes all entries except the loaded one.
    public func clear(_ queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.clear = WireClearQueue() }
    }

    /// Sorts the entries; entries without a value of the key are last.
    public func sort(
        _ queue: String? = nil, by key: SortKey, descending: Bool = false
    ) async throws(Failure) -> QueueAnswer {
        try await ask(queue) {
            $0.sort.by = key.wire
            $0.sort.descending = descending
        }
    }

    /// Puts the entries after the current one into a random order, as one change.
    ///
    /// - Parameter seed: equal seeds give equal orders; 0 for any order.
    public func shuffle(_ queue: String? = nil, seed: UInt64 = 0) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.shuffle.seed = seed }
    }

    /// Renames a queue, with its entries, history and modes, and the settings that name it.
    ///
    /// - Throws: `notFound`; `invalidArgument` for an invalid or existing name; `notApplicable` for Up Next.
    public func rename(_ queue: String, to name: String) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.rename.name = name }
    }

    /// Removes entries that duplicate an earlier entry’s episode, even if its address differs.
    public func deduplicate(_ queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.deduplicate = WireRemoveDuplicates() }
    }

    // MARK: - History

    /// Undoes the newest change of the entries. Modes, such as repeat, aren’t part of the history.
    ///
    /// - Parameter change: the change that must be the newest one, `QueueAnswer.undo`; nil for any.
    /// - Throws: `revisionMismatch`.
    public func undo(in queue: String? = nil, change: UInt64? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.undo.change = change ?? 0 }
    }

    /// Redoes the change that was undone last.
    public func redo(in queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.redo = WireRedo() }
    }

    /// Returns the newest changes, in the answer’s `history`.
    ///
    /// - Parameter limit: the maximum number of changes; 0 for all stored ones.
    public func history(of queue: String? = nil, limit: UInt32 = 0) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.history.limit = limit }
    }

    /// Restores the entries of an earlier revision, as one change that can be undone.
    ///
    /// - Throws: `notFound` for a revision outside the history; `limitReached`.
    public func restore(_ queue: String? = nil, revision: UInt64) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.restore.revision = revision }
    }

    // MARK: - Queues

    /// Creates an empty queue; an existing one isn’t changed.
    ///
    /// - Throws: `invalidArgument` for an invalid name; `limitReached`.
    public func create(_ queue: String) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.create = WireCreateQueue() }
    }

    /// Deletes an empty queue and its history.
    ///
    /// - Throws: `notApplicable` for Up Next, for a queue with entries, and for a queue that a rule fills.
    public func delete(_ queue: String) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.delete = WireDeleteQueue() }
    }

    /// Sets the repeat mode.
    public func setRepeat(_ mode: QueueModes.Repeat, of queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) {
            $0.setModes.repeat =
                switch mode {
                case .off: .off
                case .one: .one
                case .all: .all
                }
        }
    }

    /// Sets whether entries are removed when they have ended.
    public func setConsume(_ isOn: Bool, of queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.setModes.consume = isOn }
    }

    /// Limits the number of entries; 0 sets the highest limit.
    ///
    /// - Throws: `invalidArgument` above the highest limit.
    public func setLimit(_ limit: UInt32, of queue: String? = nil) async throws(Failure) -> QueueAnswer {
        try await ask(queue) { $0.setModes.limit = limit }
    }

    private func ask(
        _ queue: String?, _ fill: (inout WireQueueRequest) -> Void
    ) async throws(Failure) -> QueueAnswer {
        var request = WireQueueRequest()
        request.queue = queue ?? ""
        fill(&request)
        return QueueAnswer(try await fleet.ask(.queue, request, reply: WireQueueReply.self))
    }
}

extension QueueClient.SortKey {
    var wire: WireSortEntries.Key {
        switch self {
        case .title: .title
        case .podcast: .podcast
        case .published: .published
        case .length: .duration
        case .added: .added
        case .remaining: .remaining
        }
    }
}
