import BusKit
public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Questions to the library.
public struct LibraryClient: Sendable {
    let fleet: Fleet

    /// All podcasts, by title.
    ///
    /// - Parameter includesUnsubscribed: also those whose episodes are kept after `unsubscribe`.
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

    /// Episodes, the newest first, page by page while they are read.
    ///
    /// - Parameters:
    ///   - podcast: of this podcast only; nil: of all.
    ///   - isUnplayed: only those that don’t count as played.
    ///   - isDownloaded: only those whose file is downloaded.
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

    /// The first episodes of `episodes`, and how many there are in all.
    ///
    /// - Parameter limit: the maximum number of episodes; nil: all.
    public func episodes(
        of podcast: PodcastID? = nil, isUnplayed: Bool = false, isDownloaded: Bool = false, limit: Int?
    ) async throws(Failure) -> (episodes: [Episode], total: Int) {
        var pages = episodes(of: podcast, isUnplayed: isUnplayed, isDownloaded: isDownloaded).makeAsyncIterator()
        pages.limit = limit
        var found: [Episode] = []
        while found.count < limit ?? .max, let episode = try await pages.next() { found.append(episode) }
        return (found, max(pages.total, found.count))
    }

    /// The episodes of these IDs, without notes and chapters; those that are gone are left out.
    public func episodes(_ ids: [EpisodeID]) async throws(Failure) -> [Episode] {
        var found: [WireEpisode] = []
        for part in ids.parts(of: RequestSizes.episodes) {
            found += try await wires(part, isBrief: true)
        }
        return found.compactMap(Episode.init)
    }

    /// The episode of that ID with all that is known of it; nil: it is gone.
    ///
    /// - Parameter readsChapters: chapters of a file that nobody has read yet are read, if that can be done soon.
    public func episode(_ id: EpisodeID, readsChapters: Bool = false) async throws(Failure) -> Episode? {
        let episode = try await wires([id]).first
        guard readsChapters, let episode, episode.chapters.isEmpty || episode.chaptersOfFile,
            episode.chaptersFetched == 0, !episode.chaptersURL.isEmpty
        else { return episode.flatMap(Episode.init) }
        do {
            try await fleet.feeds.fetchChapters(of: id, within: .seconds(5))
        } catch {
            // It is shown without.
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

    /// The one episode that an ID, the beginning of one, or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func findEpisode(_ text: String) async throws(Failure) -> Episode {
        try Self.readable(try await ask({ $0.findEpisode.text = text }, { $0.episodes.episodes.first.flatMap(Episode.init) }))
    }

    /// The one podcast that an ID, the beginning of one, an address or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func findPodcast(_ text: String) async throws(Failure) -> Podcast {
        try Self.readable(try await ask({ $0.findPodcast.text = text }, { $0.podcasts.podcasts.first.flatMap(Podcast.init) }))
    }

    // MARK: - The database

    /// A backup of the database that was made.
    public struct Backup: Sendable, Hashable {
        /// The file’s path.
        public let path: String
        /// Its length in bytes.
        public let bytes: UInt64
    }

    /// The result of a check of the whole database.
    public struct DatabaseCheck: Sendable, Hashable {
        /// The damage that was found; empty: none.
        public let damage: String
        /// Its length in bytes.
        public let bytes: UInt64
        /// The version of the library that reads it.
        public let sqliteVersion: String
    }

    /// Backs up the database now.
    public func backUp() async throws(Failure) -> Backup {
        let done = try await ask({ $0.backup = WireBackup() }, { $0.backup })
        return Backup(path: DisplayText.sanitised(done.path), bytes: done.bytes)
    }

    /// Reads the whole database and checks it, which may take a minute.
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

/// Episodes of the library, read in pages. Ends with the library’s refusal if one comes.
public struct EpisodeSequence: AsyncSequence, Sendable {
    let fleet: Fleet
    let query: WireEpisodesQuery

    /// Begins at the newest episode.
    public func makeAsyncIterator() -> Iterator { Iterator(fleet: fleet, query: query) }

    /// Reads a page when the one before is used up.
    public struct Iterator: AsyncIteratorProtocol {
        private let fleet: Fleet
        private var query: WireEpisodesQuery
        private var page: ArraySlice<WireEpisode> = []
        private var isLast = false
        /// The maximum number of episodes that are still read; nil: all.
        var limit: Int?
        private(set) var total = 0

        init(fleet: Fleet, query: WireEpisodesQuery) {
            (self.fleet, self.query) = (fleet, query)
        }

        /// The next episode; nil: that was the last.
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
