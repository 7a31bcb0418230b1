import ArgumentParser
import BusKit
import FoundationEssentials
import LockstepClient
import PodcastModel
import WireMessages

struct Subscribe: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Subscribe to podcasts by the address of their feeds.",
        discussion: "Returns when every feed has been read. A feed that can’t be read isn’t kept, unless with --keep.")
    @Flag(help: "Keep feeds that cannot be read now.") var keep = false
    @Option(help: "The user for feeds that need one; the password is asked for, or read from standard input.")
    var user: String?
    @Argument(help: "http or https addresses, or files.", completion: .file()) var feeds: [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let folder = FileManager.default.currentDirectoryPath
        // Of several each has its own result, also one that is no address; an empty one has no name to give it by.
        let urls = try feeds.map { text throws(Failure) in
            do throws(Failure) { return try FeedAddress.url(text, in: folder) } catch {
                guard feeds.count > 1, !text.allSatisfy(\.isWhitespace) else { throw error }
                return text
            }
        }
        let password = try user.map { name throws(Failure) in try PasswordPrompt.read(for: name) }
        try await context.withSession { session in
            let reply = try await context.output.whileWaiting("Fetching \(NumberText.counted(urls.count, "feed"))") {
                try await session.feeds {
                    $0.subscribe.urls = urls
                    $0.subscribe.keep = keep
                    $0.subscribe.user = user ?? ""
                    $0.subscribe.password = password ?? ""
                }
            }
            try FeedResults(reply.results, of: .subscribing).report(to: context.output, doing: "subscribed to")
        }
    }
}

struct Unsubscribe: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "unsubscribe",
        abstract: "Stop refreshing podcasts. Queue, positions and files stay, unless with --forget.")
    @Flag(
        help: """
            Forget everything about them: episodes, positions, played marks, bookmarks, what is set for them, their places \
            in queues, their files.
            """)
    var forget = false
    @Flag(help: "Also forget podcasts that are named by a part of their title.") var yes = false
    @Argument(help: "IDs, beginnings of IDs, parts of titles, or addresses.", completion: .podcasts) var podcasts:
        [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            var ids: [String] = []
            for text in podcasts {
                let podcast = try await session.findPodcast(text)
                if forget, !yes { try Self.requireWholeName(text, podcast) }
                ids.append(podcast.id)
            }
            let files = forget ? await Self.files(of: Set(ids), session) : 0
            let before = forget ? Array(await session.presentView().queues.values) : []
            let reply = try await session.feeds {
                $0.unsubscribe.podcasts = ids
                $0.unsubscribe.forget = forget
            }
            let gone = Set(reply.results.filter { $0.kind == .removed }.map(\.podcast.id))
            let removed = Self.entries(of: gone, in: before).map { ($0.queue, $0.ids.count) }
            if !removed.isEmpty { try await Self.removeEntries(of: gone, session) }
            try FeedResults(reply.results, of: forget ? .forgetting : .unsubscribing)
                .report(to: context.output, doing: forget ? "forgotten" : "unsubscribed from")
            guard !context.output.json, !context.output.quiet else { return }
            if !removed.isEmpty {
                try context.output.line(Self.sentence(removed))
            } else if !forget, reply.results.contains(where: { $0.kind == .removed && $0.podcast.episodeCount > 0 }) {
                try context.output.line("Episodes, positions and queue entries stay. `--forget` removes them too.")
            }
            if files > 0, !gone.isEmpty {
                let counted = NumberText.counted(files, "downloaded file")
                try context.output.line(
                    "\(counted) will be deleted when nothing uses \(files == 1 ? "it" : "them") any more.")
            }
        }
    }

    /// Refuses to forget what is named by a part alone: nothing brings it back.
    static func requireWholeName(_ text: String, _ podcast: WirePodcast) throws(Failure) {
        let names = [podcast.id, podcast.title, podcast.url]
        guard !names.contains(where: { $0.lowercased() == text.lowercased() }), WebAddress(text) == nil else { return }
        let title = DisplayText.sanitised(podcast.title.isEmpty ? podcast.url : podcast.title)
        throw Failure(
            .invalidArgument,
            "“\(text)” means “\(title)” (\(podcast.id)) with \(NumberText.counted(Int(podcast.episodeCount), "episode")). Forgetting it can’t be undone: its positions, bookmarks, queue entries and files go too. Give its whole title or ID, or add --yes."
        )
    }

    /// `Removed 2 entries from Up Next and 1 entry from “evening”.`
    static func sentence(_ removed: [(queue: String, count: Int)]) -> String {
        let parts = removed.map { queue, count in
            "\(NumberText.counted(count, "entry", "entries")) from \(WireQueueState.shownName(queue))"
        }
        return "Removed \(Sentence.list(parts))."
    }

    /// How many episodes of these podcasts are downloaded.
    private static func files(of podcasts: Set<String>, _ session: Session) async -> Int {
        let downloads = await session.presentView().downloads.values
        return downloads.count { podcasts.contains($0.podcastID) && $0.state == .downloaded }
    }

    /// The entries of these podcasts, Up Next's first.
    private static func entries(
        of podcasts: Set<String>, in queues: [WireQueueState]
    ) -> [(queue: String, ids: [String])] {
        queues.sorted { FleetView.isQueue($0.name, before: $1.name) }.compactMap { queue in
            let lost = queue.entries.filter { podcasts.contains($0.episode.podcastID) }.map(\.id)
            return lost.isEmpty ? nil : (queue.name, lost)
        }
    }

    /// Returns when the queue has removed the entries of what was forgotten; removes those that are left after two seconds, as
    /// one that was away meanwhile leaves them.
    private static func removeEntries(of podcasts: Set<String>, _ session: Session) async throws(Failure) {
        let (view, isDone) = await session.follow(until: .seconds(2)) { view in
            !view.isStale(.queue) && entries(of: podcasts, in: Array(view.queues.values)).isEmpty
        }
        guard !isDone else { return }
        for (name, ids) in entries(of: podcasts, in: Array(view.queues.values)) {
            _ = try await session.queue(named: name) { $0.remove.entries = ids }
        }
    }
}

struct Refresh: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh", abstract: "Look for new episodes now.")
    @Argument(help: "Podcasts; without one, all.", completion: .podcasts) var podcasts: [String] = []
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            var ids: [String] = []
            for text in podcasts { ids.append(try await session.findPodcast(text).id) }
            let named = ids
            let what = named.isEmpty ? "all podcasts" : NumberText.counted(named.count, "podcast")
            let reply = try await context.output.whileWaiting("Refreshing \(what)") {
                try await session.feeds { $0.refresh.podcasts = named }
            }
            try FeedResults(reply.results, of: .refreshing).report(to: context.output, doing: "refreshed")
        }
    }
}

struct Podcasts: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "podcasts", abstract: "List your subscriptions.")
    @Flag(help: "Include podcasts that you unsubscribed from.") var all = false
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: nil) { session in
            let podcasts = try await session.persistence.allPodcasts(includeUnsubscribed: all)
            var table = TextTable([
                .init(heading: "podcast", flexible: true), .init(heading: "unplayed", right: true),
                .init(heading: "episodes", right: true), .init(heading: "refreshed (UTC)"), .init(heading: "id"),
                .init(heading: "", flexible: true),
            ])
            let titles = Dictionary(grouping: podcasts, by: \.title)
            for podcast in podcasts {
                let isOnlyOne = podcast.title.isEmpty || (titles[podcast.title]?.count ?? 0) < 2
                let state = podcast.subscribed ? podcast.errorMessage : "unsubscribed"
                table.add([
                    podcast.title.isEmpty ? podcast.url : podcast.title, "\(podcast.unplayedCount)",
                    "\(podcast.episodeCount)", TimeText.minute(milliseconds: podcast.lastRefresh), podcast.id,
                    // What has its title in common is told apart by its address.
                    [isOnlyOne ? "" : podcast.url, state].filter { !$0.isEmpty }.joined(separator: "  "),
                ])
            }
            try context.output.value(
                .array(podcasts.map(\.json)),
                lines: table.isEmpty
                    ? ["You have no subscriptions. Add one with `lockstep subscribe URL`."]
                    : table.lines(width: Output.terminalWidth))
        }
    }
}

struct Episodes: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "episodes", abstract: "List episodes, the newest first.")
    @Argument(help: "A podcast; without one, all.", completion: .podcasts) var podcast: String?
    @Option(parsing: .unconditional, help: "How many; 20 by default.") var limit: Int?
    @Flag(help: "All of them.") var all = false
    @Flag(help: "Only those that have not been played.") var unplayed = false
    @Flag(help: "Only downloaded ones.") var downloaded = false
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard !all || limit == nil else { throw ValidationError("--all and --limit can’t be used together.") }
        guard limit ?? 1 > 0 else { throw ValidationError("--limit must be a number above 0.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withSession(observing: downloaded ? .all : nil) { session in
            var query = WireEpisodesQuery()
            let limit = all ? nil : limit ?? 20
            if let podcast { query.podcast = try await session.findPodcast(podcast).id }
            query.unplayedOnly = unplayed
            let (episodes, total) =
                try await downloaded
                ? session.downloadedEpisodes(query, limit: limit) : session.episodes(query, limit: limit)
            try context.output.value(
                .array(episodes.map(\.json)),
                lines: episodes.isEmpty ? [none] : Self.lines(episodes, total: total))
        }
    }

    /// What there is none of, and what to do about it.
    private var none: String {
        switch (downloaded, unplayed) {
        case (true, true): "No downloaded episode is unplayed. Fetch another with `lockstep download add EPISODE`."
        case (true, false): "No episode is downloaded. Fetch one with `lockstep download add EPISODE`."
        case (false, true): "No episode is unplayed. Look for new ones with `lockstep refresh`."
        case (false, false) where podcast != nil:
            "This podcast has no episodes. Look for some with `lockstep refresh`."
        case (false, false): "No episodes. Subscribe to a podcast with `lockstep subscribe URL`."
        }
    }

    static func lines(_ episodes: [WireEpisode], total: Int) -> [String] {
        var table = TextTable([
            .init(heading: "date"), .init(heading: "episode", flexible: true),
            .init(heading: "podcast", flexible: true), .init(heading: "length", right: true),
            .init(heading: "at", right: true),
            .init(heading: "id"),
        ])
        for episode in episodes {
            let place =
                episode.state.played
                ? "played" : episode.state.position >= 1 ? ClockText.format(episode.state.position) : ""
            table.add([
                TimeText.day(milliseconds: episode.published), episode.title, episode.podcastTitle,
                ClockText.format(episode.knownDuration > 0 ? episode.knownDuration : nil), place, episode.id,
            ])
        }
        let more = total > episodes.count ? ["\(episodes.count) of \(total); `--all` shows all."] : []
        return table.lines(width: Output.terminalWidth) + more
    }
}

extension Session {
    /// The episodes of a query whose files are here, the newest first; and how many there are in all.
    fileprivate func downloadedEpisodes(
        _ query: WireEpisodesQuery, limit: Int?
    ) async throws(Failure) -> ([WireEpisode], total: Int) {
        let ids = try await view(of: [.downloads]).downloads.values.filter { $0.state == .downloaded }
            .map(\.episode).sorted()
        var found: [WireEpisode] = []
        for part in ids.parts(of: RequestSizes.episodes) {
            found += try await persistence.episodes(ids: part, brief: true)
        }
        found = found.filter { episode in
            (query.podcast.isEmpty || episode.podcastID == query.podcast)
                && !(query.unplayedOnly && episode.state.played)
        }
        found.sort { ($0.published, $0.id) > ($1.published, $1.id) }
        return (Array(found.prefix(limit ?? .max)), found.count)
    }

    /// Episodes page by page, until there are no more or `limit` is reached; and how many there are in all.
    func episodes(_ query: WireEpisodesQuery, limit: Int?) async throws(Failure) -> ([WireEpisode], total: Int) {
        var query = query
        var episodes: [WireEpisode] = []
        var total = 0
        while true {
            query.limit = UInt32(min(RequestSizes.episodes, (limit ?? .max) - episodes.count))
            let page = try await persistence.episodes(query)
            if episodes.isEmpty { total = Int(page.total) }
            episodes += page.episodes
            guard !page.next.isEmpty, page.next != query.after, episodes.count < limit ?? .max else {
                return (episodes, max(total, episodes.count))
            }
            query.after = page.next
        }
    }
}

/// An end with a status after everything has been said.
enum ExitStatusError {
    /// Some of several failed.
    static var partial: ExitCode { ExitCode(ExitStatus.tryAgain.rawValue) }
}
