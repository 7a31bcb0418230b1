import PodcastModel
import WireMessages

// Determines the queue and the entries to which a request refers.

extension QueueMachine {
    /// Returns the name of the queue to which a request refers. If the request names none, commands for playback apply
    /// to the playing queue, and others to the default one.
    func name(_ request: WireQueueRequest) -> String {
        guard request.queue.isEmpty else { return request.queue }
        switch request.command {
        case .play(let play): return queueToPlay(play)
        case .next, .previous, .toggle: return playingQueue
        default: return QueueName.default
        }
    }

    private func queueToPlay(_ play: WirePlay) -> String {
        let names = [playingQueue, QueueName.default] + queues.keys.sorted()
        let holder =
            switch play.what {
            case .entry(let id): names.first { queues[$0]?.queue.index(of: id) != nil }
            case .episode(let episode): names.first { queues[$0]?.queue.entry(episode: episode) != nil }
            case .resume, nil: String?.none
            }
        return holder ?? playingQueue
    }

    /// The queues to search if none is named: the playing one, if something is loaded, and the default one.
    private var queuesToPlayFrom: [NamedQueue] {
        let playing = playingQueue
        let isIdle = upcomingLoad == nil && player.map { $0.loadID.isEmpty || $0.status == .idle } ?? true
        return isIdle || playing == QueueName.default ? [main] : [queues.named(playing), main]
    }

    /// Replaces the texts and numbers that refer to entries in a request with the entries’ IDs.
    ///
    /// - Throws: `notFound`, `ambiguous`, `invalidArgument`.
    func resolved(_ request: WireQueueRequest) throws(Failure) -> WireQueueRequest {
        var resolved = request
        switch request.command {
        case .playNamed(let play):
            let queues = request.queue.isEmpty ? queuesToPlayFrom : [try queues.existing(request.queue)]
            var finder = EntryFinder(in: queues.first ?? main, or: Array(queues.dropFirst()))
            let found: (list: NamedQueue, entry: Queue.Entry)
            switch play.what {
            case .episode(let episode):
                let holder = queues.first { $0.queue.entry(episode: episode) != nil } ?? queues.last
                resolved.queue = holder?.name ?? QueueName.default
                resolved.play.episode = episode
                if play.hasPosition { resolved.play.position = play.position }
                return resolved
            case .number(let number): found = try finder.entry(number: number)
            case .entryText(let text): found = try finder.entry(text)
            case nil: throw Failure(.invalidArgument, "The request doesn’t name an entry to play.")
            }
            resolved.queue = found.list.name
            resolved.play.entry = found.entry.id
            if play.hasPosition { resolved.play.position = play.position }
        case .remove(let remove) where !remove.texts.isEmpty:
            resolved.remove = try remove.resolved(in: try queues.existing(name(request)))
        case .playlist(let playlist):
            guard case .remove(let remove) = playlist.command, !remove.texts.isEmpty else { break }
            resolved.playlist.remove = try remove.resolved(in: try playlists.existing(playlist.playlist))
        case .move(let move):
            var finder = EntryFinder(in: try queues.existing(name(request)))
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
}

extension WireRemoveEntries {
    /// Replaces the texts that name entries with the entries’ IDs.
    fileprivate func resolved(in list: some EditableList) throws(Failure) -> WireRemoveEntries {
        let limit = type(of: list).textLimit
        guard entries.isEmpty, episodes.isEmpty, texts.count <= limit else {
            throw Failure(
                .invalidArgument, "A request names entries by IDs or by up to \(limit) texts, not both.")
        }
        var resolved = WireRemoveEntries()
        var finder = EntryFinder(in: list)
        for text in texts { resolved.entries.append(try finder.entry(text).entry.id) }
        return resolved
    }
}

extension [WireQueueEntry] {
    /// The first entries, as many as one reply holds. Entries of a hostile feed are large.
    var fitting: [WireQueueEntry] {
        var size = 0
        let end = prefix(RequestSizes.episodes).firstIndex { entry in
            defer { size += entry.wireBytes.count }
            return size >= RequestSizes.pageBytes
        }
        return Array(prefix(Swift.min(end ?? .max, RequestSizes.episodes)))
    }
}
