import ArgumentParser
import FoundationEssentials
import LockstepClient
import PodcastModel

struct Subscribe: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "subscribe",
        abstract: "Subscribe to podcasts by the address of their feeds.",
        discussion: """
            Returns when every feed has been read. A feed that can’t be read isn’t kept, unless --keep is given. With many \
            addresses, ^C ends only the command: feeds are still fetched.
            """)
    @Flag(help: "Subscribe even if a feed can’t be read now.") var keep = false
    @Option(help: "The user name for feeds that require one; the password is prompted for or read from standard input.")
    var user: String?
    @Argument(help: "http or https addresses, or files.", completion: .file()) var feeds: [String]
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        let folder = FileManager.default.currentDirectoryPath
        // Each of several addresses has its own result, even an invalid one; an empty one couldn’t be named.
        let urls = try feeds.map { text throws(Failure) in
            do throws(Failure) { return try FeedAddress.url(text, in: folder) } catch {
                guard feeds.count > 1, !text.allSatisfy(\.isWhitespace) else { throw error }
                return text
            }
        }
        let password = try user.map { name throws(Failure) in try PasswordPrompt.read(for: name) }
        let isJob = user == nil && urls.count > Self.jobSize && !urls.contains(where: Self.hasPassword)
        try await context.withFleet(observing: isJob ? .parts([.jobs]) : .nothing) { fleet in
            let results =
                isJob
                ? try await add(urls, fleet, context)
                : try await context.output.whileWaiting("Fetching \(NumberText.counted(urls.count, "feed"))") {
                    try await fleet.feeds.subscribe(each: urls, keep: keep, user: user ?? "", password: password ?? "")
                }
            guard let results else {
                return try context.output.value(
                    .array([]),
                    lines: [
                        "The feeds were fetched; the results aren’t known any more. `lockstep podcasts` lists the podcasts."
                    ])
            }
            try FeedResults(try await withFeedsOfPages(results, fleet, context.output, password), of: .subscribing)
                .report(to: context.output)
        }
    }

    /// Subscribes to the feeds of web pages that link to one feed, in place of the pages.
    private func withFeedsOfPages(
        _ results: [FeedsClient.Result], _ fleet: Fleet, _ output: Output, _ password: String?
    ) async throws -> [FeedsClient.Result] {
        var results = results
        for (index, page) in results.enumerated() where page.kind == .failed && !page.isKept {
            guard let feeds = page.failure?.candidates, feeds.count == 1, let feed = WebAddress(feeds[0].id) else {
                continue
            }
            output.progress("\(page.url) is a web page. Its feed is \(feed.text).")
            // A password for the page isn’t sent to another server.
            let isSame = WebAddress(page.url)?.origin == feed.origin
            results[index] =
                try await output.whileWaiting("Fetching 1 feed") {
                    try await fleet.feeds.subscribe(
                        [feed.text], user: isSame ? user ?? "" : "", password: isSame ? password ?? "" : "")
                }.first ?? page
        }
        return results
    }

    /// The number of addresses above which a job fetches them: those that are fetched at the same time.
    private static let jobSize = 8

    private static func hasPassword(_ url: String) -> Bool { WebAddress(url)?.webCredentials != nil }

    /// - Returns: nil if the results aren’t known any more.
    private func add(
        _ urls: [String], _ fleet: Fleet, _ context: CommandContext
    ) async throws -> [FeedsClient.Result]? {
        var jobs: [JobID] = []
        for part in urls.parts(of: RequestSizes.episodes) {
            jobs.append(try await fleet.feeds.add(part.map { FeedsClient.Outline($0) }, keep: keep))
        }
        return try await JobFollower(fleet, context).follow(
            jobs,
            farewell: "The feeds are still fetched without this command. `lockstep podcasts` shows what has arrived."
        )
    }
}

struct Refresh: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh", abstract: "Check podcasts for new episodes now.",
        discussion: "Without podcasts, ^C ends only the command: feeds are still fetched.")
    @Argument(help: "The podcasts; all by default.", completion: .podcasts) var podcasts: [String] = []
    @OptionGroup var options: GlobalOptions

    func perform(_ context: CommandContext) async throws {
        try await context.withFleet(observing: podcasts.isEmpty ? .parts([.jobs]) : .nothing) { fleet in
            guard let results = try await podcasts.isEmpty ? all(fleet, context) : named(fleet, context.output) else {
                return try context.output.value(
                    .array([]),
                    lines: [
                        "The refresh has ended; its results aren’t known any more. `lockstep inbox` shows new episodes."
                    ])
            }
            try RefreshReport(results, try await Self.newEpisodes(results, fleet.library)).print(to: context.output)
        }
    }

    /// - Returns: nil if the results aren’t known any more.
    private func all(_ fleet: Fleet, _ context: CommandContext) async throws -> [FeedsClient.Result]? {
        guard let job = try await fleet.feeds.refreshAll() else { return [] }
        return try await JobFollower(fleet, context).follow(
            [job], farewell: "The refresh goes on without this command. `lockstep inbox` shows new episodes.")
    }

    private func named(_ fleet: Fleet, _ output: Output) async throws -> [FeedsClient.Result]? {
        let ids = try await fleet.library.findPodcasts(podcasts).map(\.id)
        return try await output.whileWaiting("Refreshing \(NumberText.counted(ids.count, "podcast"))") {
            try await fleet.feeds.refresh(each: ids)
        }
    }

    /// The new episodes of each podcast, the newest first.
    private static func newEpisodes(
        _ results: [FeedsClient.Result], _ library: LibraryClient
    ) async throws(Failure) -> [PodcastID: [Episode]] {
        var episodes: [PodcastID: [Episode]] = [:]
        for result in results where result.newEpisodes > 0 {
            guard let id = result.podcast?.id else { continue }
            let limit = min(result.newEpisodes, RefreshReport.shownEpisodes)
            let list = EpisodeList(of: id, order: .added)
            episodes[id] = try await library.episodes(in: list, limit: limit).episodes
        }
        return episodes
    }
}

/// The outcome of a refresh: the titles of new episodes, by podcast.
struct RefreshReport {
    /// The maximum number of new episodes of a podcast that are listed.
    static let shownEpisodes = 20

    private let results: [FeedsClient.Result]
    private let episodes: [PodcastID: [Episode]]

    init(_ results: [FeedsClient.Result], _ episodes: [PodcastID: [Episode]]) {
        (self.results, self.episodes) = (results, episodes)
    }

    /// A line for each new episode, in the order of the podcasts’ titles.
    var lines: [String] {
        let found = results.filter { $0.newEpisodes > 0 }.map { (name: FeedResults.name($0), result: $0) }
        return found.sorted { ($0.name.lowercased(), $0.result.url) < ($1.name.lowercased(), $1.result.url) }
            .flatMap { name, result -> [String] in
                let listed = result.podcast.flatMap { episodes[$0.id] } ?? []
                let more = result.newEpisodes - listed.count
                return listed.map { "\(name): \($0.title.isEmpty ? $0.id.text : $0.title)" }
                    + (more > 0
                        ? [
                            "\(name): \(listed.isEmpty ? "" : "… and ")\(more) \(listed.isEmpty ? "new episodes" : "more")"
                        ]
                        : [])
            }
    }

    /// `3 new episodes in 2 of 60 podcasts; 1 failed.`
    var sum: String {
        guard !results.isEmpty else { return "No change: there are no podcasts." }
        let new = results.reduce(0) { $0 + $1.newEpisodes }
        let failed = results.count { $0.kind == .failed }
        let of = results.count == 1 ? FeedResults.name(results[0]) : NumberText.counted(results.count, "podcast")
        let what =
            new == 0
            ? "Nothing new in \(of)"
            : "\(NumberText.counted(new, "new episode")) in "
                + (results.count == 1 ? of : "\(results.count { $0.newEpisodes > 0 }) of \(of)")
        return what + (failed == 0 ? "." : "; \(failed) failed.")
    }

    var json: JSONValue {
        .array(
            results.map { result in
                let listed = result.podcast.flatMap { episodes[$0.id] } ?? []
                return result.json.adding(
                    "episodes", .array(listed.map { .object(["id": .string($0.id.text), "title": .string($0.title)]) }))
            })
    }

    /// - Throws: as `FeedResults.requireSuccess`.
    func print(to output: Output) throws {
        let feeds = FeedResults(results, of: .refreshing)
        try feeds.reportFailures(to: output)
        if !output.quiet { try output.value(json, lines: lines + [sum]) }
        try feeds.requireSuccess()
    }
}
