import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// The commands that decide what plays now.

extension QueueMachine {
    /// The queues that may be meant where none is named: the one that plays, if something is loaded, and the usual one.
    var queuesToPlayFrom: [NamedQueue] {
        let playing = playingQueue
        let isIdle = upcomingLoad == nil && player.map { $0.loadID.isEmpty || $0.status == .idle } ?? true
        return isIdle || playing == QueueName.usual ? [main] : [named(playing), main]
    }

    // MARK: - Playing

    mutating func play(
        _ play: WirePlay, in name: String, of command: Command, knowing episodes: [String: WireEpisodeSummary],
        now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        try requirePlayer()
        let queue = named(name).queue
        let place = try play.place()
        switch play.what {
        case .episode(let episode):
            if let entry = queue.entry(episode: episode) {
                return try self.play(entry.id, at: place, in: name, of: command, now: now)
            }
            let entry = try WireQueueEntry.adding(
                episodes[episode], episode, 0, of: command, verb: "Played", now: now)
            try named(name).checkRoom(for: 1)
            let interrupted = queue.current ?? queue.fallbackCurrent?.id
            let after = interrupted.flatMap { queue.entry(before: $0)?.id } ?? ""
            return load(
                entry, in: name, of: command, [.inserting(entry, after: after), .settingCurrent(entry.id)],
                "Played “\(entry.episode.title)”", at: place, paused: false, now: now)
        case .entry(let id):
            return try self.play(id, at: place, in: name, of: command, now: now)
        case nil where !play.unknownFields.data.isEmpty:
            throw Self.unknownCommand
        case .resume, nil:
            // Another queue than the one that plays is started for its own sake.
            guard name == playingQueue else { return try start(name, of: command, now: now) }
            if let upcoming = upcomingLoad {
                return try self.play(upcoming.entry.id, in: upcoming.queue, of: command, now: now)
            }
            if let player, player.isLoaded { return [resume(player, in: name, command)] }
            return try start(name, of: command, now: now)
        }
    }

    /// Pauses what plays, or will; else resumes what is loaded, else starts the queue. What is loaded the player decides.
    mutating func toggle(
        _ named: NamedQueue, _ request: WireQueueRequest, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        try requirePlayer()
        if let upcoming = upcomingLoad {
            let verb = upcoming.pending.paused ? "Played" : "Paused"
            let effects = load(
                upcoming.entry, in: upcoming.queue, of: command, [], "\(verb) “\(upcoming.entry.episode.title)”",
                at: upcoming.pending.hasPosition ? PlaybackPosition(seconds: upcoming.pending.position) : nil,
                paused: !upcoming.pending.paused, now: now)
            return pauseBeforeUpcoming() + effects
        }
        guard let player, player.isLoaded else { return try start(named.name, of: command, now: now) }
        return [ask(.togglePaused(WireTogglePaused()), "toggle", command, decidedAgain: request)]
    }

    /// Pauses what plays until the upcoming load, which is to be paused, takes its place: that may have to wait for the
    /// database.
    mutating func pauseBeforeUpcoming() -> [OwnerEffect<Never>] {
        guard let player, player.willContinue, upcomingLoad?.pending.paused == true else { return [] }
        let message = WirePlaybackRequest.with { $0.setPaused.paused = true }
        return [ask(.playback, message.wireBytes, as: "pause")]
    }

    private mutating func start(_ name: String, of command: Command, now: Moment) throws(Failure) -> [OwnerEffect<
        Never
    >] {
        guard let entry = named(name).entryToStart(after: player) else { throw named(name).empty(else: main) }
        return try play(entry, in: name, of: command, now: now)
    }

    private mutating func play(
        _ id: String, at place: PlaybackPosition? = nil, in name: String, of command: Command, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        guard let entry = queues.current[name]?.queue.entry(id) else {
            throw Failure(
                .notFound, "That entry is no longer in \(QueueName.shown(name)); nothing was changed.")
        }
        // At a place it is loaded anew, wherever it is.
        if place == nil, let effect = resumeIfLoaded(id, in: name, command) { return [effect] }
        try entry.wire.episode.requireAudio()
        return load(
            entry.wire, in: name, of: command, [.settingCurrent(id)], "Played “\(entry.wire.episode.title)”", at: place,
            paused: false, now: now)
    }

    /// Resumes an entry that is loaded, or will be; nil: it is not.
    private mutating func resumeIfLoaded(_ id: String, in name: String, _ command: Command) -> OwnerEffect<Never>? {
        if let upcoming = upcomingLoad {
            // What the player shows is about to end: it says nothing about what this command has to do.
            guard upcoming.entry.id == id, !upcoming.pending.paused else { return nil }
            var reply = reply(named(name))
            reply.loadID = upcoming.pending.loadID
            return answer(command, reply, about: named(name))
        }
        guard let player, player.queueEntry == id, player.isLoaded else { return nil }
        return resume(player, in: name, command)
    }

    mutating func step(
        from: String, in name: String, of command: Command, forward: Bool, now: Moment
    ) throws(Failure) -> [OwnerEffect<Never>] {
        try requirePlayer()
        let named = named(name)
        guard from.isEmpty || from == named.queue.current ?? "" else {
            throw Failure(
                .revisionMismatch,
                "The queue has moved on in the meantime: another entry is current. Check it and try again.")
        }
        guard !named.queue.entries.isEmpty else { throw named.empty(else: main) }
        guard let entry = named.neighbour(forward: forward) else {
            throw Failure(
                .atEdge,
                forward
                    ? "This is the last entry of \(QueueName.shown(name)); nothing follows it."
                    : "This is the first entry of \(QueueName.shown(name)); nothing stands before it.")
        }
        let isToPlay = upcomingLoad.map { !$0.pending.paused } ?? player?.isToPlay ?? false
        return load(
            entry.wire, in: name, of: command, [.settingCurrent(entry.id)],
            (forward ? "Went on to" : "Went back to") + " “\(entry.wire.episode.title)”", paused: !isToPlay, now: now)
    }

    private func requirePlayer() throws(Failure) {
        guard playerIsReady else {
            throw Failure(
                .unavailable, "The player is not running at the moment; nothing was changed. `lockstep ps` shows why.")
        }
    }

    // MARK: - Asking the player

    /// Resumes what is loaded, unless it plays.
    private mutating func resume(
        _ player: WirePlaybackState, in name: String, _ command: Command
    ) -> OwnerEffect<Never> {
        guard player.status == .playing else {
            return ask(.setPaused(WireSetPaused()), "resume", command)
        }
        var reply = reply(named(name))
        reply.player = player
        return answer(command, reply, about: named(name))
    }

    /// Hands a command on to the player; a repeat of it has the same request ID there, too.
    private mutating func ask(
        _ request: WirePlaybackRequest.OneOf_Command, _ kind: String, _ command: Command,
        decidedAgain original: WireQueueRequest? = nil
    ) -> OwnerEffect<Never> {
        let call = CallID("\(kind)/\(command.id)")
        commandsOfPlayer[call] = PlayerCommand(command: command, request: original, load: player?.loadID ?? "")
        let message = WirePlaybackRequest.with { $0.command = request }
        return .call(
            Call(
                id: call, to: .playback, payload: message.wireBytes, request: command.id.derived(kind),
                limit: .seconds(8)))
    }

    mutating func playerAnswered(
        _ result: Result<[UInt8], Failure>, _ asked: PlayerCommand, now: Moment
    ) -> [OwnerEffect<Never>] {
        let named = named(playingQueue)
        switch result {
        case .success(let bytes):
            var reply = reply(named)
            if let answer = try? WirePlaybackReply(wireBytes: bytes) {
                reply.changed = answer.changed
                if case .state(let state) = answer.result { reply.player = state }
            }
            return [answer(asked.command, reply, about: named)]
        case .failure(let failure) where failure.known == .nothingLoaded && asked.request != nil:
            return decideAgain(asked, now: now)
        case .failure(let failure):
            return [.reply(asked.command.id, .failure(failure))]
        }
    }

    // MARK: - Deciding again

    /// The wait for the state of a player that has nothing loaded any more.
    static let stateDeadline = TimerName("state")
    private static let stateTimeout = Duration.seconds(2)

    /// Decides a command again for which the player had nothing loaded. While the queue still sees the load, it waits: what it
    /// would decide by is over.
    private mutating func decideAgain(_ asked: PlayerCommand, now: Moment) -> [OwnerEffect<Never>] {
        guard let request = asked.request else { return [] }
        guard playerIsReady, let player, player.isLoaded, player.loadID == asked.load else {
            return carryOut(request, of: asked.command, now: now)
        }
        commandsAwaitingState.append(asked)
        return [.timer(Self.stateDeadline, at: now.monotonic.advanced(by: Self.stateTimeout))]
    }

    /// The player has another state, or is gone.
    mutating func decideCommandsAgain(now: Moment) -> [OwnerEffect<Never>] {
        let commands = commandsAwaitingState
        commandsAwaitingState = []
        return commands.flatMap { decideAgain($0, now: now) }
    }

    mutating func refuseCommandsAwaitingState() -> [OwnerEffect<Never>] {
        let commands = commandsAwaitingState
        commandsAwaitingState = []
        let failure = Failure(.nothingLoaded, "The episode has just ended; nothing was changed. Try again.")
        return commands.map { .reply($0.command.id, .failure(failure)) }
    }
}
