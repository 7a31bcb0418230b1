import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Commands about queues as a whole: which there are, their order, their modes, their past.

extension QueueMachine {
    /// So many queues there can be.
    static let queueLimit = 50

    /// No queue has this name.
    func noQueue(_ name: String) -> Failure {
        Failure(.notFound, "There is no queue “\(name)”. `lockstep queues` lists them.")
    }

    mutating func create(_ name: String, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        if let named = queues.current[name] {
            return commit(named, OwnerChange(), reply(named), answering: command)
        }
        guard QueueName.isValid(name) else {
            throw Failure(.invalidArgument, "“\(name)” can’t be a queue’s name; a name has \(QueueName.rule).")
        }
        guard queues.current.count < Self.queueLimit else {
            throw Failure(
                .limitReached, "There are already \(Self.queueLimit) queues, which is the limit. Delete one first.")
        }
        var named = NamedQueue(name: name)
        let change = named.modesChange()
        return commit(named, change, reply(named), answering: command)
    }

    mutating func delete(_ named: NamedQueue, of command: Command) throws(Failure) -> [OwnerEffect<Never>] {
        guard named.name != QueueName.usual else {
            throw Failure(.invalidArgument, "“main” is Up Next, which is always there; it cannot be deleted.")
        }
        guard named.queue.entries.isEmpty else {
            throw Failure(
                .invalidArgument,
                "“\(named.name)” holds \(Self.counted(named.queue.entries.count)); only an empty queue can be deleted."
            )
        }
        guard !rules.current.names(queue: named.name) else {
            throw Failure(
                .invalidArgument,
                "New episodes enter the queue “\(named.name)” by the setting autoEnqueueQueue; change that first.")
        }
        return commit(named, named.deletion, reply(named), answering: command, deleting: true)
    }

    // MARK: - Modes

    mutating func setModes(
        _ set: WireSetModes, of named: NamedQueue, _ command: Command
    ) throws(Failure) -> [OwnerEffect<Never>] {
        var modes = named.modes
        if set.hasRepeat {
            if case .UNRECOGNIZED(let value) = set.repeat {
                throw Failure(.invalidArgument, "“\(value)” isn’t a repeat mode; use off, all or one.")
            }
            modes.repeat = set.repeat
        }
        if set.hasConsume { modes.keep = !set.consume }
        if set.hasLimit {
            guard set.limit <= UInt32(Queue.limit) else {
                throw Failure(.invalidArgument, "A queue takes at most \(Queue.limit) entries, not \(set.limit).")
            }
            modes.limit = set.limit
        }
        guard modes != named.modes else {
            return commit(named, OwnerChange(), reply(named), answering: command)
        }
        var named = named
        named.modes = modes
        let change = named.modesChange()
        return commit(named, change, reply(named), answering: command)
    }

    // MARK: - Order

    mutating func sort(
        _ sort: WireSortEntries, _ named: NamedQueue, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard let order = EntryOrder(sort.by, descending: sort.descending) else {
            throw Failure(
                .invalidArgument,
                "Entries are sorted by title, podcast, published, duration, added or remaining.")
        }
        var named = named
        let ids = order.sorted(named.queue.entries.map(\.wire)).map(\.id)
        let change = named.edit(
            [.ordering(ids)], "Sorted by \(order.name)\(sort.descending ? ", descending" : "")",
            origin: command.origin, now: now.wall)
        return commit(named, change, reply(named), answering: command)
    }

    mutating func deduplicate(_ named: NamedQueue, of command: Command, now: Moment) -> [OwnerEffect<Never>] {
        var named = named
        let entries = named.queue.entries
        // What plays stays, whichever stands first.
        let kept = [player?.queueEntry, named.queue.current].compactMap(\.self)
        var going: [Queue.Entry] = []
        var known: Set<String> = []
        for entry in entries where kept.contains(entry.id) { known.formUnion(Self.sameAudio(entry.wire.episode)) }
        for entry in entries where !kept.contains(entry.id) {
            let names = Self.sameAudio(entry.wire.episode)
            if known.isDisjoint(with: names) { known.formUnion(names) } else { going.append(entry) }
        }
        let change = named.edit(
            going.reversed().map { .removing($0.id) }, "Removed \(Self.counted(going.count)) that were there twice",
            origin: command.origin, now: now.wall)
        var reply = reply(named)
        reply.entries = going.prefix(Self.answeredEntries).map(\.wire)
        reply.count = UInt32(going.count)
        reply.description_p = Self.counted(going.count)
        return commit(named, change, reply, answering: command)
    }

    /// By what an episode's audio is known: two episodes that share one of these are the same.
    private static func sameAudio(_ episode: WireEpisodeSummary) -> Set<String> {
        var names: Set<String> = []
        let whole = episode.enclosureURL.prefix { $0 != "#" }
        if !whole.isEmpty { names.insert("url:\(whole)") }
        let length = Int(episode.duration.rounded())
        let telling = "\(episode.published)/\(length)/\(episode.title)"
        // Some servers tell episodes apart by the query alone: it is left out behind the name of an audio file, where it
        // counts listeners, and still only for what is alike in all else.
        let address = whole.prefix { $0 != "?" }
        let ending = address.split(separator: "/").dropFirst(2).last?.split(separator: ".").dropFirst().last ?? ""
        if audioEndings.contains(ending.lowercased()) {
            names.insert("file:\(address) \(telling)")
        }
        // Bulletins have one title and one length all day long: their time tells them apart.
        if !episode.title.isEmpty, episode.duration > 0, episode.published != 0 {
            names.insert("title:\(episode.podcastID) \(telling)")
        }
        return names
    }

    private static let audioEndings: Set = [
        "mp3", "m4a", "m4b", "mp4", "aac", "ogg", "oga", "opus", "flac", "wav",
    ]

    // MARK: - The past

    mutating func restore(
        _ revision: UInt64, _ named: NamedQueue, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard let past = named.entries(at: revision) else {
            throw Failure(
                .notFound,
                "The history of \(QueueName.shown(named.name)) has no revision \(revision). `lockstep queue history\(QueueName.option(named.name))` shows those that can be restored."
            )
        }
        let gone = rules.current.forgotten
        let target = past.filter { named.queue.index(of: $0.id) != nil || !gone.contains($0.episode.podcastID) }
        // Undoing leads back whatever the limit; this is a new change.
        guard target.count <= max(named.limit, named.queue.entries.count) else {
            throw Failure(
                .limitReached,
                "At revision \(revision) \(QueueName.shown(named.name)) held \(Self.counted(target.count)), and it takes at most \(named.limit) now; nothing was changed. Raise its limit, or undo changes with `lockstep queue undo`."
            )
        }
        let loaded = player.map { $0.status == .idle ? "" : $0.queueEntry } ?? ""
        var named = named
        var steps = named.queue.steps(to: target)
        if named.queue.index(of: loaded) == nil, target.contains(where: { $0.id == loaded }) {
            steps.append(.settingCurrent(loaded))
        }
        let change = named.edit(
            steps, "Restored revision \(revision)", origin: command.origin, now: now.wall)
        var reply = reply(named)
        reply.description_p = Self.counted(target.count) + Self.staysOut(past.count - target.count)
        return commit(named, change, reply, answering: command)
            + refreshEpisodes(Set(WireQueueStep.newcomers(of: steps).map(\.episode.id)))
    }
}

/// An order of entries: by one key, those that lack it last, those that are the same as they stand.
struct EntryOrder {
    private let key: WireSortEntries.Key
    private let descending: Bool
    /// The key in words.
    let name: String

    /// Nil for a key that is not known.
    init?(_ key: WireSortEntries.Key, descending: Bool) {
        self.key = key
        self.descending = descending
        switch key {
        case .title: name = "title"
        case .podcast: name = "podcast"
        case .published: name = "publication"
        case .duration: name = "length"
        case .added: name = "time of adding"
        case .remaining: name = "remaining time"
        case .unknown, .UNRECOGNIZED: return nil
        }
    }

    /// The entries in this order.
    func sorted(_ entries: [WireQueueEntry]) -> [WireQueueEntry] {
        let keys = entries.map(value)
        let order = entries.indices.sorted { left, right in
            switch (keys[left], keys[right]) {
            case (let first?, let second?) where first != second: return (first < second) != descending
            case (nil, .some): return false
            case (.some, nil): return true
            default: return left < right
            }
        }
        return order.map { entries[$0] }
    }

    private struct Value: Comparable {
        var text = ""
        var number = 0.0
        static func < (left: Value, right: Value) -> Bool {
            (left.text, left.number) < (right.text, right.number)
        }
    }

    private func value(_ entry: WireQueueEntry) -> Value? {
        let episode = entry.episode
        switch key {
        case .title: return episode.title.isEmpty ? nil : Value(text: episode.title.lowercased())
        case .podcast: return episode.podcastTitle.isEmpty ? nil : Value(text: episode.podcastTitle.lowercased())
        case .published: return episode.published == 0 ? nil : Value(number: Double(episode.published))
        case .duration: return episode.duration > 0 ? Value(number: episode.duration) : nil
        case .added: return Value(number: Double(entry.addedAt))
        case .remaining:
            return episode.duration > 0 ? Value(number: max(0, episode.duration - episode.position)) : nil
        case .unknown, .UNRECOGNIZED: return nil
        }
    }
}
