import ArgumentParser
import LockstepClient
import PodcastModel

struct Seek: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "seek",
        abstract: "Seek to a position in the loaded episode.",
        discussion:
            "12:34, 90 (seconds) and 1h30m are positions, 50% is a part of the length, +30, -15 and +2m count from the current "
            + "position. + and % stop a second before the end; seeking to the very end marks the episode as played."
    )
    @Argument(help: "12:34, 90, 1h30m, 50%, +30 or -15.") var position: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let target = try SeekExpression.read(position).seekTarget
        try await context.withFleet(observing: .player) { try await $0.seek(target, reporting: context.output) }
    }
}

struct Skip: LockstepCommand {
    enum Direction: String, ExpressibleByArgument, CaseIterable {
        case forward, back
    }

    static let configuration = CommandConfiguration(
        commandName: "skip",
        abstract: "Skip forward or back by the distance in the settings (30 and 10 seconds).",
        discussion:
            "The distance is --seconds, or else skipForward or skipBack of `lockstep set` for the podcast or for all, "
            + "or else skip.forward or skip.back of config.yaml.")
    @Argument(help: "forward or back.") var direction: Direction
    @Option(parsing: .unconditional, help: "The distance in seconds.") var seconds: Double?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        if let seconds, !(seconds.isFinite && seconds > 0) {
            throw Failure(.invalidArgument, "--seconds must be a number above 0.")
        }
        let target: PlayerClient.SeekTarget =
            switch (direction, seconds) {
            case (.forward, let seconds?): .by(seconds)
            case (.back, let seconds?): .by(-seconds)
            case (.forward, nil): .skipForward(unlessSet: context.settings.skipForward)
            case (.back, nil): .skipBack(unlessSet: context.settings.skipBack)
            }
        try await context.withFleet(observing: .player) { try await $0.seek(target, reporting: context.output) }
    }
}

struct ChapterCommand: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "chapter", abstract: "List the chapters of the loaded episode, or seek to one.",
        discussion: "`previous` returns to the start of the chapter, or from its first seconds to the previous chapter."
    )
    @Argument(
        help: "next, previous or a chapter’s number; without it, they are listed.",
        completion: .list(["next", "previous", "list"]))
    var target: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        guard let text = target, text != "list" else {
            return try await context.withFleet(observing: .player) { fleet in
                let player = try await fleet.playerWithChapters()
                try context.output.value(player.chaptersJSON(), lines: Self.lines(player))
            }
        }
        let target = try Self.target(text)
        try await context.withFleet(observing: .player) { fleet in
            let answer: Answer<PlayerClient.SeekOutcome>
            do throws(Failure) { answer = try await fleet.player.seek(target) } catch {
                // The chapters may be known shortly.
                guard error.known == .notFound, try await fleet.current([.player]).player.chapters.isEmpty,
                    try await !fleet.playerWithChapters().chapters.isEmpty
                else { throw error }
                answer = try await fleet.player.seek(target)
            }
            try context.output.report(answer, at: answer.value.player) { Self.sentence(answer.value.player) }
        }
    }

    /// - Throws: `invalidArgument` for a text that isn’t a chapter.
    static func target(_ text: String) throws(Failure) -> PlayerClient.SeekTarget {
        switch text {
        case "next": return .nextChapter
        case "previous", "prev": return .previousChapter
        default:
            guard text.utf8.count <= 6, let number = UInt32(text) else {
                throw Failure(.invalidArgument, "“\(text)” isn’t a chapter. Give next, previous or a number.")
            }
            return .chapter(Int(number))
        }
    }

    /// `Chapter 2 of 5, at 8:00 of 10:00: A title.`
    private static func sentence(_ player: PlayerState) -> String {
        var snapshot = player.snapshot
        guard let index = player.chapter() else { return Sentence.beginning(snapshot) + "." }
        let chapter = player.chapters[index]
        // The position is rounded like the chapter’s start in the list.
        if abs(snapshot.position - chapter.start) < 0.5 { snapshot.position = chapter.start.rounded() }
        let name = chapter.title.isEmpty ? "" : ": \(chapter.title)"
        return Sentence.stopped("Chapter \(index + 1) of \(player.chapters.count), at \(snapshot.shownPosition)\(name)")
    }

    static func lines(_ player: PlayerState) -> [String] {
        guard !player.chapters.isEmpty else { return ["This episode has no chapters."] }
        let current = player.chapter()
        let rows = player.chapters.enumerated().map { index, chapter in
            [
                "\(index + 1)", index == current ? "*" : "", TimeText.mark(chapter.start),
                // The length is the difference of the shown starts.
                TimeText.mark(chapter.end.map { $0.rounded() - chapter.start.rounded() }), chapter.title,
            ]
        }
        return TextTable([.right(""), "", .right("start"), .right("length"), .flexible("chapter")], rows).printed()
    }
}

extension Fleet {
    /// Seeks, and reports the position when playback is audible.
    fileprivate func seek(_ target: PlayerClient.SeekTarget, reporting output: Output) async throws {
        let answer = try await player.seek(target)
        try output.report(answer, at: answer.changed ? await audible(answer.value.player) : answer.value.player)
    }

    /// The player with the chapters of its episode, after the file was opened and the feed’s chapters were
    /// fetched. Waits a few seconds at most.
    ///
    /// - Throws: `nothingLoaded` if no episode is loaded.
    fileprivate func playerWithChapters() async throws(Failure) -> PlayerState {
        var player = try await current([.player]).player
        if case .loading = player.status, player.chapters.isEmpty {
            player = await first(within: .seconds(5)) { state in
                if case .loading = state.player.status { return !state.player.chapters.isEmpty }
                return true
            }.state.player
        }
        guard let episode = player.episode else {
            throw Failure(.nothingLoaded, "Nothing is loaded. Start something with `lockstep play EPISODE`.")
        }
        guard player.chapters.isEmpty else { return player }
        // The player receives chapters that are fetched from the feed’s chapters file now.
        guard let known = try? await library.episode(episode.id, readsChapters: true), known.hasChaptersOfFeed else {
            return player
        }
        let load = player.loadID
        return await first(within: .seconds(2)) { $0.player.loadID != load || !$0.player.chapters.isEmpty }.state.player
    }
}

extension Output {
    /// Prints the position after a seek, with `sentence` or the playback state.
    fileprivate func report(
        _ answer: Answer<PlayerClient.SeekOutcome>, at player: PlayerState, _ sentence: (() -> String)? = nil
    ) throws {
        if let ended = answer.value.ended {
            try change(
                player.json(), "Reached the end of \(DisplayText.quoted(ended.title)), which is now marked as played.")
        } else if answer.changed, let sentence {
            try change(player.json(), sentence())
        } else {
            try report(player, changed: answer.changed)
        }
    }
}
