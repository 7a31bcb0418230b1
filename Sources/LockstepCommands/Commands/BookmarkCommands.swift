import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct BookmarkCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bookmark", abstract: "Keep bookmarks in episodes, with notes.",
        subcommands: [
            BookmarkList.self, BookmarkAdd.self, BookmarkNote.self, BookmarkRemove.self, BookmarkPlay.self,
        ],
        defaultSubcommand: BookmarkList.self, aliases: ["bookmarks"])
}

struct BookmarkList: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "list", abstract: "Show bookmarks.")
    @Argument(help: "Only those of this episode.", completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            var bookmarks = try await session.view(of: [.playback]).allBookmarks
            if let episode {
                let id = try await session.findEpisode(episode).id
                bookmarks = bookmarks.filter { $0.episode == id }
            }
            try context.output.value(.array(bookmarks.map(\.json)), lines: Self.lines(bookmarks))
        }
    }

    static func lines(_ bookmarks: [WireBookmark]) -> [String] {
        guard !bookmarks.isEmpty else { return ["No bookmarks. Set one with `lockstep bookmark add`."] }
        var table = TextTable([
            .init(heading: "at", right: true), .init(heading: "episode", flexible: true),
            .init(heading: "note", flexible: true), .init(heading: "id"),
        ])
        for bookmark in bookmarks {
            table.add([ClockText.format(bookmark.position), bookmark.title, bookmark.note, bookmark.id])
        }
        return table.lines(width: Output.terminalWidth)
    }
}

struct BookmarkAdd: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add a bookmark, by default at the current position.")
    @Option(help: "The place: 12:34, 90, 1h30m, 50%, +30 or -15.") var at: String?
    @Option(parsing: .unconditional, help: "What to remember about it.") var note: String?
    @Option(help: "An episode other than the loaded one.", completion: .episodes) var episode: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let place = try at.map { text throws(Failure) in
            guard let place = SeekExpression(text) else {
                throw Failure(
                    .invalidArgument, "“\(text)” isn’t a position in an episode. Give \(SeekExpression.forms).")
            }
            return place
        }
        try await context.withSession { session in
            let player = try await session.view(of: [.playback]).player ?? WirePlaybackState()
            var request = WireSetBookmark()
            request.note = note ?? ""
            let isLoaded = player.hasEpisode && player.status != .idle
            var position = player.position(at: SystemClocks.now(), bootID: SystemClocks.bootID)
            var duration = player.duration
            request.episode = player.episode.id
            if let episode {
                let found = try await session.findEpisode(episode)
                if found.id != player.episode.id || !isLoaded {
                    position = found.state.position
                    duration = found.knownDuration
                }
                request.episode = found.id
            } else if !isLoaded {
                throw Failure(
                    .nothingLoaded, "Nothing is loaded. Name the episode: `lockstep bookmark add --episode EPISODE`.")
            }
            if let place {
                request.position = try place.target(from: position, duration: duration > 0 ? duration : nil).seconds
            }
            let given = request
            let reply = try await session.playback { $0.setBookmark = given }
            guard let bookmark = reply.bookmarks.bookmarks.first else {
                throw Failure(.malformed, "Couldn’t read the playback service’s answer.")
            }
            try context.output.change(bookmark.json, "Bookmarked \(bookmark.words).")
        }
    }
}

struct BookmarkNote: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "note", abstract: "Change a bookmark’s note.")
    @Argument(help: "The bookmark’s ID, or the beginning of one.", completion: .bookmarks) var id: String
    @Argument(help: "The note.") var text: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let text = CommandLineWords.typed(text)
            let bookmark = try await session.bookmark(id)
            guard bookmark.note != text else {
                return try context.output.change(bookmark.json, "No change: it already has that note.")
            }
            let reply = try await session.playback {
                $0.setBookmark.id = bookmark.id
                $0.setBookmark.note = text
            }
            let now = reply.bookmarks.bookmarks.first ?? bookmark
            try context.output.change(now.json, "Changed the note of \(now.words).")
        }
    }
}

struct BookmarkRemove: LockstepCommand {
    static let configuration = CommandConfiguration(commandName: "remove", abstract: "Remove a bookmark.")
    @Argument(help: "The bookmark’s ID, or the beginning of one.", completion: .bookmarks) var id: String
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let bookmark = try await session.bookmark(id)
            _ = try await session.playback { $0.removeBookmark.id = bookmark.id }
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
        try await context.withSession { session in
            let bookmark = try await session.bookmark(id)
            let player = try await session.view(of: [.playback, .queue]).player ?? WirePlaybackState()
            if bookmark.isReached(from: player) {
                _ = try await session.playback {
                    $0.seek.loadID = player.loadID
                    $0.seek.position = bookmark.position
                }
                _ = try await session.playback { $0.setPaused.paused = false }
                let settled = try await session.settled(AwaitedLoad(player.loadID), output: context.output)
                return try session.report(settled, to: context.output)
            }
            // Loaded at its place at once: nothing else sounds before.
            let reply = try await session.queue {
                $0.play.episode = bookmark.episode
                $0.play.position = bookmark.position
            }
            let load = AwaitedLoad(reply, after: player)
            try Play.report(try await session.settled(load, output: context.output), session, context.output)
        }
    }
}

extension Session {
    /// The bookmark of an id, or of the beginning of one.
    ///
    /// - Throws: `notFound`; `ambiguous` with the candidates.
    fileprivate func bookmark(_ id: String) async throws(Failure) -> WireBookmark {
        try WireBookmark.resolve(id, in: try await view(of: [.playback]).allBookmarks)
    }
}

extension WireBookmark {
    /// The bookmark of an id, or of the beginning of one.
    ///
    /// - Throws: `notFound`; `ambiguous` with the candidates.
    static func resolve(_ id: String, in bookmarks: [WireBookmark]) throws(Failure) -> WireBookmark {
        if let bookmark = bookmarks.first(where: { $0.id == id }) { return bookmark }
        let found = id.isEmpty ? [] : bookmarks.filter { $0.id.hasPrefix(id) }
        guard let first = found.first else {
            throw Failure(.notFound, "There is no bookmark “\(id)”. `lockstep bookmark` lists them.")
        }
        guard found.count == 1 else {
            throw Failure.ambiguous(
                "“\(id)” could be \(found.count) bookmarks.", found.prefix(20).map { ($0.id, $0.words) })
        }
        return first
    }

    /// Whether it lies in what the player has loaded, so that seeking is enough. What lies behind the end that is known is
    /// for a load, which plays what is there.
    func isReached(from player: WirePlaybackState) -> Bool {
        guard player.hasEpisode, player.episode.id == episode else { return false }
        switch player.status {
        case .loading, .playing, .paused, .failed: return player.duration == 0 || position <= player.duration
        case .idle, .finished, .unknown, .UNRECOGNIZED: return false
        }
    }

    /// Where it is, in words.
    fileprivate var words: String {
        let name = title.isEmpty ? episode : title
        return "\(ClockText.format(position)) of “\(DisplayText.sanitised(name))”"
    }
}

extension FleetView {
    /// All bookmarks: those of an episode together, in order of their places; the episodes with the newest ones first.
    var allBookmarks: [WireBookmark] {
        bookmarks.values.map(\.bookmarks).sorted { left, right in
            (left.map(\.createdAt).max() ?? 0) > (right.map(\.createdAt).max() ?? 0)
        }.flatMap { $0.sorted { ($0.position, $0.id) < ($1.position, $1.id) } }
    }
}
