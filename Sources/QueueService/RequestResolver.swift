import PodcastModel
import WireMessages

/// Replaces the texts and numbers by which a request names entries with the entries' IDs.
struct RequestResolver {
    let queues: Queues
    /// The queues that may be meant where `play_named` names none, the likelier first.
    let queuesToPlayFrom: [NamedQueue]

    /// The request as if it named IDs.
    ///
    /// - Parameter name: the queue that it is about.
    /// - Throws: `notFound`, `ambiguous`, `invalidArgument`.
    func resolved(_ request: WireQueueRequest, about name: String) throws(Failure) -> WireQueueRequest {
        var resolved = request
        switch request.command {
        case .playNamed(let play):
            let queues = request.queue.isEmpty ? queuesToPlayFrom : [try queues.existing(request.queue)]
            if case .episode(let episode)? = play.what {
                let holder = queues.first { $0.queue.entry(episode: episode) != nil } ?? queues.last
                resolved.queue = holder?.name ?? QueueName.default
                resolved.play.episode = episode
            } else {
                let found = try entry(named: play, in: queues)
                resolved.queue = found.queue.name
                resolved.play.entry = found.entry.id
            }
            if play.hasPosition { resolved.play.position = play.position }
        case .remove(let remove) where !remove.texts.isEmpty:
            guard remove.entries.isEmpty, remove.texts.count <= EntryFinder.limit else {
                throw Failure(
                    .invalidArgument, "A request names entries by IDs or by up to \(EntryFinder.limit) texts, not both."
                )
            }
            var finder = EntryFinder(in: [try queues.existing(name)])
            for text in remove.texts { resolved.remove.entries.append(try finder.entry(text).entry.id) }
            resolved.remove.texts = []
        case .move(let move):
            var finder = EntryFinder(in: [try queues.existing(name)])
            if !move.entryText.isEmpty {
                guard move.entry.isEmpty else {
                    throw Failure(
                        .invalidArgument, "A request names the entry to move by its ID or by a text, not both.")
                }
                resolved.move.entry = try finder.entry(move.entryText).entry.id
            }
            switch move.to {
            case .beforeText(let text): resolved.move.before = try finder.entry(text).entry.id
            case .afterText(let text): resolved.move.after = try finder.entry(text).entry.id
            case .before, .after, .index, nil: break
            }
        default: break
        }
        return resolved
    }

    private func entry(
        named play: WirePlayNamed, in queues: [NamedQueue]
    ) throws(Failure) -> (queue: NamedQueue, entry: Queue.Entry) {
        var finder = EntryFinder(in: queues)
        switch play.what {
        case .number(let number): return try finder.entry(number: number)
        case .entryText(let text): return try finder.entry(text)
        case .episode, nil: throw Failure(.invalidArgument, "The request doesn’t say which entry to play.")
        }
    }
}
