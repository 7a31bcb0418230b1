import ArgumentParser
import BusKit
import LibC
import LockstepClient
import PodcastModel
import WireMessages

struct DownloadCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Download episodes, and manage their files.",
        subcommands: [
            DownloadAdd.self, DownloadPause.self, DownloadResume.self, DownloadCancel.self, DownloadRemove.self,
        ])
}

/// Something that is done to the files of episodes.
protocol DownloadChange: LockstepCommand {
    /// The episodes, as users name them.
    var episodes: [String] { get }
    /// What has become of those that it changed: `Paused`.
    static var done: String { get }
    /// What was so: `paused already`.
    static var already: String { get }
    /// Asks for it.
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String])
}

extension DownloadChange {
    func perform(_ context: CommandContext) async throws {
        try await DownloadAction(done: Self.done, already: Self.already, build: Self.build)
            .perform(on: episodes, context)
    }
}

/// What a command does to files, apart from the command.
struct DownloadAction: Sendable {
    var done: String
    var already: String
    var build: @Sendable (inout WireDownloadsRequest, [String]) -> Void

    func perform(on names: [String], _ context: CommandContext) async throws {
        let count = Set(names).count
        guard count <= RequestSizes.episodes else {
            throw Failure(
                .invalidArgument, "\(count) episodes are too many at once; the limit is \(RequestSizes.episodes).")
        }
        try await context.withSession { session in
            let found = try await session.findDownloads(names)
            let reply = try await session.downloads { build(&$0, found.map(\.id)) }
            let changed = found.indices.filter { reply.changed.indices.contains($0) ? reply.changed[$0] : true }
            let same = found.indices.filter { !changed.contains($0) }
            var parts: [String] = []
            if !changed.isEmpty { parts.append("\(done) \(QueueAdd.names(changed.map { found[$0].title }))") }
            if !same.isEmpty {
                let verb = same.count == 1 ? "is" : "are"
                let names = QueueAdd.names(same.map { found[$0].title })
                parts.append("\(changed.isEmpty ? "No change: " : "")\(names) \(verb) \(already)")
            }
            let values = reply.downloads.enumerated().map { index, download in
                download.json.adding("changed", .bool(changed.contains(index)))
            }
            let notes = Self.notes(
                of: changed.compactMap { reply.downloads.indices.contains($0) ? reply.downloads[$0] : nil })
            try context.output.change(
                .array(values), ([Sentence.stopped(parts.joined(separator: "; "))] + notes).joined(separator: " "))
        }
    }

    /// What people should know of these downloads, of several by title.
    private static func notes(of downloads: [WireDownload]) -> [String] {
        downloads.filter { !$0.note.isEmpty && $0.state != .notDownloaded }.map { download in
            let note = DisplayText.sanitised(download.note)
            return downloads.count == 1 ? note : "“\(DisplayText.sanitised(download.title))”: \(note)"
        }
    }
}

extension Session {
    /// The episodes that texts mean, each once, in order; also those that have a download alone, as the library has
    /// forgotten them.
    ///
    /// - Throws: `notFound`, `ambiguous`.
    func findDownloads(_ texts: [String]) async throws(Failure) -> [WireEpisode] {
        do { return try await findEpisodes(texts) } catch {
            guard error.known == .notFound else { throw error }
        }
        let downloads = await presentView().downloads
        var found: [WireEpisode] = []
        for text in texts {
            var episode = WireEpisode()
            do { episode = try await findEpisode(text) } catch {
                guard error.known == .notFound, let download = DownloadText.named(text, in: downloads) else {
                    throw error
                }
                episode.id = download.episode
                episode.title = download.title
            }
            if !found.contains(where: { $0.id == episode.id }) { found.append(episode) }
        }
        return found
    }
}

struct DownloadAdd: DownloadChange {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Download episodes; failed downloads are resumed, and missing files are fetched again.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions
    static let done = "Queued for download:"
    static let already = "already downloaded or being downloaded"
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String]) {
        request.add.episodes = episodes
    }
}

struct DownloadPause: DownloadChange {
    static let configuration = CommandConfiguration(
        commandName: "pause",
        abstract: "Pause downloads and keep their partial files.",
        discussion:
            "If the server doesn’t identify the version of a file, the download starts over, and a message says so.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions
    static let done = "Paused the download of"
    static let already = "paused already"
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String]) {
        request.pause.episodes = episodes
    }
}

struct DownloadResume: DownloadChange {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resume paused or failed downloads.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions
    static let done = "Resumed the download of"
    static let already = "already being downloaded"
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String]) {
        request.resume.episodes = episodes
    }
}

struct DownloadCancel: DownloadChange {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel unfinished downloads and delete their partial files.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions
    static let done = "Cancelled the download of"
    static let already = "not being downloaded"
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String]) {
        request.cancel.episodes = episodes
    }
}

struct DownloadRemove: DownloadChange {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Delete downloaded files; the episodes stay.")
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String]
    @OptionGroup var options: GlobalOptions
    static let done = "Removed the download of"
    static let already = "not downloaded"
    @Sendable static func build(_ request: inout WireDownloadsRequest, _ episodes: [String]) {
        request.remove.episodes = episodes
    }
}

struct Downloads: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloads",
        abstract: "Show downloads; on a terminal with progress bars, until all have finished or q is pressed.",
        discussion: "Without a terminal, with --plain or --json they are printed as they are now; --watch follows them."
    )
    @Flag(help: "Follow them, a line for each change.") var watch = false
    @Flag(help: "Print them once, even if some are in progress.") var once = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard !watch || !once else { throw ValidationError("--watch and --once can’t be used together.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let view = try await session.view(of: [.downloads])
            var board = DownloadsBoard()
            _ = board.apply(.snapshot(view.replica))
            if watch {
                try await context.output.whileRead { try await Self.narrate(session, context.output) }
                return
            }
            let isTerminal = isatty(STDOUT_FILENO) == 1
            guard isTerminal, !context.plain, !context.output.json, !once, board.isActive else {
                let told = board.isTold ? board : await Self.told(session)
                let downloads = (told.isCurrent ? told : board).ordered
                return try context.output.value(.array(downloads.map(\.json)), lines: Self.lines(downloads))
            }
            try await Self.draw(session)
        }
    }

    /// The downloads once each that is under way has told how far it is: what the stream says of that is up to 10 s old.
    /// One that gets no bytes tells nothing, and is not waited for.
    private static func told(_ session: Session) async -> DownloadsBoard {
        await withTaskGroup(of: DownloadsBoard?.self) { group in
            group.addTask {
                var board = DownloadsBoard()
                for await update in session.fleet.client.updates() {
                    _ = board.apply(update)
                    if board.isCurrent, board.isTold { break }
                }
                return board
            }
            group.addTask {
                try? await Task.sleep(for: tellingLimit)
                return nil
            }
            // The end of the time cancels the other, which then returns what it has seen.
            while let result = await group.next() {
                group.cancelAll()
                if let result { return result }
            }
            return DownloadsBoard()
        }
    }

    /// Longer than from one telling to the next.
    private static let tellingLimit = Duration.milliseconds(400)

    static func lines(_ downloads: [WireDownload]) -> [String] {
        guard !downloads.isEmpty else { return [DownloadText.none] }
        var table = TextTable([
            .init(heading: "episode", flexible: true), .init(heading: "podcast", flexible: true),
            .init(heading: "state", flexible: true), .init(heading: "id"),
        ])
        for download in downloads {
            table.add([download.title, download.podcastTitle, DownloadText.state(download), download.episode])
        }
        return table.lines(width: Output.terminalWidth)
    }

    /// A line for each change, until it is ended.
    private static func narrate(_ session: Session, _ output: Output) async throws {
        var board = DownloadsBoard()
        var narrator = DownloadsNarrator()
        for await update in session.fleet.client.updates() {
            guard board.apply(update), board.isCurrent else { continue }
            for download in narrator.news(board.ordered) {
                try output.line(output.json ? download.json.line : DownloadsNarrator.line(download))
            }
        }
    }

    /// Bars, until nothing is under way any more or `q` is pressed.
    private static func draw(_ session: Session) async throws {
        let signals = TerminalSignals()
        defer { signals.close() }
        let inbox = PlayerInbox()
        let following = Task { await inbox.follow(session.fleet.client) }
        defer { following.cancel() }
        let status = try await MainActor.run { try DownloadsLoop(TerminalEvents(signals: signals, inbox: inbox)).run() }
        if status != 0 { throw ExitCode(status) }
    }
}
