public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Commands for subscriptions.
public struct FeedsClient: Sendable {
    /// The outcome of a command for one feed.
    public struct Result: Sendable, Hashable {
        /// The effect on a feed.
        public enum Kind: String, Sendable, Hashable {
            /// The podcast was added to the subscriptions.
            case added
            /// The subscription existed before the command.
            case alreadyThere
            /// The feed has new or changed episodes.
            case updated
            /// Nothing has changed.
            case unchanged
            /// The podcast was unsubscribed from or forgotten.
            case removed
            /// The feed couldn’t be read.
            case failed
            /// The feed was read, but not stored.
            case checked
            /// A value of a later version.
            case unknown
        }

        private let wire: WireFeedResult

        package init(_ wire: WireFeedResult) { self.wire = wire }

        /// The effect on the feed.
        public var kind: Kind { Kind(rawValue: wire.word) ?? .unknown }
        /// The address in the request, or the podcast’s.
        public var url: String { DisplayText.sanitised(wire.url) }
        /// The podcast; nil if the feed couldn’t be read.
        public var podcast: Podcast? { wire.hasPodcast ? Podcast(wire.podcast) : nil }
        /// Whether the podcast was added, removed or has changed.
        public var changed: Bool { [.added, .updated, .removed].contains(kind) || isPasswordChanged }
        /// The number of new episodes.
        public var newEpisodes: Int { Int(wire.newEpisodes) }
        /// Whether the feed is read with a new user and password from now on.
        public var isPasswordChanged: Bool { wire.passwordChanged }
        /// Whether a feed that couldn’t be read was kept.
        public var isKept: Bool { wire.kept }
        /// The problems of a feed that is readable nevertheless.
        public var warnings: [String] { wire.warnings.map { DisplayText.sanitised($0) } }
        /// The reason for the failure; nil if there is none.
        public var failure: Failure? { wire.hasFailure ? wire.failure.failure.sanitised : nil }
        /// The JSON object that `protocols/cli.md` documents.
        public var json: JSONValue { wire.json }
    }

    let fleet: Fleet

    /// Subscribes to the feeds at these addresses, `http`, `https` or `file`; fetching them may take a minute.
    ///
    /// - Parameters:
    ///   - keep: whether to keep feeds that can’t be read now.
    ///   - user: the user name for feeds that require one; empty if none do.
    public func subscribe(
        _ urls: [String], keep: Bool = false, user: String = "", password: String = ""
    ) async throws(Failure) -> [Result] {
        try await ask {
            $0.subscribe.urls = urls
            $0.subscribe.keep = keep
            $0.subscribe.user = user
            $0.subscribe.password = password
        }
    }

    /// The number of feeds in one command, of which all have ended when its time is over.
    private static let partSize = 32

    /// Subscribes to any number of feeds, in several commands.
    package func subscribe(
        each urls: [String], keep: Bool, user: String, password: String
    ) async throws(Failure) -> [Result] {
        var results: [Result] = []
        for part in urls.parts(of: Self.partSize) {
            results += try await subscribe(part, keep: keep, user: user, password: password)
        }
        return results
    }

    /// Refreshes any number of feeds, in several commands.
    package func refresh(each podcasts: [PodcastID]) async throws(Failure) -> [Result] {
        var results: [Result] = []
        for part in podcasts.parts(of: Self.partSize) { results += try await refresh(part) }
        return results
    }

    /// Removes episodes from the inbox.
    ///
    /// - Parameters:
    ///   - episodes: the episodes, at most `RequestSizes.episodes`; nil for all.
    ///   - unlisted: whether to remove also the episodes that the inbox doesn’t list, but would list again, because they
    ///     are played, started or in a queue.
    public func clearInbox(_ episodes: [EpisodeID]? = nil, unlisted: Bool = false) async throws(Failure) {
        _ = try await ask {
            $0.inbox.all = episodes == nil
            $0.inbox.episodes = episodes?.map(\.text) ?? []
            $0.inbox.unlisted = unlisted
        }
    }

    /// Unsubscribes from podcasts. Everything else about them is kept.
    public func unsubscribe(_ podcasts: [PodcastID]) async throws(Failure) -> [Result] {
        try await ask { $0.unsubscribe.podcasts = podcasts.map(\.text) }
    }

    /// The delay after which forgotten podcasts are deleted.
    public static let forgettingDelay = Duration.seconds(86_400)

    /// Unsubscribes from podcasts, and later deletes everything about them: episodes, positions, files, and so on.
    ///
    /// - Parameters:
    ///   - podcasts: the podcasts.
    ///   - delay: the time until the deletion, in which `undoForget` keeps them; zero deletes them at once.
    public func forget(
        _ podcasts: [PodcastID], after delay: Duration = forgettingDelay
    ) async throws(Failure) -> [Result] {
        try await ask {
            $0.unsubscribe.podcasts = podcasts.map(\.text)
            $0.unsubscribe.forget = true
            $0.unsubscribe.delay = UInt32(clamping: delay.components.seconds)
        }
    }

    /// Keeps podcasts that would be deleted later, and subscribes again to those that were subscribed to.
    public func undoForget(_ podcasts: [PodcastID]) async throws(Failure) -> [Result] {
        try await ask { $0.undoForget.podcasts = podcasts.map(\.text) }
    }

    /// Adds tags to podcasts, and removes others. Tags that differ only in case are the same.
    ///
    /// - Throws: `invalidArgument` for an invalid tag.
    public func tag(
        _ podcasts: [PodcastID], adding added: [String] = [], removing removed: [String] = []
    ) async throws(Failure) -> [Result] {
        try await ask {
            $0.setPodcast.podcasts = podcasts.map(\.text)
            $0.setPodcast.addTags = added
            $0.setPodcast.removeTags = removed
        }
    }

    /// Gives a podcast another title; an empty one restores the feed’s.
    ///
    /// - Throws: `invalidArgument` for an invalid title.
    public func rename(_ podcast: PodcastID, to title: String) async throws(Failure) -> [Result] {
        try await ask {
            $0.setPodcast.podcasts = [podcast.text]
            $0.setPodcast.title = title
        }
    }

    /// Refreshes feeds; without any, all subscriptions.
    ///
    /// - Throws: `notFound` if a podcast is unknown.
    public func refresh(_ podcasts: [PodcastID] = []) async throws(Failure) -> [Result] {
        try await ask {
            $0.refresh = WireRefresh()
            $0.refresh.podcasts = podcasts.map(\.text)
        }
    }

    /// Fetches the chapters of an episode, if its chapters file wasn’t read within the last day.
    package func fetchChapters(of episode: EpisodeID, within limit: Duration) async throws(Failure) {
        _ = try await ask(within: limit) { $0.fetchChapters.episode = episode.text }
    }

    /// Starts a job that refreshes all subscriptions, or joins the running one.
    ///
    /// - Returns: the job; nil if there are no subscriptions.
    public func refreshAll() async throws(Failure) -> JobID? {
        JobID(try await reply { $0.refreshAll = WireRefreshAll() }.job)
    }

    /// A subscription of a list of podcasts.
    public struct Outline: Sendable, Hashable {
        /// The address of the feed: `http`, `https` or `file`.
        public var url: String
        /// The title until the feed is read; empty for none.
        public var title: String
        /// The user’s own title; empty for none.
        public var ownTitle: String
        /// The tags, which an existing subscription gets, too.
        public var tags: [String]

        /// Creates an outline.
        public init(_ url: String, title: String = "", ownTitle: String = "", tags: [String] = []) {
            (self.url, self.title, self.ownTitle, self.tags) = (url, title, ownTitle, tags)
        }

        /// Creates the outline of a subscription, with its texts as they are stored.
        public init(_ podcast: Podcast) {
            let wire = podcast.wire
            self.init(
                wire.url, title: wire.feedTitle.isEmpty ? wire.title : wire.feedTitle,
                ownTitle: wire.feedTitle.isEmpty ? "" : wire.title, tags: wire.tags)
        }

        var wire: WireAddFeeds.Outline {
            .with { ($0.url, $0.title, $0.ownTitle, $0.tags) = (url, title, ownTitle, tags) }
        }
    }

    /// Stores subscriptions, and starts a job that fetches their feeds.
    ///
    /// - Parameters:
    ///   - outlines: the subscriptions, at most `RequestSizes.episodes`.
    ///   - keep: whether to keep feeds that can’t be read now.
    public func add(_ outlines: [Outline], keep: Bool) async throws(Failure) -> JobID {
        let reply = try await reply {
            $0.addFeeds.outlines = outlines.map(\.wire)
            $0.addFeeds.dropFailing = !keep
        }
        guard let job = JobID(reply.job) else {
            throw Failure(.malformed, "Couldn’t read the feeds service’s answer.")
        }
        return job
    }

    /// The results of a job so far, one for each feed, in order.
    ///
    /// - Throws: `notFound` if the job ended more than a minute ago.
    public func results(of job: JobID) async throws(Failure) -> [Result] {
        var results: [Result] = []
        var after: UInt32 = 0
        while true {
            let from = after
            let page = try await reply(within: .seconds(10)) {
                $0.jobResults.job = job.text
                $0.jobResults.after = from
            }
            results += page.results.map(Result.init)
            guard page.next > after else { return results }
            after = page.next
        }
    }

    /// Whether the service knows a job, which it does until a minute after its end.
    package func knows(_ job: JobID) async throws(Failure) -> Bool {
        do throws(Failure) {
            _ = try await reply(within: .seconds(10)) { ($0.jobResults.job, $0.jobResults.after) = (job.text, .max) }
            return true
        } catch {
            guard error.known == .notFound else { throw error }
            return false
        }
    }

    /// Reads a podcast from another address, if a feed is there; its episodes and their states stay.
    public func changeAddress(
        of podcast: PodcastID, to url: String, user: String = "", password: String = ""
    ) async throws(Failure) -> [Result] {
        try await ask {
            $0.changeAddress.podcast = podcast.text
            $0.changeAddress.url = url
            $0.changeAddress.user = user
            $0.changeAddress.password = password
        }
    }

    private func ask(
        within limit: Duration = .seconds(60), _ fill: (inout WireFeedsRequest) -> Void
    ) async throws(Failure) -> [Result] {
        try await reply(within: limit, fill).results.map(Result.init)
    }

    private func reply(
        within limit: Duration = .seconds(60), _ fill: (inout WireFeedsRequest) -> Void
    ) async throws(Failure) -> WireFeedsReply {
        var request = WireFeedsRequest()
        fill(&request)
        return try await fleet.ask(.feeds, request, reply: WireFeedsReply.self, within: limit)
    }
}
