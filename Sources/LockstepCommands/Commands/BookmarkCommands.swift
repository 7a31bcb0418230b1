import ArgumentParser
import LockstepClient
import PodcastModel

struct BookmarkCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bookmark", abstract: "Show, add, change and play bookmarks.",
        subcommands: [
            BookmarkList.self, BookmarkAdd.self, BookmarkNote.self, BookmarkRemove.self, BookmarkPlay.self,
        ],
        defaultSubcommand: BookmarkList.self, aliases: ["bookmarks"])
}

struct BookmarkList: FleetCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show bookmarks.")
    @Argument(help: "Show only this episode’s bookmarks.", completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions
    var observation: Observation { .parts([.bookmarks]) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        let state = try await fleet.current([.bookmarks])
        var bookmarks = state.bookmarks
        if let episode { bookmarks = state.bookmarks(of: try await fleet.library.findEpisode(typed: episode).id) }
        try output.value(.array(bookmarks.map(\.json)), lines: Self.lines(bookmarks))
    }

    static func lines(_ bookmarks: [Bookmark]) -> [String] {
        guard !bookmarks.isEmpty else { return ["No bookmarks. Set one with `lockstep bookmark add`."] }
        let rows = bookmarks.map { [$0.title, ClockText.format($0.position), $0.note, $0.id.text] }
        return TextTable([.flexible("episode"), .right("at"), .flexible("note"), .id("id")], rows).printed()
    }
}

struct BookmarkAdd: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add a bookmark, by default at the current position.")
    @Option(help: "The position: 12:34, 90, 1h30m, 50%, +30 or -15.") var at: String?
    @Option(parsing: .unconditional, help: "A note about the position.") var note: String?
    @Option(help: "An episode other than the loaded one.", completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let expression = try at.map { text throws(Failure) in try SeekExpression.read(text) }
        try await context.withFleet(observing: expression?.isRelative == true ? .player : .nothing) { fleet in
            var named: Episode?
            if let episode { named = try await fleet.library.findEpisode(typed: episode) }
            let bookmark: Bookmark
            do throws(Failure) {
                bookmark = try await fleet.player.addBookmark(
                    to: named?.id, at: try await Self.position(expression, in: named, fleet), note: note ?? ""
                ).value
            } catch {
                guard error.known == .nothingLoaded else { throw error }
                throw Failure(
                    .nothingLoaded, "Nothing is loaded. Name the episode: `lockstep bookmark add --episode EPISODE`.")
            }
            try context.output.change(bookmark.json, "Bookmarked \(bookmark.words).")
        }
    }

    /// The position that a text specifies in an episode, or in the loaded one; nil for its current position.
    private static func position(
        _ expression: SeekExpression?, in episode: Episode?, _ fleet: Fleet
    ) async throws(Failure) -> Double? {
        guard let expression else { return nil }
        guard expression.isRelative else { return try expression.position(from: 0, duration: nil) }
        let player = try await fleet.current([.player]).player
        if let episode, player.episode?.id != episode.id {
            return try expression.position(from: episode.position, duration: episode.duration)
        }
        return try expression.position(from: player.position(), duration: player.duration)
    }
}

struct BookmarkNote: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "note", abstract: "Change a bookmark’s note.")
    @Argument(help: "The bookmark’s ID, or the beginning of one.", completion: .bookmarks) var id: String
    @Argument(help: "The note.") var text: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withBookmark(id) { fleet, bookmark in
            let answer = try await fleet.player.setNote(CommandLineWords.typed(text), of: bookmark.id)
            try context.output.change(
                answer.value.json, if: answer.changed, "Changed the note of \(answer.value.words).",
                else: "the bookmark already has that note")
        }
    }
}

struct BookmarkRemove: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a bookmark.")
    @Argument(help: "The bookmark’s ID, or the beginning of one.", completion: .bookmarks) var id: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withBookmark(id) { fleet, bookmark in
            _ = try await fleet.player.removeBookmark(bookmark.id)
            try context.output.change(bookmark.json, "Removed the bookmark \(bookmark.words).")
        }
    }
}

struct BookmarkPlay: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "play", abstract: "Play from a bookmark.", aliases: ["go"])
    @Argument(help: "The bookmark’s ID, or the beginning of one.", completion: .bookmarks) var id: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withBookmark(id, observing: [.player, .next]) { fleet, bookmark in
            let player = try await fleet.current([.player, .next]).player
            if bookmark.isReached(from: player), let load = player.loadID {
                _ = try await fleet.player.seek(.to(bookmark.position), of: load)
                let resumed = try await fleet.player.resume().value
                return try context.output.report(try await fleet.settled(resumed, reportingTo: context.output))
            }
            try bookmark.checkPosition(in: try await fleet.library.episodes([bookmark.episode]).first)
            // The episode is loaded at this position at once, so that no other audio is played before it.
            let answer = try await fleet.queue.play(.episode(bookmark.episode), at: bookmark.position)
            try context.output.reportEpisode(of: try await fleet.settled(answer, reportingTo: context.output))
        }
    }
}

extension CommandContext {
    /// Runs `body` with the bookmark that matches an ID or the beginning of one.
    fileprivate func withBookmark(
        _ id: String, observing parts: Set<FleetPart> = [],
        _ body: @Sendable (Fleet, Bookmark) async throws -> Void
    ) async throws {
        try await withFleet(observing: .parts(parts.union([.bookmarks]))) { fleet in
            try await body(fleet, try .named(id, among: try await fleet.current([.bookmarks]).bookmarks))
        }
    }
}

extension Bookmark {
    /// - Throws: `notFound`; `ambiguous`, with the candidates.
    static func named(_ id: String, among bookmarks: [Bookmark]) throws(Failure) -> Bookmark {
        if let bookmark = bookmarks.first(where: { $0.id.text == id }) { return bookmark }
        let found = id.isEmpty ? [] : bookmarks.filter { $0.id.text.hasPrefix(id) }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no bookmark “\(id)”. `lockstep bookmark` lists them.")
        }
        guard found.count == 1 else {
            throw .ambiguous(
                "“\(id)” could be \(found.count) bookmarks.", found.map { ($0.id.text, $0.words, $0.note) })
        }
        return first
    }

    /// Whether a seek suffices. A position after the known end needs a new load, which plays the current audio file.
    func isReached(from player: PlayerState) -> Bool {
        guard player.episode?.id == episode, player.status != .finished else { return false }
        return player.duration.map { position <= $0 } ?? true
    }

    /// - Throws: `notFound` if the episode’s measured length is shorter than the bookmark’s position.
    func checkPosition(in episode: Episode?) throws(Failure) {
        guard let length = episode?.measuredDuration, position > length else { return }
        throw Failure(
            .notFound, "The bookmark at \(words) is beyond the end of the episode at \(ClockText.format(length)).")
    }

    /// `12:34 of “A title”`.
    fileprivate var words: String {
        "\(ClockText.format(position)) of \(DisplayText.quoted(title.isEmpty ? episode.text : title))"
    }
}
