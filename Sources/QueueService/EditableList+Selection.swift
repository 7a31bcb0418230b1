import BusKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Checks the arguments of commands against the entries of one list, and selects entries.

/// The position to which entries are moved: before or after the entry with an ID, or an index.
enum MoveTarget {
    case before(String)
    case after(String)
    case index(Int)
}

extension EditableList {
    func checkRoom(for count: Int) throws(Failure) {
        guard count == 0 || queue.entries.count + count <= limit else {
            throw Failure(
                .limitReached,
                "\(shown) holds \(queue.counted), and at most \(limit); nothing was added. Remove some first."
            )
        }
    }

    /// Returns the ID of the entry after which new ones are added: the last one, or with `next` the current one, else
    /// the loaded one. It is empty for the start of the queue.
    func anchor(next: Bool, loaded: String) -> String {
        guard next else { return queue.entries.last?.id ?? "" }
        let anchor = queue.current ?? (queue.index(of: loaded) != nil ? loaded : "")
        return anchor.isEmpty ? queue.successor.flatMap { queue.entry(before: $0)?.id } ?? "" : anchor
    }

    /// The maximum number of texts that name entries in one request.
    static var textLimit: Int { 100 }

    /// Returns the named entries in the list’s order. An episode that the list doesn’t contain is ignored.
    func entries(_ remove: WireRemoveEntries) throws(Failure) -> [Queue.Entry] {
        guard !remove.entries.isEmpty || !remove.episodes.isEmpty else {
            throw Failure(.invalidArgument, "The request names no entries to remove.")
        }
        var indices: Set<Int> = []
        for id in Set(remove.entries) {
            guard let index = queue.index(of: id) else {
                throw Failure(.notFound, "An entry to remove is no longer in \(shown); nothing was removed.")
            }
            indices.insert(index)
        }
        if !remove.episodes.isEmpty {
            let episodes = Set(remove.episodes)
            for (index, entry) in queue.entries.enumerated() where episodes.contains(entry.episode) {
                indices.insert(index)
            }
        }
        return indices.sorted().map { queue.entries[$0] }
    }

    /// Returns the index that the first moved entry will have after a move, counted without the moved entries.
    ///
    /// - Parameter moved: the indices of the entries to move, in order.
    func index(of target: MoveTarget, moving moved: [Int]) throws(Failure) -> Int {
        func index(of id: String) throws(Failure) -> Int {
            guard let index = queue.index(of: id) else {
                throw Failure(.notFound, "The other entry is no longer in \(shown); nothing was moved.")
            }
            guard !moved.contains(index) else {
                throw Failure(.notApplicable, "An entry can’t be moved before or after itself.")
            }
            return index - moved.count { $0 < index }
        }
        switch target {
        case .before(let id): return try index(of: id)
        case .after(let id): return try index(of: id) + 1
        case .index(let index):
            guard index <= queue.entries.count - moved.count else {
                throw Failure(
                    .notApplicable,
                    "\(shown) has \(queue.counted); there is no position \(index + moved.count).")
            }
            return index
        }
    }

    /// Returns the entries at a revision, except those of forgotten podcasts, and the number of omitted ones.
    func entries(
        at revision: UInt64, without podcasts: Set<String>
    ) throws(Failure) -> (entries: [WireQueueEntry], forgotten: Int) {
        guard let path = history.path(to: revision, from: queue.revision) else {
            throw Failure(
                .notFound,
                "The history of \(shown) has no revision \(revision). `lockstep \(id.command("history"))` shows those that can be restored."
            )
        }
        var past = queue
        for steps in path { _ = past.apply(steps) }
        let entries = past.entries.map(\.wire)
        let target = entries.filter { queue.index(of: $0.id) != nil || !podcasts.contains($0.episode.podcastID) }
        // Undo ignores the limit; a restoration is a new change.
        guard target.count <= max(limit, queue.entries.count) else {
            throw Failure(
                .limitReached,
                "At revision \(revision) \(shown) held \(Queue.counted(target.count)), and it holds at most \(limit) now; nothing was changed. Raise its limit, or undo changes with `lockstep \(id.command("undo"))`."
            )
        }
        return (target, entries.count - target.count)
    }

    /// Returns the entries with the same audio as an earlier entry or as one in `kept`. None of those in `kept` is
    /// returned.
    func duplicates(keeping kept: [String]) -> [Queue.Entry] {
        let entries = queue.entries
        var removed: [Queue.Entry] = []
        var known: Set<String> = []
        for entry in entries where kept.contains(entry.id) { known.formUnion(entry.wire.episode.audioKeys) }
        for entry in entries where !kept.contains(entry.id) {
            let names = entry.wire.episode.audioKeys
            if known.isDisjoint(with: names) { known.formUnion(names) } else { removed.append(entry) }
        }
        return removed
    }
}

// MARK: - Refusals and texts

extension EditableList {
    func requireRevision(_ revision: UInt64) throws(Failure) {
        guard revision != queue.revision else { return }
        throw Failure(
            .revisionMismatch,
            "\(shown) was changed in the meantime: it is at revision \(queue.revision), not \(revision). Check it and try again."
        )
    }

    /// Returns the end of a sentence with the number of omitted entries of forgotten podcasts.
    static func omissionNote(_ count: Int) -> String {
        switch count {
        case 0: ""
        case 1: "; 1 entry of a forgotten podcast wasn’t restored"
        default: "; \(count) entries of forgotten podcasts weren’t restored"
        }
    }
}

extension NamedQueue {
    /// Returns the failure to play from an empty queue. Its message suggests Up Next if that has entries.
    func empty(else main: NamedQueue) -> Failure {
        let add = "Add something with `lockstep queue add\(QueueName.option(name)) EPISODE`"
        let others = name == main.name || main.queue.entries.isEmpty
        let back = others ? "" : ", or continue with Up Next: `lockstep play --queue \(main.name)`"
        return Failure(.queueEmpty, "\(QueueName.shown(name)) is empty. \(add)\(back).")
    }
}

extension Queue {
    var counted: String { Self.counted(entries.count) }

    static func counted(_ count: Int) -> String { count == 1 ? "1 entry" : "\(count) entries" }
}

// MARK: - Requests

extension WireQueueModes {
    func applying(_ set: WireSetModes) throws(Failure) -> WireQueueModes {
        var modes = self
        if set.hasRepeat {
            if case .UNRECOGNIZED(let value) = set.repeat {
                throw Failure(.invalidArgument, "“\(value)” isn’t a repeat mode; use off, all or one.")
            }
            modes.repeat = set.repeat
        }
        if set.hasConsume { modes.keep = !set.consume }
        if set.hasLimit {
            guard set.limit <= UInt32(Queue.limit) else {
                throw Failure(.invalidArgument, "A queue holds at most \(Queue.limit) entries, not \(set.limit).")
            }
            modes.limit = set.limit
        }
        return modes
    }
}

extension WirePlay {
    /// Returns the start position; nil to continue where playback stopped.
    func startPosition() throws(Failure) -> PlaybackPosition? {
        guard hasPosition else { return nil }
        guard let start = PlaybackPosition(seconds: position) else {
            throw Failure(.invalidArgument, "An episode can’t begin at \(position) s; nothing was changed.")
        }
        if episode.isEmpty, entry.isEmpty {
            throw Failure(.invalidArgument, "The request has a start position but no episode; nothing was changed.")
        }
        return start
    }
}

extension WireQueueEntry {
    /// Creates an entry for an episode that was looked up for a command.
    ///
    /// - Parameter index: The entry’s index in the command. A repeated command creates the same entry.
    static func adding(
        _ episode: String, _ index: Int, _ context: CommandContext, verb: String = "Added"
    ) throws(Failure) -> WireQueueEntry {
        guard let summary = context.episodes[episode] else {
            throw Failure(.notFound, "Episode “\(episode)” doesn’t exist; nothing was added.")
        }
        try summary.requireAudio()
        return .adding(summary, index, context, reason: "\(verb) \(CommandOrigin(context.command.origin).phrase)")
    }

    /// Creates an entry that a command adds.
    static func adding(
        _ episode: WireEpisodeSummary, _ index: Int, _ context: CommandContext, reason: String
    ) -> WireQueueEntry {
        .with {
            $0.id = QueueEntryID.derived(from: "\(context.command.id)/\(index)").text
            $0.episode = episode
            $0.addedAt = context.now.wall.milliseconds
            $0.reason = reason
        }
    }
}

extension WireEpisodeSummary {
    /// Refuses an episode that the player couldn’t open, before playback is interrupted for it.
    func requireAudio() throws(Failure) {
        do { _ = try AudioSource(enclosure: enclosureURL) } catch {
            throw Failure(
                code: error.code, message: "“\(title)” can’t be played; nothing was changed. \(error.message)")
        }
    }

    /// The keys of the episode’s audio: two episodes that share a key have the same audio.
    fileprivate var audioKeys: Set<String> {
        var names: Set<String> = []
        let whole = enclosureURL.prefix { $0 != "#" }
        if !whole.isEmpty { names.insert("url:\(whole)") }
        let details = "\(published)/\(duration.rounded())/\(title)"
        // Some servers distinguish episodes by the query only: the query is ignored only after the name of
        // an audio file, where it serves to count listeners, and only if the episodes are otherwise equal.
        let address = whole.prefix { $0 != "?" }
        let ending = address.split(separator: "/").dropFirst(2).last?.split(separator: ".").dropFirst().last ?? ""
        if Self.audioEndings.contains(ending.lowercased()) { names.insert("file:\(address) \(details)") }
        // News bulletins have the same title and length all day; their time distinguishes them.
        if !title.isEmpty, duration > 0, published != 0 { names.insert("title:\(podcastID) \(details)") }
        return names
    }

    private static let audioEndings: Set = [
        "mp3", "m4a", "m4b", "mp4", "aac", "ogg", "oga", "opus", "flac", "wav",
    ]
}
