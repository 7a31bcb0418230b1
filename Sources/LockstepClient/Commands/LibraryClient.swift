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
        var query = WirePodcastsQuery.with { $0.includeUnsubscribed = includesUnsubscribed }
        var podcasts: [Podcast] = []
        while true {
            let page = try await ask({ $0.podcasts = query }, { $0.podcasts })
            podcasts += page.podcasts.compactMap(Podcast.init)
            guard !page.next.isEmpty, page.next != query.after else { return podcasts }
            query.after = page.next
        }
    }

    /// Episodes, the newest first, read in pages.
    ///
    /// - Parameters:
    ///   - podcast: the podcast whose episodes are read; nil for all podcasts.
    ///   - isUnplayed: whether to skip episodes that count as played.
    ///   - isDownloaded: whether to skip episodes without a downloaded file.
    public func episodes(
        of podcast: PodcastID? = nil, isUnplayed: Bool = false, isDownloaded: Bool = false
    ) -> EpisodeSequence {
        EpisodeSequence(
            fleet: fleet,
            query: .with {
                $0.podcast = podcast?.text ?? ""
                $0.unplayedOnly = isUnplayed
                $0.downloadedOnly = isDownloaded
            })
    }

    /// The first episodes of `episodes`, and their total number.
    ///
    /// - Parameter limit: the maximum number of episodes; nil for all.
    public func episodes(
        of podcast: PodcastID? = nil, isUnplayed: Bool = false, isDownloaded: Bool = false, limit: Int?
    ) async throws(Failure) -> (episodes: [Episode], total: Int) {
        var pages = episodes(of: podcast, isUnplayed: isUnplayed, isDownloaded: isDownloaded).makeAsyncIterator()
        pages.limit = limit
        var found: [Episode] = []
        while found.count < limit ?? .max, let episode = try await pages.next() { found.append(episode) }
        return (found, max(pages.total, found.count))
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
        let page = try await ask(
            {
                $0.episodesByID.ids = ids.map(\.text)
                $0.episodesByID.brief = isBrief
            }, { $0.episodes })
        return page.episodes
    }

    fileprivate func page(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        try await ask({ $0.episodes = query }, { $0.episodes })
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
        let done = try await ask({ $0.backup = WireBackup() }, { $0.backup })
        return Backup(path: DisplayText.sanitised(done.path), bytes: done.bytes)
    }

    /// Checks the whole database, which may take a minute.
    public func checkDatabase() async throws(Failure) -> DatabaseCheck {
        let check = try await ask(within: .seconds(60), { $0.check = WireCheckDatabase() }, { $0.check })
        return DatabaseCheck(
            damage: DisplayText.sanitised(check.damage), bytes: check.bytes,
            sqliteVersion: DisplayText.sanitised(check.sqliteVersion))
    }

    private func ask<Result>(
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

/// Episodes of the library, read in pages. The iterator throws the library’s error.
public struct EpisodeSequence: AsyncSequence, Sendable {
    let fleet: Fleet
    let query: WireEpisodesQuery

    /// Creates an iterator that starts at the newest episode.
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
                let answer = try await fleet.library.page(query)
                page = answer.episodes[...]
                isLast = answer.next.isEmpty || answer.next == query.after
                query.after = answer.next
                limit = limit.map { $0 - answer.episodes.count }
                total = Swift.max(total, Int(answer.total))
            }
        }
    }
}
