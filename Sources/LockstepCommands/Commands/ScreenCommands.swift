import ArgumentParser
import BusKit
import LibC
import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel
import WireMessages

struct Mini: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "mini",
        abstract: "A player on one line.",
        discussion: PlayerHelp.sentence(hasList: false) + " " + PlayerHelp.plain
    )
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.runPlayer(origin: "mini", form: .line) { () throws(Failure) in SingleLine() }
    }
}

struct Expanded: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "expanded",
        abstract: "A player on the whole screen.",
        discussion: PlayerHelp.sentence(hasList: true)
            + " With --plain it says changes as `mini --plain` does. " + PlayerHelp.plain
    )
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.runPlayer(origin: "expanded", form: .screen) { () throws(Failure) in try FullScreen() }
    }
}

extension CommandContext {
    /// Runs a player on the terminal, or as lines of words where there is none.
    fileprivate func runPlayer(
        origin: String, form: PlayerMachine.Form,
        on terminal: @escaping @Sendable () throws(Failure) -> any PlayerTerminal
    ) async throws {
        guard !plain, !output.json, isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            return try await withSession(origin: origin) { session in
                try await output.whileRead { try await narrate(session) }
            }
        }
        try FleetPresence.require(home)
        let signals = TerminalSignals()
        defer { signals.close() }
        let status = try await withSession(origin: origin) { session in
            let inbox = PlayerInbox()
            let following = Task { await inbox.follow(session.fleet.client) }
            defer { following.cancel() }
            return try await MainActor.run { () throws -> Int32 in
                let machine = PlayerMachine(
                    settings: settings, bootID: SystemClocks.bootID, form: form, advice: output.advice)
                let events = TerminalEvents(signals: signals, inbox: inbox)
                let loop = PlayerLoop(machine, on: try terminal(), events: events) { task in
                    // The main thread belongs to the screen until it is left.
                    Task.detached {
                        let end = await session.perform(task)
                        inbox.post(.finished(task, end.failure, said: end.said))
                    }
                }
                return try loop.run()
            }
        }
        if status != 0 { throw ExitCode(status) }
    }

    /// The player in words, a line for each change. Where somebody can type, each line is a key.
    private func narrate(_ session: Session) async throws {
        let keys = NIOLockedValueBox(
            PlayerMachine(settings: settings, bootID: SystemClocks.bootID, form: .words, advice: output.advice))
        let isTyped = !output.json && TypedLines.isPossible
        let output = output
        let teller = PlainTeller(output, keys: isTyped ? keys : nil) { try output.line($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
            let (digits, freeing) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            group.addTask {
                for await update in session.fleet.client.updates() {
                    if try await teller.apply(update) { beginning.finish() }
                    if await teller.nextDigit != nil { freeing.yield() }
                }
            }
            group.addTask {
                // A digit becomes free also when nothing else happens.
                for await _ in digits {
                    while let wait = await teller.nextDigit {
                        try await Task.sleep(for: wait)
                        try await teller.giveDigits()
                    }
                }
            }
            if isTyped {
                group.addTask {
                    // What a key does depends on what plays; who types one sees whether that is known yet.
                    if !TypedLines.isTerminal { for await _ in begun {} }
                    try await listen(session, keys)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Does what is typed, until it is `q` or the input ends.
    private func listen(_ session: Session, _ keys: NIOLockedValueBox<PlayerMachine>) async throws {
        for await line in TypedLines.stream() {
            guard let typed = TypedKey(line) else { continue }
            let begun = SystemClocks.now()
            var outcome = keys.withLockedValue { keys -> PlayerMachine.Outcome in
                switch typed {
                case .key(let key): return keys.press(key, now: begun)
                case .other(let text):
                    keys.refuse(text, now: begun)
                    return .none
                }
            }
            while case .ask(let task) = outcome {
                let end = await session.perform(task)
                outcome = keys.withLockedValue {
                    $0.finished(task, end.failure, said: end.said, now: SystemClocks.now())
                }
            }
            if case .quit = outcome { return }
            if let notice = keys.withLockedValue({ $0.takeNotice() }) { try output.line(notice) }
        }
    }
}

extension Session {
    /// Does what a key asked for.
    ///
    /// - Returns: why it failed, or what there is to say of it; nil where the stream shows it.
    func perform(_ task: PlayerTask) async -> (failure: Failure?, said: String?) {
        var said: String?
        do throws(Failure) {
            switch task {
            case .seek(let load, let position):
                _ = try await playback {
                    $0.seek.loadID = load
                    $0.seek.position = position
                }
            case .speed(let factor): _ = try await playback { $0.setSpeed.speed = factor }
            case .volume(let percent): _ = try await playback { $0.setVolume.volume = percent }
            case .command(let intent): said = try await perform(intent)
            }
            return (nil, said)
        } catch {
            return (error, nil)
        }
    }

    private func perform(_ intent: PlayerIntent) async throws(Failure) -> String? {
        switch intent {
        case .setPaused(let paused): _ = try await playback { $0.setPaused.paused = paused }
        case .start(let name): _ = try await queue(named: name) { $0.play.resume = true }
        case .next(let from, let name): _ = try await queue(named: name) { $0.next.from = from }
        case .previous(let from, let name): _ = try await queue(named: name) { $0.previous.from = from }
        case .play(let entry, let name): _ = try await queue(named: name) { $0.play.entry = entry }
        case .remove(let entry, let name): _ = try await queue(named: name) { $0.remove.entries = [entry] }
        case .undo(let name):
            let reply = try await queue(named: name) { $0.undo.fromRevision = 0 }
            let place = name.isEmpty || name == FleetView.usualQueue ? "" : " in \(WireQueueState.shownName(name))"
            guard reply.changed else { return "There is nothing to undo\(place)." }
            return "Undone\(place): \(Sentence.stopped(reply.description_p))"
        case .sleep(let request): _ = try await playback { $0.setSleep = request }
        case .bookmark(let episode, let position):
            _ = try await playback {
                $0.setBookmark.episode = episode
                $0.setBookmark.position = position
            }
        case .answer(let alert, let owner, let action):
            let end = await endOfSkipping(alert: owner, action: action)
            _ = try await fleet.alerts.answer(alert: alert, owner: owner, action: action)
            return end
        case .quit, .select, .selectChapter, .switchList, .describe, .listKeys, .say, .seek, .chapter, .speed, .volume:
            break
        }
        return nil
    }
}
