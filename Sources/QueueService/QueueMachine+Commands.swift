import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension QueueMachine {
    /// Carries a command out, the episodes that it names being known.
    mutating func execute(
        _ request: WireQueueRequest, of command: Command, knowing episodes: [String: WireEpisodeSummary], now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let name = name(request)
        switch request.command {
        case .create: return try create(name, of: command)
        case .setSetting(let setting): return try set(setting, of: command)
        case .answerAlert(let answer): return try self.answer(answer, of: command, now: now)
        default: break
        }
        guard let named = queues.current[name] else { throw noQueue(name) }
        if request.hasIfRevision, request.ifRevision != named.queue.revision {
            throw changedMeanwhile(named, expected: request.ifRevision)
        }
        switch request.command {
        case .add(let add): return try self.add(add, to: name, of: command, knowing: episodes, now: now)
        case .remove(let remove) where !remove.texts.isEmpty: throw Self.unknownCommand
        case .remove(let remove): return try self.remove(remove.entries, from: name, of: command, now: now)
        case .move(let move): return try self.move(move, in: name, of: command, now: now)
        case .clear: return try clear(name, of: command, now: now)
        case .play(let play): return try self.play(play, in: name, of: command, knowing: episodes, now: now)
        case .next(let next): return try step(from: next.from, in: name, of: command, forward: true, now: now)
        case .previous(let previous):
            return try step(from: previous.from, in: name, of: command, forward: false, now: now)
        case .undo(let undo): return try travel(name, at: undo.fromRevision, of: command, back: true)
        case .redo(let redo): return try travel(name, at: redo.fromRevision, of: command, back: false)
        case .history(let query):
            var reply = reply(named)
            reply.history = named.history.newest(query.limit == 0 ? QueueHistory.limit : Int(query.limit))
            return [.reply(command.id, .success(reply.wireBytes))]
        case .delete: return try delete(named, of: command)
        case .sort(let sort): return try self.sort(sort, named, of: command, now: now)
        case .deduplicate: return deduplicate(named, of: command, now: now)
        case .setModes(let modes): return try setModes(modes, of: named, command)
        case .restore(let restore): return try self.restore(restore.revision, named, of: command, now: now)
        case .create, .setSetting, .answerAlert, .toggle, .playNamed, nil:
            throw Self.unknownCommand
        }
    }

    private static let unknownCommand = Failure(
        .unknownCommand, "The queue service doesn’t know this command; it may come from a newer version.")

    private func changedMeanwhile(_ named: NamedQueue, expected revision: UInt64) -> Failure {
        Failure(
            .revisionMismatch,
            "The queue was changed in the meantime: it is at revision \(named.queue.revision), not \(revision). Check it and try again."
        )
    }

    // MARK: - Editing

    private mutating func add(
        _ add: WireAddEntries, to name: String, of command: Command, knowing episodes: [String: WireEpisodeSummary],
        now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard !add.episodes.isEmpty else { throw Failure(.invalidArgument, "No episodes were named to add.") }
        let loaded = player?.queueEntry ?? ""
        var named = named(name)
        let queue = named.queue
        var reply = reply(named)
        let new = Set(queue.absent(among: add.episodes))
        try Self.checkRoom(named, for: new.count)
        var entries: [WireQueueEntry] = []
        var seen: Set<String> = []
        for (index, episode) in add.episodes.enumerated() where seen.insert(episode).inserted {
            if new.contains(episode) {
                entries.append(try entry(episode, index, of: command, knowing: episodes, now: now))
            } else {
                reply.alreadyThere.append(episode)
            }
        }
        // "Next" is behind what plays: the current entry, or the one that is loaded, or else the front.
        let anchor = queue.current ?? (queue.index(of: loaded) != nil ? loaded : "")
        let ahead = queue.successor.flatMap { queue.entry(before: $0)?.id } ?? anchor
        var after = add.next ? (anchor.isEmpty ? ahead : anchor) : queue.entries.last?.id ?? ""
        var steps: [WireQueueStep] = []
        for entry in entries {
            steps.append(.inserting(entry, after: after))
            after = entry.id
        }
        let what = entries.count == 1 ? "“\(entries[0].episode.title)”" : "\(entries.count) episodes"
        let change = named.edit(
            steps, add.next ? "Added \(what) to play next" : "Added \(what)", origin: command.origin, now: now.wall)
        reply.entries = Array(entries.prefix(Self.answeredEntries))
        reply.count = UInt32(entries.count)
        return commit(named, change, reply, answering: command)
    }

    private mutating func remove(
        _ ids: [String], from name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard !ids.isEmpty else { throw Failure(.invalidArgument, "No entries were named to remove.") }
        var named = named(name)
        var found: [(index: Int, entry: Queue.Entry)] = []
        for id in Set(ids).sorted() {
            guard let index = named.queue.index(of: id) else {
                throw Failure(
                    .notFound,
                    "An entry to remove is no longer in \(QueueName.shown(name)); nothing was removed.")
            }
            found.append((index, named.queue.entries[index]))
        }
        found.sort { $0.index > $1.index }
        let what = found.count == 1 ? "“\(found[0].entry.wire.episode.title)”" : "\(found.count) entries"
        let change = named.edit(
            found.map { .removing($0.entry.id) }, "Removed \(what)", origin: command.origin, now: now.wall)
        var reply = reply(named)
        reply.entries = found.suffix(Self.answeredEntries).reversed().map(\.entry.wire)
        reply.count = UInt32(found.count)
        return commit(named, change, reply, answering: command)
    }

    private mutating func move(
        _ move: WireMoveEntry, in name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        var named = named(name)
        let queue = named.queue
        guard let entry = queue.entry(move.entry), let from = queue.index(of: move.entry) else {
            throw Failure(
                .notFound, "That entry is no longer in \(QueueName.shown(name)); nothing was moved.")
        }
        let place = try Self.place(of: move, from: from, in: queue, named: name)
        var reply = reply(named)
        reply.entries = [entry.wire]
        guard place != from else { return commit(named, OwnerChange(), reply, answering: command) }
        let anchor = place == 0 ? nil : queue.entries[place <= from ? place - 1 : place]
        var steps: [WireQueueStep] = [.removing(move.entry), .inserting(entry.wire, after: anchor?.id ?? "")]
        // Moving keeps the mark where it was, on this entry too.
        if queue.current == move.entry { steps.append(.settingCurrent(move.entry)) }
        let change = named.edit(
            steps, "Moved “\(entry.wire.episode.title)” to place \(place + 1)", origin: command.origin, now: now.wall)
        return commit(named, change, reply, answering: command)
    }

    /// The index that the entry at `from` will have.
    private static func place(
        of move: WireMoveEntry, from: Int, in queue: Queue, named name: String
    ) throws(Failure) -> Int {
        func index(of id: String) throws(Failure) -> Int {
            guard id != move.entry else {
                throw Failure(.invalidArgument, "An entry cannot be moved before or after itself.")
            }
            guard let index = queue.index(of: id) else {
                throw Failure(
                    .notFound, "The other entry is no longer in \(QueueName.shown(name)); nothing was moved.")
            }
            // Among the others.
            return index > from ? index - 1 : index
        }
        switch move.to {
        case .before(let id): return try index(of: id)
        case .after(let id): return try index(of: id) + 1
        case .index(let place):
            guard place < queue.entries.count else {
                throw Failure(
                    .invalidArgument,
                    "\(QueueName.shown(name)) has \(Self.counted(queue.entries.count)); there is no position \(place + 1)."
                )
            }
            return Int(place)
        case .beforeText, .afterText: throw unknownCommand
        case nil: throw Failure(.invalidArgument, "The request doesn’t say where to move the entry.")
        }
    }

    private mutating func clear(
        _ name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let loaded = player.map { $0.status == .idle || $0.status == .finished ? "" : $0.queueEntry } ?? ""
        var named = named(name)
        let going = named.queue.entries.filter { $0.id != loaded }
        let change = named.edit(
            going.reversed().map { .removing($0.id) }, "Cleared \(Self.counted(going.count))",
            origin: command.origin, now: now.wall)
        var reply = reply(named)
        reply.entries = going.prefix(Self.answeredEntries).map(\.wire)
        reply.count = UInt32(going.count)
        reply.description_p = Self.counted(going.count)
        return commit(named, change, reply, answering: command)
    }

    private mutating func travel(
        _ name: String, at revision: UInt64, of command: Command, back: Bool
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let loaded = player?.queueEntry ?? ""
        var named = named(name)
        if revision != 0, revision != named.queue.revision {
            throw changedMeanwhile(named, expected: revision)
        }
        let gone = rules.current.forgotten
        let journey = back ? named.undo(loaded: loaded, without: gone) : named.redo(loaded: loaded, without: gone)
        guard let result = journey else {
            var reply = reply(named)
            reply.description_p = ""
            return commit(named, OwnerChange(), reply, answering: command)
        }
        // What was there once comes back, also where a limit has been set since.
        var reply = reply(named)
        reply.description_p = result.description + Self.staysOut(result.forgotten)
        // They may have been heard since.
        return commit(named, result.change, reply, answering: command) + refreshEpisodes(Set(result.episodes))
    }

    // MARK: - Parts

    func entry(
        _ episode: String, _ index: Int, of command: Command, knowing episodes: [String: WireEpisodeSummary],
        verb: String = "Added", now: Moment
    ) throws(Failure) -> WireQueueEntry {
        guard let summary = episodes[episode] else {
            throw Failure(.notFound, "There is no episode “\(episode)”; nothing was added.")
        }
        try Self.requireAudio(of: summary)
        var entry = WireQueueEntry()
        // Derived from the request: the same command repeated makes the same entry.
        entry.id = QueueEntryID.derived(from: "\(command.id)/\(index)").text
        entry.episode = summary
        entry.addedAt = now.wall.milliseconds
        entry.reason = "\(verb) \(CommandOrigin(command.origin).phrase)"
        return entry
    }

    /// What the player could not even open is refused here, where somebody hears of it and nothing has stopped for it.
    static func requireAudio(of episode: WireEpisodeSummary) throws(Failure) {
        do throws(Failure) { _ = try AudioSource(enclosure: episode.enclosureURL) } catch {
            throw Failure(
                code: error.code, message: "“\(episode.title)” cannot be played; nothing was changed. \(error.message)")
        }
    }

    static func checkRoom(_ named: NamedQueue, for count: Int) throws(Failure) {
        guard count == 0 || named.queue.entries.count + count <= named.limit else {
            throw Failure(
                .limitReached,
                "\(QueueName.shown(named.name)) holds \(counted(named.queue.entries.count)) and takes at most \(named.limit); nothing was added. Remove some first."
            )
        }
    }

    /// What of forgotten podcasts did not come back, as the end of a sentence.
    static func staysOut(_ count: Int) -> String {
        switch count {
        case 0: ""
        case 1: "; 1 entry of a forgotten podcast stays out"
        default: "; \(count) entries of forgotten podcasts stay out"
        }
    }

    static func counted(_ count: Int) -> String { count == 1 ? "1 entry" : "\(count) entries" }
}
