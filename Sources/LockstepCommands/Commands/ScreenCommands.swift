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
            + " With --plain, it prints changes like `mini --plain`. " + PlayerHelp.plain + " " + LibraryPages.wordHelp
    )
    @Flag(name: .customLong("no-mouse"), help: "Leave the mouse to the terminal.") var isMouseOff = false
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let hasMouse = !isMouseOff
        try await context.runPlayer(origin: "expanded", presentation: .fullScreen, hasPages: true) {
            () throws(Failure) in
            try FullScreenTerminal(hasMouse: hasMouse)
        }
    }
}

extension CommandContext {
    /// Runs a player on the terminal, or as plain text if there is none.
    fileprivate func runPlayer(
        origin: String, presentation: PlayerMachine.Presentation, hasPages: Bool = false,
        on terminal: @escaping @Sendable () throws(Failure) -> any PlayerTerminal
    ) async throws {
        guard !plain, !output.json, isatty(STDIN_FILENO) == 1, isatty(STDOUT_FILENO) == 1 else {
            return try await withFleet(origin: origin, observing: hasPages ? .pages : .screen) { fleet in
                try await output.whileRead { try await narrate(fleet, hasPages: hasPages) }
            }
        }
        try FleetPresence.require(home)
        let signals = TerminalSignals()
        defer { signals.close() }
        let status = try await withFleet(origin: origin, observing: hasPages ? .pages : .screen) { fleet in
            let inbox = PlayerInbox()
            let following = Task { await inbox.follow(fleet) }
            defer { following.cancel() }
            return try await MainActor.run { () throws -> Int32 in
                let machine = PlayerMachine(
                    settings: settings, presentation: presentation, hasPages: hasPages, advice: output.advice)
                let events = TerminalEvents(signals: signals, inbox: inbox)
                let loop = PlayerLoop(machine, on: try terminal(), events: events) { task in
                    // The main thread runs the screen until it closes.
                    Task.detached {
                        if case .library(let task) = task {
                            return inbox.post(.library(task, await fleet.perform(task)))
                        }
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
    private func narrate(_ fleet: Fleet, hasPages: Bool) async throws {
        let keys = NIOLockedValueBox(
            PlayerMachine(
                settings: settings, presentation: .plainText, hasPages: hasPages && !output.json, advice: output.advice)
        )
        let isTyped = !output.json && TypedLines.isPossible
        let output = output
        let printer = PlainPlayer(output, keys: isTyped ? keys : nil) { try output.line($0) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
            let (digits, freeing) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            let (events, posting) = AsyncStream.makeStream(of: PlainEvent.self)
            group.addTask {
                for await update in fleet.updates() {
                    if try await printer.handle(update) { beginning.finish() }
                    if await printer.nextDigit != nil { freeing.yield() }
                    if keys.withLockedValue({ $0.nextLoadTime }) != nil { posting.yield(.changed) }
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
                    let reading = Task {
                        for await line in TypedLines.stream() { posting.yield(.line(line)) }
                        posting.finish()
                    }
                    defer { reading.cancel() }
                    let hasAsked = try await listen(fleet, keys, events, posting)
                    // A program’s last command has an outcome to print.
                    let isAwaited = hasAsked && !TypedLines.isTerminal
                    try await printer.finish(isAwaited ? await fleet.withoutPendingLoad() : fleet.state)
                }
            }
            defer { group.cancelAll() }
            try await group.next()
        }
    }

    /// Handles typed lines until `q` or the end of the input, and reads the rows of the open page.
    ///
    /// - Returns: whether a line sent a request to a service.
    private func listen(
        _ fleet: Fleet, _ keys: NIOLockedValueBox<PlayerMachine>, _ events: AsyncStream<PlainEvent>,
        _ posting: AsyncStream<PlainEvent>.Continuation
    ) async throws -> Bool {
        var hasAsked = false
        for await event in events {
            let now = SystemClocks.now()
            if case .line(let line) = event, let typed = TypedKey(line) {
                let outcome = keys.withLockedValue { $0.type(line, typed, now: now) }
                if case .quit = outcome { return hasAsked }
                if case .ask(let task) = outcome {
                    // Reading rows isn’t a command with an outcome.
                    hasAsked = hasAsked || !task.isReading
                    await perform(task, fleet, keys)
                }
                if let notice = keys.withLockedValue({ $0.takeNotice() }) { try output.line(notice) }
            }
            while let load = keys.withLockedValue({ $0.nextLoad(now: SystemClocks.now()) }) {
                await perform(load, fleet, keys)
            }
            for line in keys.withLockedValue({ $0.takePageLines() }) { try output.line(line) }
            guard let due = keys.withLockedValue({ $0.nextLoadTime }) else { continue }
            Task {
                try await Task.sleep(for: max(.zero, due.since(SystemClocks.now().monotonic)))
                posting.yield(.changed)
            }
        }
        return hasAsked
    }

    /// Performs a task and those that follow it.
    private func perform(_ first: PlayerTask, _ fleet: Fleet, _ keys: NIOLockedValueBox<PlayerMachine>) async {
        var outcome = PlayerMachine.Outcome.ask(first)
        while case .ask(let task) = outcome {
            if case .library(let task) = task {
                let result = await fleet.perform(task)
                outcome = keys.withLockedValue { $0.finished(task, result, now: SystemClocks.now()) }
            } else {
                let end = await fleet.perform(task)
                outcome = keys.withLockedValue {
                    $0.finished(task, end.failure, effect: end.effect, now: SystemClocks.now())
                }
            }
        }
    }
}

/// An event for a player without a screen.
private enum PlainEvent: Sendable {
    case line(String)
    /// Rows of the open page may have changed.
    case changed
}

extension PlayerTask {
    fileprivate var isReading: Bool {
        switch self {
        case .library(.load), .library(.notes): true
        default: false
        }
    }
}

extension Observation {
    /// The state that players show: no podcasts, downloads or bookmarks, which may be thousands.
    fileprivate static let screen = Observation.parts([.player, .next, .queues, .settings, .alerts])

    /// The state that players with the library’s pages show: also the playlists and podcasts, and the changes of episodes.
    fileprivate static let pages = Observation.parts(
        [.player, .next, .queues, .settings, .alerts, .playlists, .podcasts, .episodes])
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
            case .library: break
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
