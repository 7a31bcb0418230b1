import BusKit
public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Queries to the library.
public struct LibraryClient: Sendable {
    let fleet: Fleet

    /// All podcasts, by title.
    ///
    /// - Parameter includesUnsubscribed: whether to include podcasts whose episodes are kept after `unsubscribe`.
    public func podcasts(includesUnsubscribed: Bool = false) async throws(Failure) -> [Podcast] {
        var podcasts: [Podcast] = []
        var cursor = ""
        repeat {
            let page = try await podcastPage(after: cursor, includesUnsubscribed: includesUnsubscribed)
            podcasts += page.podcasts
            cursor = page.next
        } while !cursor.isEmpty
        return podcasts
    }

    /// A page of the podcasts, by title, and the cursor of the page that follows.
    ///
    /// - Parameter cursor: the cursor of the page; empty for the first one.
    package func podcastPage(
        after cursor: String, includesUnsubscribed: Bool = false
    ) async throws(Failure) -> (podcasts: [Podcast], next: String) {
        let query = WirePodcastsQuery.with { ($0.includeUnsubscribed, $0.after) = (includesUnsubscribed, cursor) }
        let page = try await ask({ $0.podcasts = query }, { $0.podcasts })
        return (page.podcasts.compactMap(Podcast.init), page.next == cursor ? "" : page.next)
    }

    /// The episodes of a list, read in pages.
    public func episodes(in list: EpisodeList = EpisodeList()) -> EpisodeSequence {
        EpisodeSequence(fleet: fleet, query: list.query)
    }

    /// A page of a list, and the cursor of the page that follows.
    ///
    /// - Parameters:
    ///   - cursor: the cursor of the page; empty for the first one.
    ///   - limit: the maximum number of episodes, at most 500.
    ///   - withTotals: whether the page has the number of all episodes.
    public func page(
        of list: EpisodeList, after cursor: String = "", limit: Int, withTotals: Bool = false
    ) async throws(Failure) -> EpisodePage {
        var query = list.query
        (query.after, query.limit, query.withTotals) = (cursor, UInt32(clamping: limit), withTotals)
        let answer = try await checkedPage(query)
        return EpisodePage(
            episodes: answer.episodes.compactMap(Episode.init), next: answer.next == cursor ? "" : answer.next,
            total: withTotals ? Int(answer.total) : nil)
    }

    /// The first episodes of a list, and its totals.
    ///
    /// - Parameter limit: the maximum number of episodes; nil for all.
    public func episodes(in list: EpisodeList = EpisodeList(), limit: Int?) async throws(Failure) -> EpisodeListing {
        var query = list.query
        // The totals of a whole list are those of its episodes.
        query.withTotals = limit != nil
        var pages = EpisodeSequence.Iterator(fleet: fleet, query: query)
        pages.limit = limit
        var listing = EpisodeListing()
        while listing.episodes.count < limit ?? .max, let episode = try await pages.next() {
            listing.episodes.append(episode)
        }
        listing.total = max(pages.total, listing.episodes.count)
        (listing.length, listing.remaining) = (pages.length, pages.remaining)
        if limit == nil {
            for episode in listing.episodes {
                listing.length += episode.duration ?? 0
                listing.remaining += episode.remaining ?? 0
            }
        }
        return listing
    }

    /// The episodes with these IDs, without notes and chapters; missing ones are omitted.
    public func episodes(_ ids: [EpisodeID]) async throws(Failure) -> [Episode] {
        var found: [WireEpisode] = []
        for part in ids.parts(of: RequestSizes.episodes) {
            found += try await wires(part, isBrief: true)
        }
        return found.compactMap(Episode.init)
    }

    /// The episode with this ID and all its details; nil if it doesn’t exist.
    ///
    /// - Parameter readsChapters: whether to fetch chapters that weren’t read yet, within a short limit.
    public func episode(_ id: EpisodeID, readsChapters: Bool = false) async throws(Failure) -> Episode? {
        let episode = try await wires([id]).first
        guard readsChapters, let episode, episode.chapters.isEmpty || episode.chaptersOfFile,
            episode.chaptersFetched == 0, !episode.chaptersURL.isEmpty
        else { return episode.flatMap(Episode.init) }
        do {
            try await fleet.feeds.fetchChapters(of: id, within: .seconds(5))
        } catch {
            // The episode is shown without them.
            return Episode(episode)
        }
        return try await wires([id]).first.flatMap(Episode.init)
    }

    private func wires(
        _ ids: some Sequence<EpisodeID>, isBrief: Bool = false
    ) async throws(Failure) -> [WireEpisode] {
        var rest = ids.map(\.text)
        var found: [WireEpisode] = []
        while !rest.isEmpty {
            let page = try await ask(
                {
                    $0.episodesByID.ids = rest
                    $0.episodesByID.brief = isBrief
                }, { $0.episodes })
            found += page.episodes
            rest.removeFirst(page.answered == 0 ? rest.count : min(Int(page.answered), rest.count))
        }
        return found
    }

    func page(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        try await ask({ $0.episodes = query }, { $0.episodes })
    }

    /// - Throws: `unknownCommand` if the service ignores rules and orders.
    func checkedPage(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        let answer = try await page(query)
        guard answer.ruleApplied || query.rule.isEmpty && query.order == .newest else {
            throw Failure(
                .unknownCommand,
                "The database service is of an earlier version, without rules and orders. Restart the fleet.")
        }
        return answer
    }

    /// The only episode that matches an ID, the beginning of one, or a part of a title.
    ///
    /// - Throws: `notFound`; `ambiguous`, with the candidates in its message.
    public func findEpisode(_ text: String) async throws(Failure) -> Episode {
        try Self.readable(
            try await ask({ $0.findEpisode.text = text }, { $0.episodes.episodes.first.flatMap(Episode.init) }))
    }

    /// The only podcast that matches an ID, the beginning of one, an address or a part of a title.
    ///
    /// - Throws: `notFound`; `ambiguous`, with the candidates in its message.
    public func findPodcast(_ text: String) async throws(Failure) -> Podcast {
        try Self.readable(
            try await ask({ $0.findPodcast.text = text }, { $0.podcasts.podcasts.first.flatMap(Podcast.init) }))
    }

    // MARK: - The database

    /// A completed backup of the database.
    public struct Backup: Sendable, Hashable {
        /// The file’s path.
        public let path: String
        /// Its length in bytes.
        public let bytes: UInt64
    }

    /// The result of a check of the whole database.
    public struct DatabaseCheck: Sendable, Hashable {
        /// The damage that was found; empty if there is none.
        public let damage: String
        /// Its length in bytes.
        public let bytes: UInt64
        /// The version of SQLite that reads the database.
        public let sqliteVersion: String
    }

    /// Backs up the database now.
    public func backUp() async throws(Failure) -> Backup {
        // A large library takes minutes on a slow disk, and another backup may be in progress.
        let done = try await ask(within: .seconds(1_800), { $0.backup = WireBackup() }, { $0.backup })
        return Backup(path: DisplayText.sanitised(done.path), bytes: done.bytes)
    }

    /// Checks the whole database, which may take a minute.
    public func checkDatabase() async throws(Failure) -> DatabaseCheck {
        let check = try await ask(within: .seconds(60), { $0.check = WireCheckDatabase() }, { $0.check })
        return DatabaseCheck(
            damage: DisplayText.sanitised(check.damage), bytes: check.bytes,
            sqliteVersion: DisplayText.sanitised(check.sqliteVersion))
    }

    func ask<Result>(
        within limit: Duration = .seconds(10), _ fill: (inout WirePersistenceRequest) -> Void,
        _ read: (WirePersistenceReply) -> Result
    ) async throws(Failure) -> Result {
        var request = WirePersistenceRequest()
        fill(&request)
        let reply: WirePersistenceReply
        do throws(Failure) {
            reply = try await fleet.client.ask(
                .persistence, request, reply: WirePersistenceReply.self, within: limit
            ).reply
        } catch {
            throw error.sanitised
        }
        return try Self.readable(reply.result == nil ? nil : read(reply))
    }

    private static func readable<Value>(_ value: Value?) throws(Failure) -> Value {
        guard let value else { throw Failure(.malformed, "Couldn’t read the database’s answer.") }
        return value
    }
}

/// The order of a list of episodes.
public enum EpisodeOrder: String, Sendable, Hashable, CaseIterable {
    /// By publication date; unknown dates are oldest.
    case newest, oldest
    /// By length; unknown lengths last.
    case shortest, longest
    /// By title, regardless of case.
    case title
    /// The episodes that were played back, the last one first.
    case heard
    /// The episode that was last found in a feed first.
    case added

    init?(_ wire: WireEpisodeOrder) {
        guard let order = Self.allCases.first(where: { $0.wire == wire }) else { return nil }
        self = order
    }

    var wire: WireEpisodeOrder {
        switch self {
        case .newest: .newest
        case .oldest: .oldest
        case .shortest: .shortest
        case .longest: .longest
        case .title: .title
        case .heard: .heard
        case .added: .added
        }
    }
}

/// A list of episodes: the conditions that they meet, and their order.
public struct EpisodeList: Sendable, Hashable {
    /// The podcast; nil for all podcasts.
    public var podcast: PodcastID?
    /// The rule that the episodes meet; nil for none.
    public var rule: EpisodeRule?
    /// The order of the episodes.
    public var order: EpisodeOrder
    /// Whether to skip episodes that count as played.
    public var isUnplayed: Bool
    /// Whether to skip episodes without a downloaded file.
    public var isDownloaded: Bool

    /// Creates a list; by default all episodes, the newest first.
    public init(
        of podcast: PodcastID? = nil, matching rule: EpisodeRule? = nil, order: EpisodeOrder = .newest,
        isUnplayed: Bool = false, isDownloaded: Bool = false
    ) {
        (self.podcast, self.rule, self.order) = (podcast, rule, order)
        (self.isUnplayed, self.isDownloaded) = (isUnplayed, isDownloaded)
    }

    var query: WireEpisodesQuery {
        .with {
            $0.podcast = podcast?.text ?? ""
            $0.rule = rule?.description ?? ""
            $0.order = order.wire
            $0.unplayedOnly = isUnplayed
            $0.downloadedOnly = isDownloaded
        }
    }
}

/// A page of a list of episodes.
public struct EpisodePage: Sendable {
    /// The episodes, in order.
    public let episodes: [Episode]
    /// The cursor of the following page; empty after the last one.
    public let next: String
    /// The number of episodes in the whole list; nil if it wasn’t requested.
    public let total: Int?
}

/// The first episodes of a list, with the totals of the whole list.
public struct EpisodeListing: Sendable {
    /// The episodes, in order.
    public internal(set) var episodes: [Episode] = []
    /// The number of episodes in the whole list.
    public internal(set) var total = 0
    /// Their length in seconds; unknown lengths count as 0.
    public internal(set) var length = 0.0
    /// Their length after the positions, in seconds; played episodes count as 0.
    public internal(set) var remaining = 0.0
}

/// Episodes of the library, read in pages. The iterator throws the library’s error.
public struct EpisodeSequence: AsyncSequence, Sendable {
    let fleet: Fleet
    let query: WireEpisodesQuery

    /// Creates an iterator that starts at the first episode.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, query: query) }

    /// Requests the next page when the previous one is consumed.
    public struct Iterator: AsyncIteratorProtocol {
        private let fleet: Fleet
        private var query: WireEpisodesQuery
        private var page: ArraySlice<WireEpisode> = []
        private var isLast = false
        /// The maximum number of remaining episodes; nil for all.
        var limit: Int?
        private(set) var total = 0
        private(set) var (length, remaining) = (0.0, 0.0)

        init(fleet: Fleet, query: WireEpisodesQuery) {
            (self.fleet, self.query) = (fleet, query)
        }

        /// Returns the next episode; nil after the last.
        public mutating func next() async throws(Failure) -> Episode? {
            while true {
                if let wire = page.popFirst() {
                    if let episode = Episode(wire) { return episode }
                    continue
                }
                guard !isLast, limit ?? 1 > 0 else { return nil }
                query.limit = UInt32(Swift.min(RequestSizes.episodes, limit ?? .max))
                let answer = try await fleet.library.checkedPage(query)
                page = answer.episodes[...]
                isLast = answer.next.isEmpty || answer.next == query.after
                query.after = answer.next
                limit = limit.map { $0 - answer.episodes.count }
                total = Swift.max(total, Int(answer.total))
                (length, remaining) = (Swift.max(length, answer.seconds), Swift.max(remaining, answer.secondsLeft))
            }
        }
    }
}
