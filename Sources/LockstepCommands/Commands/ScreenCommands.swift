import ArgumentParser
import FleetHome
import LibC
import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel

// A player screen requires a `PlayerTerminal` that draws it, a `PlayerMachine.Presentation` that decides its keys, and
// here a command that passes both to `runPlayer` and is listed in the group “Screens” of `Lockstep`. Its parts of the
// state must be in `Observation.screen`. Other screens are written like `DownloadsBoard` and `DownloadsLoop`.

struct Mini: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "mini",
        abstract: "Show and control the player on one line.",
        discussion: PlayerHelp.sentence(hasList: false) + " " + PlayerHelp.plain
    )
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.runPlayer(origin: "mini", presentation: .singleLine) { () throws(Failure) in
            SingleLineTerminal()
        }
    }
}

struct Expanded: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "expanded",
        abstract: "Show and control the player in full screen.",
        discussion: PlayerHelp.sentence(hasList: true)
            + " With --plain, it prints changes like `mini --plain`. " + PlayerHelp.plain
    )
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.runPlayer(origin: "expanded", presentation: .fullScreen) { () throws(Failure) in
            try FullScreenTerminal()
        }
    }
}

extension CommandContext {
    /// Runs a player on the terminal, or as plain text if there is none.
    fileprivate func runPlayer(
        origin: String, presentation: PlayerMachine.Presentation,
        on terminal: @escaping @Sendable () throws(Failure) -> any PlayerTerminal
    ) async throws {
        guard !plain, !output.json, isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            return try await withFleet(origin: origin, observing: .screen) { fleet in
                try await output.whileRead { try await narrate(fleet) }
            }
        }
        try FleetPresence.require(home)
        let signals = TerminalSignals()
        defer { signals.close() }
        let status = try await withFleet(origin: origin, observing: .screen) { fleet in
            let inbox = PlayerInbox()
            let following = Task { await inbox.follow(fleet) }
            defer { following.cancel() }
            return try await MainActor.run { () throws -> Int32 in
                let machine = PlayerMachine(
                    settings: settings, presentation: presentation, advice: output.advice)
                let events = TerminalEvents(signals: signals, inbox: inbox)
                let loop = PlayerLoop(machine, on: try terminal(), events: events) { task in
                    // The main thread runs the screen until it closes.
                    Task.detached {
                        let end = await fleet.perform(task)
                        inbox.post(.finished(task, end.failure, effect: end.effect))
                    }
                }
                return try loop.run()
            }
        }
        if status != 0 { throw ExitCode(status) }
    }

    /// Prints the player’s changes as plain text. Each line of the input is a key.
    private func narrate(_ fleet: Fleet) async throws {
        let keys = NIOLockedValueBox(
            PlayerMachine(settings: settings, presentation: .plainText, advice: output.advice))
        let isTyped = !output.json && TypedLines.isPossible
        let output = output
        let printer = PlainPlayer(output, keys: isTyped ? keys : nil) { try output.line($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
            let (digits, freeing) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            group.addTask {
                for await update in fleet.updates() {
                    if try await printer.handle(update) { beginning.finish() }
                    if await printer.nextDigit != nil { freeing.yield() }
                }
            }
            group.addTask {
                // A digit is also released when no event occurs.
                for await _ in digits {
                    while let wait = await printer.nextDigit {
                        try await Task.sleep(for: wait)
                        try await printer.assignDigits()
                    }
                }
            }
            if isTyped {
                group.addTask {
                    // A program’s keys wait for the state, on which their effect depends; users see it on the screen.
                    if !TypedLines.isTerminal { for await _ in begun {} }
                    let hasAsked = try await listen(fleet, keys)
                    // A program’s last command has an outcome to print.
                    let isAwaited = hasAsked && !TypedLines.isTerminal
                    try await printer.finish(isAwaited ? await fleet.withoutPendingLoad() : fleet.state)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Handles typed lines until `q` or the end of the input.
    ///
    /// - Returns: whether a line sent a request to a service.
    private func listen(_ fleet: Fleet, _ keys: NIOLockedValueBox<PlayerMachine>) async throws -> Bool {
        var hasAsked = false
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
                hasAsked = true
                let end = await fleet.perform(task)
                outcome = keys.withLockedValue {
                    $0.finished(task, end.failure, effect: end.effect, now: SystemClocks.now())
                }
            }
            if case .quit = outcome { return hasAsked }
            if let notice = keys.withLockedValue({ $0.takeNotice() }) { try output.line(notice) }
        }
        return hasAsked
    }
}

extension Observation {
    /// The state that players show: no podcasts, downloads or bookmarks, which may be thousands.
    fileprivate static let screen = Observation.parts([.player, .next, .queues, .settings, .alerts])
}

extension Fleet {
    /// - Returns: the failure, or a sentence for an effect that the state doesn’t show.
    func perform(_ task: PlayerTask) async -> (failure: Failure?, effect: String?) {
        var effect: String?
        do throws(Failure) {
            switch task {
            case .seek(let load, let position): _ = try await player.seek(.to(position), of: load)
            case .speed(let factor): _ = try await player.setSpeed(.to(factor))
            case .volume(let percent): _ = try await player.setVolume(.to(percent))
            case .command(let intent): effect = try await perform(intent)
            }
            return (nil, effect)
        } catch {
            return (error, nil)
        }
    }

    private func perform(_ intent: PlayerIntent) async throws(Failure) -> String? {
        switch intent {
        case .toggle(let name): _ = try await queue.toggle(name)
        case .next(let entry, let name): _ = try await queue.next(from: entry, in: name)
        case .previous(let entry, let name): _ = try await queue.previous(from: entry, in: name)
        case .play(let entry, let name): _ = try await queue.play(.entry(entry), in: name)
        case .remove(let entry, let name): _ = try await queue.remove([entry], from: name)
        case .undo(let name):
            let answer = try await queue.undo(in: name)
            let suffix = name == QueueName.default ? "" : " in \(QueueName.shown(name))"
            guard answer.changed else { return "There is nothing to undo\(suffix)." }
            return "Undone\(suffix): \(Sentence.stopped(answer.summary))"
        case .sleep(let timer): _ = try await player.setSleepTimer(timer)
        case .bookmark(let episode, let position): _ = try await player.addBookmark(to: episode, at: position)
        case .answer(let alert, let owner, let action):
            let end = await endOfSkipping(of: owner, action: action)
            try await alerts.answer(alert, of: owner, action)
            return end
        case .quit, .select, .selectChapter, .switchList, .describe, .listKeys, .say, .seek, .chapter, .speed, .volume:
            break
        }
        return nil
    }
}
