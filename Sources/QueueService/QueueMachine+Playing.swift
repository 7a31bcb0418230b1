import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// The commands that decide what plays now.

extension QueueMachine {
    mutating func play(
        _ play: WirePlay, in name: String, of command: Command, knowing episodes: [String: WireEpisodeSummary],
        now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        try requirePlayer()
        let queue = named(name).queue
        let place = try Self.place(of: play)
        switch play.what {
        case .episode(let episode):
            if let entry = queue.entry(episode: episode) {
                return try self.play(entry.id, at: place, in: name, of: command, now: now)
            }
            let entry = try entry(episode, 0, of: command, knowing: episodes, verb: "Played", now: now)
            try Self.checkRoom(named(name), for: 1)
            let interrupted = queue.current ?? queue.standIn?.id
            let after = interrupted.flatMap { queue.entry(before: $0)?.id } ?? ""
            return load(
                entry, in: name, of: command, [.inserting(entry, after: after), .settingCurrent(entry.id)],
                "Played “\(entry.episode.title)”", at: place, paused: false, now: now)
        case .entry(let id):
            return try self.play(id, at: place, in: name, of: command, now: now)
        case .resume, nil:
            if let coming = comingLoad {
                return try self.play(coming.entry.id, in: coming.queue, of: command, now: now)
            }
            if let player, !player.loadID.isEmpty, player.status != .idle, player.status != .finished {
                return player.status == .playing
                    ? [.reply(command.id, .success(reply(named(name)).wireBytes))] : [resume(command)]
            }
            guard let entry = entryToStart(named(name)) else {
                throw empty(name)
            }
            return try self.play(entry, in: name, of: command, now: now)
        }
    }

    /// The entry that a queue is started with: the one behind a current one that stays where it is though it has ended.
    private func entryToStart(_ named: NamedQueue) -> String? {
        let queue = named.queue
        guard let current = queue.current, player?.status == .finished, player?.queueEntry == current,
            named.modes.repeat != .one
        else { return queue.current ?? queue.standIn?.id }
        let first = named.modes.repeat == .all ? queue.entries.first : nil
        return (queue.entry(after: current) ?? first)?.id ?? current
    }

    /// Where it is to begin; nil: where it was left.
    private static func place(of play: WirePlay) throws(Failure) -> PlaybackPosition? {
        guard play.hasPosition else { return nil }
        guard let position = PlaybackPosition(seconds: play.position) else {
            throw Failure(.invalidArgument, "An episode cannot begin at \(play.position) s; nothing was changed.")
        }
        if play.episode.isEmpty, play.entry.isEmpty {
            throw Failure(.invalidArgument, "The request doesn’t say which episode begins there; nothing was changed.")
        }
        return position
    }

    private mutating func play(
        _ id: String, at place: PlaybackPosition? = nil, in name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard let entry = queues.current[name]?.queue.entry(id) else {
            throw Failure(
                .notFound, "That entry is no longer in \(QueueName.shown(name)); nothing was changed.")
        }
        // At a place it is loaded anew, wherever it is.
        if place == nil, let effects = goOn(with: id, in: name, command) { return effects }
        try Self.requireAudio(of: entry.wire.episode)
        return load(
            entry.wire, in: name, of: command, [.settingCurrent(id)], "Played “\(entry.wire.episode.title)”", at: place,
            paused: false, now: now)
    }

    /// Goes on with an entry that is loaded, or will be; nil: it is not.
    private mutating func goOn(with id: String, in name: String, _ command: Command) -> [OwnerEffect<Never>]? {
        if let coming = comingLoad {
            // What the player shows is about to end: it says nothing about what this command has to do.
            guard coming.entry.id == id, !coming.pending.paused else { return nil }
            var reply = reply(named(name))
            reply.loadID = coming.pending.loadID
            return [.reply(command.id, .success(reply.wireBytes))]
        }
        guard let player, player.queueEntry == id, ![.finished, .idle].contains(player.status) else { return nil }
        return player.status == .playing
            ? [.reply(command.id, .success(reply(named(name)).wireBytes))] : [resume(command)]
    }

    mutating func step(
        from: String, in name: String, of command: Command, forward: Bool, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        try requirePlayer()
        let queue = named(name).queue
        let current = queue.current ?? ""
        guard from.isEmpty || from == current else {
            throw Failure(
                .revisionMismatch,
                "The queue has moved on in the meantime: another entry is current. Check it and try again.")
        }
        guard !queue.entries.isEmpty else {
            throw empty(name)
        }
        let neighbour =
            forward
            ? queue.entry(after: current) : queue.entry(before: current.isEmpty ? queue.successor ?? "" : current)
        // A queue that begins again after its last entry has no edge.
        let round = named(name).modes.repeat == .all ? (forward ? queue.entries.first : queue.entries.last) : nil
        guard let entry = neighbour ?? round else {
            throw Failure(
                .atEdge,
                forward
                    ? "This is the last entry of \(QueueName.shown(name)); nothing follows it."
                    : "This is the first entry of \(QueueName.shown(name)); nothing stands before it.")
        }
        return load(
            entry.wire, in: name, of: command, [.settingCurrent(entry.id)],
            (forward ? "Went on to" : "Went back to") + " “\(entry.wire.episode.title)”", paused: !isToPlay, now: now)
    }

    /// Whether it plays, or will when what was decided before has been done.
    private var isToPlay: Bool {
        if let coming = comingLoad { return !coming.pending.paused }
        // Who leaves what failed, or has ended, wants to go on listening: nobody has paused it.
        return player.map {
            [.playing, .failed, .finished].contains($0.status) || $0.status == .loading && $0.willPlay
        } ?? false
    }

    private func empty(_ name: String) -> Failure {
        let add = "Add something with `lockstep queue add\(QueueName.option(name)) EPISODE`"
        // Who came to the end of another queue may want to go on with the usual one.
        let others = name == QueueName.usual || main.queue.entries.isEmpty
        let back = others ? "" : ", or go on with Up Next: `lockstep play --queue \(QueueName.usual)`"
        return Failure(.queueEmpty, "\(QueueName.shown(name)) is empty. \(add)\(back).")
    }

    private func requirePlayer() throws(Failure) {
        guard playerIsReady else {
            throw Failure(
                .unavailable, "The player is not running at the moment; nothing was changed. `lockstep ps` shows why.")
        }
    }
}
