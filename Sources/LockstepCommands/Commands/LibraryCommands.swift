public import ArgumentParser
public import LockstepClient
import PodcastModel

struct Unsubscribe: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "unsubscribe",
        abstract: "Stop refreshing podcasts. Queue entries, positions and files are kept unless --forget is given.")
    @Flag(
        help: """
            A day later, delete everything about the podcasts: episodes, positions, played marks, bookmarks, settings, \
            queue entries and files.
            """)
    var forget = false
    @Flag(help: "With --forget, delete at once; that can’t be undone.") var now = false
    @Flag(help: "Undo --forget within the day. Without podcasts, of those that were forgotten last.") var undo = false
    @Flag(help: "With --forget, don’t ask, and accept parts of titles.") var yes = false
    @Argument(help: "IDs, beginnings of IDs, parts of titles, or addresses.", completion: .podcasts) var podcasts:
        [String] = []
    @OptionGroup var options: GlobalOptions
    var observation: Observation { forget ? .parts([.queues, .downloads]) : .nothing }

    func validate() throws {
        guard !podcasts.isEmpty || undo else { throw ValidationError("Name the podcasts.") }
        guard !undo || !forget else { throw ValidationError("Give --forget or --undo, not both.") }
        guard forget || !now else { throw ValidationError("--now belongs to --forget.") }
    }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        if undo { return try await restore(fleet, output) }
        let found = try await fleet.library.findPodcasts(podcasts)
        if forget { return try await delete(found, fleet, output) }
        let results = try await fleet.feeds.unsubscribe(found.map(\.id))
        try FeedResults(results, of: .unsubscribing).report(to: output)
        let hasEpisodes = results.contains { $0.kind == .removed && $0.podcast?.episodeCount ?? 0 > 0 }
        if hasEpisodes, !output.json, !output.quiet {
            try output.line("Episodes, positions and queue entries are kept. `--forget` removes them, too.")
        }
    }

    private func delete(_ found: [Podcast], _ fleet: Fleet, _ output: Output) async throws {
        if !yes {
            if !output.json, ForgetQuestion.isPossible {
                guard try await ForgetQuestion.about(found, isFinal: now, fleet).ask() else {
                    return try output.line("No change: nothing was forgotten.")
                }
            } else {
                for (text, podcast) in zip(podcasts, found) { try Self.requireWholeName(text, podcast) }
            }
        }
        let before = now ? await fleet.availableState() : nil
        let results = try await fleet.feeds.forget(
            found.map(\.id), after: now ? .zero : FeedsClient.forgettingDelay)
        try FeedResults(results, of: .forgetting).report(to: output)
        let gone = results.filter { $0.kind == .removed }.compactMap(\.podcast)
        guard !output.json, !output.quiet, !gone.isEmpty else { return }
        guard let before else {
            return try output.line("`lockstep unsubscribe --undo` undoes this until then.")
        }
        let (queues, files) = await Self.losses(of: Set(gone.map(\.id)), from: before, fleet)
        for line in Self.sentences(queues, files: files) { try output.line(line) }
    }

    private func restore(_ fleet: Fleet, _ output: Output) async throws {
        let named: [Podcast]
        if podcasts.isEmpty {
            let all = try await fleet.library.podcasts(includesUnsubscribed: true)
            let last = all.compactMap(\.deletion).max()
            named = all.filter { $0.deletion != nil && $0.deletion == last }
        } else {
            named = try await fleet.library.findPodcasts(podcasts)
        }
        guard !named.isEmpty else {
            return try output.change(.array([]), if: false, "", else: "no podcast waits for its deletion")
        }
        try FeedResults(try await fleet.feeds.undoForget(named.map(\.id)), of: .restoring).report(to: output)
    }

    /// Refuses to forget a podcast that is named by a part of its title.
    static func requireWholeName(_ text: String, _ podcast: Podcast) throws(Failure) {
        let names = [podcast.id.text, podcast.title, podcast.url]
        guard !names.contains(where: { $0.lowercased() == text.lowercased() }), WebAddress(text) == nil else { return }
        let title = podcast.title.isEmpty ? podcast.url : podcast.title
        throw Failure(
            .invalidArgument,
            "“\(text)” matches “\(title)” (\(podcast.id)) with \(NumberText.counted(podcast.episodeCount, "episode")). Forgetting also deletes positions, bookmarks, queue entries and files. Give the whole title or the ID, or add --yes."
        )
    }

    /// The numbers of the podcasts’ entries in each queue, Up Next first, and of their downloaded files. Returns when
    /// the queues have removed the entries, or after two seconds.
    private static func losses(
        of podcasts: Set<PodcastID>, from before: FleetState, _ fleet: Fleet
    ) async -> (queues: [(queue: String, count: Int)], files: Int) {
        @Sendable func entries(_ state: FleetState) -> [(queue: String, count: Int)] {
            state.queues.map { queue in
                (queue.name, queue.entries.count { $0.episode.podcastID.map(podcasts.contains) ?? false })
            }.filter { $0.count > 0 }
        }
        let lost = entries(before)
        if !lost.isEmpty {
            _ = await fleet.first(within: .seconds(2)) { !$0.isStale(.queues) && entries($0).isEmpty }
        }
        let files = before.downloads.count { $0.status == .downloaded && $0.podcastID.map(podcasts.contains) ?? false }
        return (lost, files)
    }

    /// `Removed 2 entries from Up Next and 1 entry from “evening”.`, and the consequence for the files.
    static func sentences(_ queues: [(queue: String, count: Int)], files: Int) -> [String] {
        let parts = queues.map { queue, count in
            "\(NumberText.counted(count, "entry", "entries")) from \(QueueName.shown(queue))"
        }
        var sentences = parts.isEmpty ? [] : ["Removed \(WordList.and(parts))."]
        if files > 0 {
            let counted = NumberText.counted(files, "downloaded file")
            sentences.append("\(counted) will be deleted when no longer in use.")
        }
        return sentences
    }
}

struct Podcasts: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "podcasts", abstract: "List your subscriptions.")

    private static func state(unsubscribed podcast: Podcast) -> String {
        guard let time = podcast.deletion else { return "unsubscribed" }
        return "to be deleted on \(TimeText.minute(milliseconds: time.milliseconds))"
    }

    @Flag(help: "Include podcasts that you unsubscribed from.") var all = false
    @Option(help: "Only podcasts with this tag.") var tag: String?
    @OptionGroup var options: GlobalOptions

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        var podcasts = try await fleet.library.podcasts(includesUnsubscribed: all)
        if let tag {
            let key = PodcastTag.key(PodcastTag.trimmed(CommandLineWords.typed(tag)))
            podcasts.removeAll { podcast in !podcast.tags.contains { PodcastTag.key($0) == key } }
            guard !podcasts.isEmpty else {
                return try output.value(
                    .array([]), lines: ["No podcast has the tag “\(tag)”. `lockstep tag` lists the tags."])
            }
        }
        let titles = Dictionary(grouping: podcasts, by: \.title)
        let rows = podcasts.map { podcast in
            let isOnlyOne = podcast.title.isEmpty || titles[podcast.title]?.count == 1
            let state = podcast.isSubscribed ? podcast.error ?? "" : Self.state(unsubscribed: podcast)
            return [
                podcast.title.isEmpty ? podcast.url : podcast.title, "\(podcast.unplayedCount)",
                "\(podcast.episodeCount)", TimeText.minute(milliseconds: podcast.lastRefresh?.milliseconds ?? 0),
                podcast.id.text,
                // Podcasts with the same title are distinguished by their addresses.
                [isOnlyOne ? "" : podcast.url, state].filter { !$0.isEmpty }.joined(separator: "  "),
            ]
        }
        let table = TextTable(
            [
                .flexible("podcast"), .right("unplayed"), .right("episodes"), "refreshed", .id("id"), .flexible(""),
            ], rows)
        try output.value(
            .array(podcasts.map(\.json)),
            lines: rows.isEmpty
                ? ["You have no subscriptions. Add one with `lockstep subscribe URL`."] : table.printed())
    }
}

/// The options that select and order episodes; the same for every command that takes a list of them.
struct EpisodeListOptions: ParsableArguments {
    @Option(
        name: .customLong("where"),
        help: "Only episodes that meet this rule, such as “unplayed and length < 20m and published < 7d”.")
    var rule: String?
    @Option(help: "The order: \(EpisodeOrder.allCases.map(\.rawValue).joined(separator: ", ")).")
    var sort: EpisodeOrder?

    /// The list of these options.
    ///
    /// - Throws: `invalidArgument` for an invalid rule; `notFound` for an unknown name in it.
    func list(_ library: LibraryClient, order: EpisodeOrder = .newest) async throws(Failure) -> EpisodeList {
        var list = EpisodeList(order: sort ?? order)
        if let rule { list.rule = try await library.rule(rule) }
        return list
    }
}

extension EpisodeOrder: ExpressibleByArgument {
    /// The order in a sentence: `shortest first`.
    var phrase: String {
        switch self {
        case .newest, .oldest, .shortest, .longest: "\(rawValue) first"
        case .title: "by title"
        case .heard: "last played first"
        case .added: "last added first"
        }
    }
}

struct Episodes: FleetCommand {
    static let configuration = CommandConfiguration(
        commandName: "episodes", abstract: "List episodes, the newest first unless --sort is given.")
    @Argument(help: "The podcast; all by default.", completion: .podcasts) var podcast: String?
    @Option(parsing: .unconditional, help: "The maximum number of episodes; 20 by default.") var limit: Int?
    @Flag(help: "List all episodes.") var all = false
    @Flag(help: "Only unplayed episodes.") var unplayed = false
    @Flag(help: "Only downloaded episodes.") var downloaded = false
    @OptionGroup var list: EpisodeListOptions
    @OptionGroup var options: GlobalOptions

    func validate() throws { try ListLength.validate(limit: limit, all: all) }

    func perform(_ fleet: Fleet, _ output: Output) async throws {
        var list = try await list.list(fleet.library)
        if let podcast { list.podcast = try await fleet.library.findPodcast(typed: podcast).id }
        (list.isUnplayed, list.isDownloaded) = (unplayed, downloaded)
        let listing = try await fleet.library.episodes(in: list, limit: all ? nil : limit ?? ListLength.defaultLimit)
        try output.list(
            listing.episodes.map(\.id), .array(listing.episodes.map(\.json)),
            lines: listing.episodes.isEmpty ? [none] : Self.lines(listing))
    }

    private var none: String {
        switch (downloaded, unplayed) {
        case _ where list.rule != nil: "No episode matches the rule."
        case _ where list.sort == .heard: "You haven’t heard anything yet."
        case (true, true):
            "There are no unplayed downloaded episodes. Download one with `lockstep download add EPISODE`."
        case (true, false): "There are no downloaded episodes. Download one with `lockstep download add EPISODE`."
        case (false, true): "There are no unplayed episodes. Check for new ones with `lockstep refresh`."
        case (false, false) where podcast != nil:
            "This podcast has no episodes. Check for new ones with `lockstep refresh`."
        case (false, false): "There are no episodes. Subscribe to a podcast with `lockstep subscribe URL`."
        }
    }

    static func lines(_ listing: EpisodeListing) -> [String] {
        table(listing.episodes).printed() + [totals(listing)]
    }

    static func table(_ episodes: [Episode]) -> TextTable {
        let rows = episodes.enumerated().map { index, episode in
            [
                "\(index + 1)", episode.title, episode.podcast, ClockText.format(episode.duration),
                episode.isPlayed ? "played" : episode.position >= 1 ? ClockText.format(episode.position) : "",
                TimeText.day(milliseconds: episode.published?.milliseconds ?? 0), episode.id.text,
            ]
        }
        return TextTable(
            [
                .right("%"), .flexible("episode"), .flexible("podcast"), .right("length"), .right("at"), "date",
                .id("id"),
            ], rows)
    }

    /// `20 of 1234 episodes, 812 h 20 min, 640 h left; --all shows all.`
    static func totals(_ listing: EpisodeListing) -> String {
        let (shown, total) = (listing.episodes.count, listing.total)
        let count = NumberText.counted(total, "episode")
        return totals(shown < total ? "\(shown) of \(count)" : count, length: listing.length, left: listing.remaining)
            + (shown < total ? "; `--all` shows all." : ".")
    }

    /// `1234 episodes, 812 h 20 min, 640 h left`
    static func totals(_ count: String, length: Double, left: Double) -> String {
        var parts = [count]
        if length > 0 {
            parts.append(TimeText.span(length))
            // Rounding makes a difference below a second meaningless.
            if left < length - 1 { parts.append("\(TimeText.span(left)) left") }
        }
        return parts.joined(separator: ", ")
    }
}
