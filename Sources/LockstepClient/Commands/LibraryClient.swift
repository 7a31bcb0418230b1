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
        try await fleet.persistence.allPodcasts(includeUnsubscribed: includesUnsubscribed).compactMap(Podcast.init)
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
            found += try await fleet.persistence.episodes(ids: part.map(\.text), brief: true)
        }
        return found.compactMap(Episode.init)
    }

    /// The episode of that ID with all that is known of it; nil: it is gone.
    ///
    /// - Parameter readsChapters: chapters of a file that nobody has read yet are read, if that can be done soon.
    public func episode(_ id: EpisodeID, readsChapters: Bool = false) async throws(Failure) -> Episode? {
        let episode = try await fleet.persistence.episodes(ids: [id.text]).first
        guard readsChapters, let episode, episode.chapters.isEmpty || episode.chaptersOfFile,
            episode.chaptersFetched == 0, !episode.chaptersURL.isEmpty
        else { return episode.flatMap(Episode.init) }
        do {
            try await fleet.feeds.fetchChapters(of: id, within: .seconds(5))
        } catch {
            // It is shown without.
            return Episode(episode)
        }
        return try await fleet.persistence.episodes(ids: [id.text]).first.flatMap(Episode.init)
    }

    /// The one episode that an ID, the beginning of one, or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func findEpisode(_ text: String) async throws(Failure) -> Episode {
        try Self.readable(Episode(try await fleet.persistence.findEpisode(text)))
    }

    /// The one podcast that an ID, the beginning of one, an address or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func findPodcast(_ text: String) async throws(Failure) -> Podcast {
        try Self.readable(Podcast(try await fleet.persistence.findPodcast(text)))
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
        /// The number of episodes in all, after the first page.
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
                let answer = try await fleet.persistence.episodes(query)
                page = answer.episodes[...]
                isLast = answer.next.isEmpty || answer.next == query.after
                query.after = answer.next
                limit = limit.map { $0 - answer.episodes.count }
                total = Swift.max(total, Int(answer.total))
            }
        }
    }
}
