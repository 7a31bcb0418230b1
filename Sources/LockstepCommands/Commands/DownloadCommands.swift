import ArgumentParser
import LibC
import LockstepClient
import PodcastModel

struct DownloadCommands: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "download", abstract: "Download episodes, and manage their files.",
        subcommands: [
            DownloadAdd.self, DownloadPause.self, DownloadResume.self, DownloadCancel.self, DownloadRemove.self,
        ])
}

/// The episodes of a command: named, or selected by a rule.
struct WantedEpisodes: ParsableArguments {
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String] = []
    @Option(name: .customLong("where"), help: "All episodes that meet this rule, such as “unplayed and length < 1h”.")
    var rule: String?
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        try EpisodeArguments.require("episodes", episodes, orRule: rule)
    }
}

enum EpisodeArguments {
    /// The help of an argument whose absence means the loaded episode.
    static let orLoaded = ArgumentHelp(
        "An ID, the beginning of one, or a part of a title; the loaded episode by default.")

    /// - Parameter what: what the texts name, for the error if there are neither texts nor a rule.
    static func require(_ what: String, _ texts: [String], orRule rule: String?) throws {
        try refuseCombination(texts, rule: rule)
        guard !texts.isEmpty || rule != nil else {
            throw ValidationError("Name the \(what), or give a rule with --where.")
        }
    }

    static func refuseCombination(_ episodes: [String], rule: String?) throws {
        guard episodes.isEmpty || rule == nil else { throw ValidationError("Episodes and --where can’t be combined.") }
    }
}

protocol DownloadEdit: LockstepCommand {
    static var action: DownloadsClient.Action { get }
    /// The phrases for changed and for unchanged episodes.
    static var words: (done: String, already: String) { get }
    /// The phrase for these unchanged downloads.
    static func already(_ unchanged: [DownloadState]) -> String
    var wanted: WantedEpisodes { get }
}

extension DownloadEdit {
    var options: GlobalOptions { wanted.options }

    func perform(_ context: CommandContext) async throws {
        let count = Set(wanted.episodes).count
        guard count <= RequestSizes.episodes else {
            throw Failure(
                .invalidArgument, "\(count) episodes are too many at once; the limit is \(RequestSizes.episodes).")
        }
        try await context.withFleet(observing: .parts([.downloads])) { fleet in
            let found = try await fleet.findDownloads(wanted.episodes, rule: wanted.rule)
            guard found.count <= RequestSizes.queueEntries else {
                throw Failure(
                    .limitReached,
                    "\(found.count) episodes match; at most \(RequestSizes.queueEntries) can be handled at once. Narrow the rule."
                )
            }
            guard !found.isEmpty else {
                return try context.output.change(.array([]), if: false, "", else: "no episode matches")
            }
            var answers: [Answer<DownloadState>] = []
            for part in found.parts(of: RequestSizes.episodes) {
                do throws(Failure) {
                    answers += try await fleet.downloads.perform(Self.action, part.map(\.id))
                } catch {
                    throw error.after(answers.count, of: found.count, "handled")
                }
            }
            try context.output.changes(
                zip(found, answers).map { ($0.title, $1.changed) }, done: { "\(Self.words.done) \($0)" },
                already: Self.already(answers.filter { !$0.changed }.map(\.value)),
                notes: Self.notes(of: answers.filter(\.changed).map(\.value)),
                json: answers.map { $0.value.json.adding("changed", .bool($0.changed)) })
        }
    }

    static func already(_ unchanged: [DownloadState]) -> String { words.already }

    /// The notes of these downloads for the user; with their titles if there are several.
    private static func notes(of downloads: [DownloadState]) -> [String] {
        downloads.filter { !$0.note.isEmpty && $0.status != .notDownloaded }.map { download in
            downloads.count == 1 ? download.note : "\(DisplayText.quoted(download.title)): \(download.note)"
        }
    }
}

extension Fleet {
    /// The loaded episode. The connection observes the player.
    ///
    /// - Parameter command: the command with a named episode, for the advice.
    /// - Throws: `nothingLoaded`.
    func loadedEpisode(orName command: String) async throws(Failure) -> EpisodeSummary {
        guard let episode = try await current([.player]).player.episode else {
            throw Failure(.nothingLoaded, "Nothing is loaded. Name an episode: `lockstep \(command)`.")
        }
        return episode
    }

    /// The episode that matches a text; without one, the loaded episode.
    func episode(_ text: String?, of command: String) async throws(Failure) -> Episode {
        guard let text else { return try await library.findEpisode(try await loadedEpisode(orName: command).id.text) }
        return try await library.findEpisode(typed: text)
    }

    typealias NamedEpisode = (id: EpisodeID, title: String)

    /// The episodes that match the arguments, in order without duplicates, including episodes that only have a download
    /// because the library has forgotten them. The connection observes the downloads.
    ///
    /// - Throws: `notFound`, `ambiguous`.
    func findDownloads(_ arguments: [String], rule: String? = nil) async throws(Failure) -> [NamedEpisode] {
        if rule != nil { return try await library.find([], rule: rule).map { ($0.id, $0.title) } }
        do throws(Failure) { return try await library.find(arguments).map { ($0.id, $0.title) } } catch {
            guard error.known == .notFound else { throw error }
        }
        let downloads = await availableState().downloads
        var found: [NamedEpisode] = []
        for text in arguments {
            let episode: NamedEpisode
            do throws(Failure) {
                let known = try await library.findEpisode(typed: text)
                episode = (known.id, known.title)
            } catch {
                guard error.known == .notFound, let download = DownloadText.named(text, in: downloads) else {
                    throw error
                }
                episode = (download.episode, download.title)
            }
            if !found.contains(where: { $0.id == episode.id }) { found.append(episode) }
        }
        return found
    }
}

struct DownloadAdd: DownloadEdit {
    static let configuration = CommandConfiguration(
        commandName: "add",
        abstract: "Download episodes; failed downloads are resumed, and missing files are fetched again.")
    static let action = DownloadsClient.Action.add
    static let words = (done: "Queued for download:", already: "already downloaded or being downloaded")
    @OptionGroup var wanted: WantedEpisodes

    static func already(_ unchanged: [DownloadState]) -> String {
        let downloaded = unchanged.count { $0.status == .downloaded }
        guard downloaded == 0 || downloaded == unchanged.count else { return words.already }
        return downloaded == 0 ? "already being downloaded" : "already downloaded"
    }
}

struct DownloadPause: DownloadEdit {
    static let configuration = CommandConfiguration(
        commandName: "pause", abstract: "Pause downloads and keep their partial files.",
        discussion:
            "If the server doesn’t identify the version of a file, resuming restarts the download, and a message reports that."
    )
    static let action = DownloadsClient.Action.pause
    static let words = (done: "Paused the download of", already: "already paused")
    @OptionGroup var wanted: WantedEpisodes
}

struct DownloadResume: DownloadEdit {
    static let configuration = CommandConfiguration(
        commandName: "resume", abstract: "Resume paused or failed downloads.")
    static let action = DownloadsClient.Action.resume
    static let words = (done: "Resumed the download of", already: "already being downloaded")
    @OptionGroup var wanted: WantedEpisodes
}

struct DownloadCancel: DownloadEdit {
    static let configuration = CommandConfiguration(
        commandName: "cancel", abstract: "Cancel unfinished downloads and delete their partial files.")
    static let action = DownloadsClient.Action.cancel
    static let words = (done: "Cancelled the download of", already: "not being downloaded")
    @OptionGroup var wanted: WantedEpisodes
}

struct DownloadRemove: DownloadEdit {
    static let configuration = CommandConfiguration(
        commandName: "remove", abstract: "Delete downloaded files; the episodes stay.")
    static let action = DownloadsClient.Action.remove
    static let words = (done: "Removed the download of", already: "not downloaded")
    @OptionGroup var wanted: WantedEpisodes
}

struct Downloads: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "downloads",
        abstract: "Show downloads; on a terminal with progress bars, until all have finished or q is pressed.",
        discussion:
            "Without a terminal, and with --plain or --json, the downloads are printed once. --watch prints them, and then a "
            + "line for each change until Ctrl-C; it reads no keys."
    )
    @Flag(help: "Print a line for each change until Ctrl-C.") var watch = false
    @Flag(help: "Print the downloads once, even if some are in progress.") var once = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard !watch || !once else { throw ValidationError("--watch and --once can’t be used together.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: .parts([.downloads])) { fleet in
            let state = try await fleet.current([.downloads])
            if watch {
                return try await context.output.whileRead { try await Self.narrate(fleet, context.output) }
            }
            guard isatty(STDOUT_FILENO) == 1, !context.plain, !context.output.json, !once,
                DownloadsBoard(state).isActive
            else {
                let downloads = await Self.withProgress(fleet).downloads
                return try context.output.list(
                    downloads.map(\.episode), .array(downloads.map(\.json)), lines: Self.lines(downloads))
            }
            try await Self.draw(fleet)
        }
    }

    /// The timeout for telemetry; it exceeds the interval between two announcements of progress.
    private static let announcementLimit = Duration.milliseconds(400)

    /// The downloads with their telemetry, since the progress in the state is up to 10 s old. A download that receives
    /// no data has no telemetry, so the wait is limited.
    private static func withProgress(_ fleet: Fleet) async -> DownloadsBoard {
        DownloadsBoard(
            await fleet.first(within: announcementLimit) { state in
                let board = DownloadsBoard(state)
                return board.isCurrent && board.hasProgressForAll
            }.state)
    }

    static func lines(_ downloads: [DownloadState]) -> [String] {
        guard !downloads.isEmpty else { return [DownloadText.none] }
        let rows = downloads.enumerated().map { index, download in
            [
                "\(index + 1)", download.title, download.podcast, DownloadText.state(download), download.episode.text,
            ]
        }
        return TextTable(
            [.right("%"), .flexible("episode"), .flexible("podcast"), .flexible("state"), .id("id")], rows
        ).printed()
    }

    private static func narrate(_ fleet: Fleet, _ output: Output) async throws {
        var narrator = DownloadsNarrator()
        for await state in fleet.states() {
            let board = DownloadsBoard(state)
            guard board.isCurrent else { continue }
            if narrator.isEmptyAtFirst(board.downloads), !output.json { try output.line(DownloadText.none) }
            for download in narrator.news(board.downloads) {
                try output.line(output.json ? download.json.line : DownloadsNarrator.line(download))
            }
        }
    }

    private static func draw(_ fleet: Fleet) async throws {
        let signals = TerminalSignals()
        defer { signals.close() }
        let inbox = PlayerInbox()
        let following = Task { await inbox.follow(fleet) }
        defer { following.cancel() }
        let status = try await MainActor.run { try DownloadsLoop(TerminalEvents(signals: signals, inbox: inbox)).run() }
        if status != 0 { throw ExitCode(status) }
    }
}
