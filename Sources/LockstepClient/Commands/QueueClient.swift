public import PodcastModel
import WireMessages

/// Commands to the queues. Each returns when its effect is in the state, and throws the queue’s refusal. Where no queue is
/// named, `play`, `next` and `previous` mean the one that plays, the others Up Next.
public struct QueueClient: Sendable {
    /// What is to be played.
    public enum Target: Sendable, Hashable {
        /// What is paused, else the current entry, else the first.
        case resume
        /// An entry, by its ID.
        case entry(String)
        /// An episode, which is added in front of the interrupted one where the queue doesn’t hold it.
        case episode(EpisodeID)
    }

    let fleet: Fleet

    /// Plays. It returns when the load is decided; the state shows what becomes of it.
    ///
    /// - Parameter position: where to begin, in seconds; nil: where the episode was left.
    /// - Throws: `queueEmpty`, `notFound`, `noQueue`.
    public func play(
        _ target: Target = .resume, in queue: String? = nil, at position: Double? = nil
    ) async throws(Failure) -> Answer<QueueState.Entry?> {
        let reply = try await ask(queue) { request in
            switch target {
            case .resume: request.play.resume = true
            case .entry(let id): request.play.entry = id
            case .episode(let id): request.play.episode = id.text
            }
            if let position { request.play.position = position }
        }
        return Answer(changed: reply.changed, value: reply.entries.first.map(QueueState.Entry.init))
    }

    /// Plays the entry that follows.
    ///
    /// - Throws: `notFound` when none follows.
    public func next(in queue: String? = nil) async throws(Failure) -> Answer<QueueState.Entry?> {
        let reply = try await ask(queue) { $0.next = WireNext() }
        return Answer(changed: reply.changed, value: reply.entries.first.map(QueueState.Entry.init))
    }

    /// Plays the entry before, or what is loaded from its beginning.
    ///
    /// - Throws: `notFound` when there is none.
    public func previous(in queue: String? = nil) async throws(Failure) -> Answer<QueueState.Entry?> {
        let reply = try await ask(queue) { $0.previous = WirePrevious() }
        return Answer(changed: reply.changed, value: reply.entries.first.map(QueueState.Entry.init))
    }

    /// Adds episodes at the end or, with `next`, after the current entry. What the queue holds already stays where it is.
    ///
    /// - Returns: the entries that were added, 500 at most.
    /// - Throws: `notFound`; `queueFull` with the limit.
    public func add(
        _ episodes: [EpisodeID], next: Bool = false, to queue: String? = nil
    ) async throws(Failure) -> Answer<[QueueState.Entry]> {
        let reply = try await ask(queue) {
            $0.add.episodes = episodes.map(\.text)
            $0.add.next = next
        }
        return Answer(changed: reply.changed, value: reply.entries.map(QueueState.Entry.init))
    }

    /// Removes entries, by their IDs.
    ///
    /// - Throws: `notFound`.
    public func remove(_ entries: [String], from queue: String? = nil) async throws(Failure) -> Answer<QueueState?> {
        try await change(queue) { $0.remove.entries = entries }
    }

    /// Moves an entry to an index, counted from 0 without it.
    ///
    /// - Throws: `notFound`.
    public func move(_ entry: String, to index: Int, in queue: String? = nil) async throws(Failure) -> Answer<
        QueueState?
    > {
        try await change(queue) {
            $0.move.entry = entry
            $0.move.index = UInt32(clamping: index)
        }
    }

    /// Removes all entries but the one that is loaded.
    public func clear(_ queue: String? = nil) async throws(Failure) -> Answer<QueueState?> {
        try await change(queue) { $0.clear = WireClearQueue() }
    }

    /// Undoes the newest change.
    ///
    /// - Returns: what was undone, in words; empty: there was nothing to undo.
    public func undo(in queue: String? = nil) async throws(Failure) -> Answer<String> {
        let reply = try await ask(queue) { $0.undo = WireUndo() }
        return Answer(changed: reply.changed, value: DisplayText.sanitised(reply.description_p))
    }

    /// Redoes what was undone last.
    ///
    /// - Returns: what was redone, in words; empty: there was nothing to redo.
    public func redo(in queue: String? = nil) async throws(Failure) -> Answer<String> {
        let reply = try await ask(queue) { $0.redo = WireRedo() }
        return Answer(changed: reply.changed, value: DisplayText.sanitised(reply.description_p))
    }

    private func change(
        _ queue: String?, _ fill: (inout WireQueueRequest) -> Void
    ) async throws(Failure) -> Answer<QueueState?> {
        let reply = try await ask(queue, fill)
        return Answer(changed: reply.changed, value: fleet.state.queue(queue ?? QueueName.usual))
    }

    private func ask(
        _ queue: String?, _ fill: (inout WireQueueRequest) -> Void
    ) async throws(Failure) -> WireQueueReply {
        var request = WireQueueRequest()
        request.queue = queue ?? ""
        fill(&request)
        return try await fleet.ask(.queue, request, reply: WireQueueReply.self)
    }
}

extension QueueState.Entry {
    init(_ wire: WireQueueEntry) {
        self.init(
            id: wire.id, episode: EpisodeSummary(wire.episode), addedAt: Timestamp(milliseconds: wire.addedAt),
            reason: DisplayText.sanitised(wire.reason))
    }
}
