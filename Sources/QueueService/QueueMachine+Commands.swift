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
        let named = try queues.current.existing(name)
        if request.hasIfRevision, request.ifRevision != named.queue.revision {
            throw named.changedMeanwhile(expected: request.ifRevision)
        }
        switch request.command {
        case .add(let add): return try self.add(add, to: name, of: command, knowing: episodes, now: now)
        case .remove(let remove): return try self.remove(remove.entries, from: name, of: command, now: now)
        case .move(let move): return try self.move(move, in: name, of: command, now: now)
        case .clear: return try clear(name, of: command, now: now)
        case .play(let play): return try self.play(play, in: name, of: command, knowing: episodes, now: now)
        case .next(let next): return try step(from: next.from, in: name, of: command, forward: true, now: now)
        case .previous(let previous):
            return try step(from: previous.from, in: name, of: command, forward: false, now: now)
        case .toggle: return try toggle(named, request, of: command, now: now)
        case .undo(let undo): return try applyHistory(named, at: undo.fromRevision, of: command, back: true)
        case .redo(let redo): return try applyHistory(named, at: redo.fromRevision, of: command, back: false)
        case .history(let query):
            var reply = reply(named)
            reply.history = named.history.newest(query.limit == 0 ? QueueHistory.limit : Int(query.limit))
            return [answer(command, reply, about: named)]
        case .delete: return try delete(named, of: command)
        case .sort(let sort): return try self.sort(sort, named, of: command, now: now)
        case .deduplicate: return deduplicate(named, of: command, now: now)
        case .setModes(let modes): return try setModes(modes, of: named, command)
        case .restore(let restore): return try self.restore(restore.revision, named, of: command, now: now)
        case .create, .setSetting, .answerAlert, .playNamed, nil:
            throw Self.unknownCommand
        }
    }

    static let unknownCommand = Failure(
        .unknownCommand, "The queue service doesn’t know this command; it may come from a newer version.")

    // MARK: - Editing

    private mutating func add(
        _ add: WireAddEntries, to name: String, of command: Command, knowing episodes: [String: WireEpisodeSummary],
        now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard !add.episodes.isEmpty else { throw Failure(.invalidArgument, "No episodes were named to add.") }
        var named = named(name)
        var reply = reply(named)
        let new = Set(named.queue.absent(among: add.episodes))
        try named.checkRoom(for: new.count)
        var entries: [WireQueueEntry] = []
        var seen: Set<String> = []
        for (index, episode) in add.episodes.enumerated() where seen.insert(episode).inserted {
            if new.contains(episode) {
                entries.append(try .adding(episodes[episode], episode, index, of: command, now: now))
            } else {
                reply.alreadyThere.append(episode)
            }
        }
        let anchor = named.anchor(next: add.next, loaded: player?.queueEntry ?? "")
        let what = entries.count == 1 ? "“\(entries[0].episode.title)”" : "\(entries.count) episodes"
        let change = named.edit(
            WireQueueStep.inserting(entries, after: anchor), add.next ? "Added \(what) to play next" : "Added \(what)",
            origin: command.origin, now: now.wall)
        reply.entries = Array(entries.prefix(Self.answeredEntries))
        reply.count = UInt32(entries.count)
        return commit(named, change, reply, answering: command)
    }

    private mutating func remove(
        _ ids: [String], from name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        var named = named(name)
        let found = try named.indexed(ids).map(\.entry)
        let what = found.count == 1 ? "“\(found[0].wire.episode.title)”" : "\(found.count) entries"
        let change = named.edit(
            found.map { .removing($0.id) }, "Removed \(what)", origin: command.origin, now: now.wall)
        return commit(named, change, reply(named, removing: found.reversed()), answering: command)
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
        let place = try named.index(of: move, from: from)
        var reply = reply(named)
        reply.entries = [entry.wire]
        reply.index = UInt32(place)
        guard place != from else { return commit(named, OwnerChange(), reply, answering: command) }
        let anchor = place == 0 ? nil : queue.entries[place <= from ? place - 1 : place]
        var steps: [WireQueueStep] = [.removing(move.entry), .inserting(entry.wire, after: anchor?.id ?? "")]
        // Moving keeps the mark where it was, on this entry too.
        if queue.current == move.entry { steps.append(.settingCurrent(move.entry)) }
        let change = named.edit(
            steps, "Moved “\(entry.wire.episode.title)” to place \(place + 1)", origin: command.origin, now: now.wall)
        return commit(named, change, reply, answering: command)
    }

    private mutating func clear(
        _ name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        let loaded = player.map { $0.status == .idle || $0.status == .finished ? "" : $0.queueEntry } ?? ""
        var named = named(name)
        let going = named.queue.entries.filter { $0.id != loaded }
        let change = named.edit(
            going.reversed().map { .removing($0.id) }, "Cleared \(Queue.counted(going.count))",
            origin: command.origin, now: now.wall)
        var reply = reply(named, removing: going)
        reply.description_p = Queue.counted(going.count)
        return commit(named, change, reply, answering: command)
    }

    private mutating func applyHistory(
        _ before: NamedQueue, at revision: UInt64, of command: Command, back: Bool
    ) throws(Failure) -> [OwnerEffect<Never>] {
        if revision != 0, revision != before.queue.revision {
            throw before.changedMeanwhile(expected: revision)
        }
        let loaded = player?.queueEntry ?? ""
        let gone = rules.current.forgotten
        var named = before
        let step = back ? named.undo(loaded: loaded, without: gone) : named.redo(loaded: loaded, without: gone)
        var reply = reply(named)
        guard let step else { return commit(before, OwnerChange(), reply, answering: command) }
        // What was there once comes back, also where a limit has been set since.
        reply.description_p = step.description + NamedQueue.staysOut(step.forgotten)
        // They may have been heard since.
        return commit(named, step.change, reply, answering: command) + refreshEpisodes(Set(step.episodes))
    }

    // MARK: - Parts

    /// The reply to a command that removes these entries. Long lists are not sent back whole.
    func reply(_ named: NamedQueue, removing entries: [Queue.Entry]) -> WireQueueReply {
        var reply = reply(named)
        reply.entries = entries.prefix(Self.answeredEntries).map(\.wire)
        reply.count = UInt32(clamping: entries.count)
        return reply
    }
}
