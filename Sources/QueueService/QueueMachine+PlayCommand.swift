import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

// Executes the commands that start, pause and change playback.

extension QueueMachine {
    mutating func play(
        _ play: WirePlay, in name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        try requirePlayer()
        let queue = queues.named(name).queue
        let position = try play.startPosition()
        switch play.what {
        case .episode(let episode):
            if let entry = queue.entry(episode: episode) {
                return try self.play(entry.id, at: position, in: name, context, &effects)
            }
            let entry = try WireQueueEntry.adding(episode, 0, context, verb: "Played")
            try queues.named(name).checkRoom(for: 1)
            let interrupted = queue.current ?? queue.fallbackCurrent?.id
            let after = interrupted.flatMap { queue.entry(before: $0)?.id } ?? ""
            load(
                entry, in: name, [.inserting(entry, after: after), .settingCurrent(entry.id)],
                "Played “\(entry.episode.title)”", at: position, context, &effects)
        case .entry(let id):
            try self.play(id, at: position, in: name, context, &effects)
        case nil where !play.unknownFields.data.isEmpty:
            throw Self.unknownCommand
        case .resume, nil:
            // A queue that isn’t playing is started.
            guard name == playingQueue else { return try start(name, context, &effects) }
            if let upcoming = upcomingLoad {
                return try self.play(upcoming.entry.id, in: upcoming.queue, context, &effects)
            }
            if let player, player.isLoaded { return resume(player, in: name, context, &effects) }
            try start(name, context, &effects)
        }
    }

    /// Pauses the playing or upcoming episode, resumes a paused one, or starts the queue if none is loaded. For a
    /// loaded episode the player decides.
    mutating func toggle(
        _ named: NamedQueue, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        try requirePlayer()
        if let upcoming = upcomingLoad {
            let (pending, title) = (upcoming.pending, upcoming.entry.episode.title)
            load(
                upcoming.entry, in: upcoming.queue, [], "\(pending.paused ? "Played" : "Paused") “\(title)”",
                at: pending.hasPosition ? PlaybackPosition(seconds: pending.position) : nil,
                paused: !pending.paused, context, &effects)
            pauseBeforeUpcoming(&effects)
        } else if player?.isLoaded == true {
            forward(.togglePaused(WireTogglePaused()), "toggle", context, &effects)
        } else {
            try start(named.name, context, &effects)
        }
    }

    /// Pauses the playing episode if the upcoming load is paused, because the load may have to wait for the database.
    mutating func pauseBeforeUpcoming(_ effects: inout [Effect]) {
        guard let player, player.plays, upcomingLoad?.pending.paused == true else { return }
        send(.playback, WirePlaybackRequest.with { $0.setPaused.paused = true }.wireBytes, &effects)
    }

    private mutating func start(
        _ name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        let named = queues.named(name)
        guard let entry = named.entryToStart(after: player) else { throw named.empty(else: main) }
        try play(entry, in: name, context, &effects)
    }

    private mutating func play(
        _ id: String, at position: PlaybackPosition? = nil, in name: String, _ context: CommandContext,
        _ effects: inout [Effect]
    ) throws(Failure) {
        guard let entry = queues[name]?.queue.entry(id) else {
            throw Failure(
                .notFound, "That entry is no longer in \(QueueName.shown(name)); nothing was changed.")
        }
        // A request with a position loads the entry again, even if it is loaded.
        if position == nil, resumeIfLoaded(id, in: name, context, &effects) { return }
        try entry.wire.episode.requireAudio()
        load(
            entry.wire, in: name, [.settingCurrent(id)], "Played “\(entry.wire.episode.title)”", at: position, context,
            &effects)
    }

    /// Resumes an entry that is loaded or upcoming; returns false for any other.
    private mutating func resumeIfLoaded(
        _ id: String, in name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) -> Bool {
        if let upcoming = upcomingLoad {
            // The player’s state is about to be replaced, so it doesn’t matter for this command.
            guard upcoming.entry.id == id, !upcoming.pending.paused else { return false }
            let answer = WireQueueReply.with { $0.loadID = upcoming.pending.loadID }
            reply(context.answer(answer, about: name), &effects)
            return true
        }
        guard let player, player.queueEntry == id, player.isLoaded else { return false }
        resume(player, in: name, context, &effects)
        return true
    }

    mutating func step(
        from: String, in named: NamedQueue, forward: Bool, _ context: CommandContext, _ effects: inout [Effect]
    ) throws(Failure) {
        try requirePlayer()
        guard from.isEmpty || from == named.queue.current ?? "" else {
            throw Failure(
                .revisionMismatch,
                "Another entry has become current in the meantime. Check the queue and try again.")
        }
        guard !named.queue.entries.isEmpty else { throw named.empty(else: main) }
        guard let entry = named.neighbour(forward: forward) else {
            throw Failure(
                .atEdge,
                forward
                    ? "This is the last entry of \(QueueName.shown(named.name)); nothing follows it."
                    : "This is the first entry of \(QueueName.shown(named.name)); nothing comes before it.")
        }
        let willPlay = upcomingLoad.map { !$0.pending.paused } ?? player?.nextWillPlay ?? false
        load(
            entry.wire, in: named.name, [.settingCurrent(entry.id)],
            "\(forward ? "Skipped to" : "Returned to") “\(entry.wire.episode.title)”", paused: !willPlay, context,
            &effects)
    }

    func requirePlayer() throws(Failure) {
        guard playerIsReady else {
            throw Failure(
                .unavailable, "The player isn’t running at the moment; nothing was changed. `lockstep ps` shows why.")
        }
    }

    // MARK: - Requests to the player

    /// Resumes the loaded episode, unless it plays.
    private mutating func resume(
        _ player: WirePlaybackState, in name: String, _ context: CommandContext, _ effects: inout [Effect]
    ) {
        guard player.status == .playing else {
            return forward(.setPaused(WireSetPaused()), "resume", context, &effects)
        }
        reply(context.answer(.with { $0.player = player }, about: name), &effects)
    }

    /// Forwards a command to the player. A repeat of the command is forwarded with the same request ID.
    private mutating func forward(
        _ request: WirePlaybackRequest.OneOf_Command, _ step: String, _ context: CommandContext,
        _ effects: inout [Effect]
    ) {
        forward(
            PlayerCommand(
                command: context.command, request: context.request, load: player?.loadID ?? "", forwarded: request,
                step: step), &effects)
    }

    func forward(_ command: PlayerCommand, _ effects: inout [Effect]) {
        effects.append(
            .call(
                Call(
                    .player(command), to: .playback,
                    payload: WirePlaybackRequest.with { $0.command = command.forwarded }.wireBytes,
                    request: command.command.id.derived(command.step), limit: .seconds(8),
                    mayBeRepeat: command.command.mayBeRepeat)))
    }

    mutating func playerAnswered(
        _ result: Result<[UInt8], Failure>, _ forwarded: PlayerCommand, now: Moment, _ effects: inout [Effect]
    ) {
        switch result {
        case .success(let bytes):
            var reply = forwarded.reply
            if let answer = try? WirePlaybackReply(wireBytes: bytes) {
                reply.changed = reply.changed || answer.changed
                if case .state(let state) = answer.result { reply.player = state }
            }
            self.reply(Answer(command: forwarded.command, list: .queue(playingQueue), reply: reply), &effects)
        case .failure(let failure) where failure.known == .nothingLoaded:
            decideAgain(forwarded, now: now, &effects)
        case .failure(let failure):
            effects.append(.reply(forwarded.command.id, .failure(failure)))
        }
    }

    // MARK: - Repeated decisions

    private static let stateTimeout = Duration.seconds(2)

    /// Executes a command again that the player refused because nothing was loaded. If the last known state of the
    /// player still contains the load, that state is outdated, and the command waits for a newer one.
    private mutating func decideAgain(_ forwarded: PlayerCommand, now: Moment, _ effects: inout [Effect]) {
        guard playerIsReady, let player, player.isLoaded, player.loadID == forwarded.load else {
            return run(forwarded.request, of: forwarded.command, now: now, &effects)
        }
        commandsAwaitingState.append(forwarded)
        effects.append(.timer(.playerState, at: now.monotonic.advanced(by: Self.stateTimeout)))
    }

    /// Executes the waiting commands again, with a new state of the player or after the player has stopped.
    mutating func decideCommandsAgain(now: Moment, _ effects: inout [Effect]) {
        let commands = commandsAwaitingState
        commandsAwaitingState = []
        for command in commands { decideAgain(command, now: now, &effects) }
    }

    mutating func refuseCommandsAwaitingState(_ effects: inout [Effect]) {
        let failure = Failure(.nothingLoaded, "The episode has just ended; nothing was changed. Try again.")
        effects += commandsAwaitingState.map { .reply($0.command.id, .failure(failure)) }
        commandsAwaitingState = []
    }
}
