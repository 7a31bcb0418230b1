public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Commands about subscriptions.
public struct FeedsClient: Sendable {
    /// What has become of one feed.
    public struct Result: Sendable, Hashable {
        /// The address that was named, or the podcast’s.
        public let url: String
        /// The podcast; nil: it couldn’t be read.
        public let podcast: Podcast?
        /// Whether the podcast was added, removed or has changed.
        public let changed: Bool
        /// How many episodes are new.
        public let newEpisodes: Int
        /// Why it failed; nil: it didn’t.
        public let failure: Failure?
        /// The documented object.
        public let json: JSONValue
    }

    let fleet: Fleet

    /// Subscribes to the feeds at these addresses, `http`, `https` or `file`; fetching them may take a minute.
    public func subscribe(_ urls: [String]) async throws(Failure) -> [Result] {
        try await ask { $0.subscribe.urls = urls }
    }

    /// Unsubscribes; with `forget` the podcasts’ episodes and positions are deleted too.
    ///
    /// - Throws: `notFound`.
    public func unsubscribe(_ podcasts: [PodcastID], forget: Bool = false) async throws(Failure) -> [Result] {
        try await ask {
            $0.unsubscribe.podcasts = podcasts.map(\.text)
            $0.unsubscribe.forget = forget
        }
    }

    /// Reads feeds anew; without any, all that are subscribed.
    ///
    /// - Throws: `notFound`.
    public func refresh(_ podcasts: [PodcastID] = []) async throws(Failure) -> [Result] {
        try await ask {
            $0.refresh = WireRefresh()
            $0.refresh.podcasts = podcasts.map(\.text)
        }
    }

    private func ask(_ fill: (inout WireFeedsRequest) -> Void) async throws(Failure) -> [Result] {
        var request = WireFeedsRequest()
        fill(&request)
        let reply = try await fleet.ask(.feeds, request, reply: WireFeedsReply.self, within: .seconds(60))
        return reply.results.map { result in
            Result(
                url: result.url, podcast: result.hasPodcast ? Podcast(result.podcast) : nil,
                changed: [.added, .updated, .removed].contains(result.kind) || result.passwordChanged,
                newEpisodes: Int(result.newEpisodes), failure: result.hasFailure ? result.failure.failure : nil,
                json: result.json)
        }
    }
}

/// Commands about downloaded files. Each is about all the episodes or none, 500 at most.
public struct DownloadsClient: Sendable {
    let fleet: Fleet

    /// Downloads episodes; those that failed are tried again.
    public func add(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await ask { $0.add.episodes = episodes.map(\.text) }
    }

    /// Pauses downloads; what has come is kept.
    public func pause(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await ask { $0.pause.episodes = episodes.map(\.text) }
    }

    /// Resumes downloads that are paused or have failed.
    public func resume(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await ask { $0.resume.episodes = episodes.map(\.text) }
    }

    /// Cancels unfinished downloads and deletes their partial files.
    public func cancel(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await ask { $0.cancel.episodes = episodes.map(\.text) }
    }

    /// Deletes downloaded files.
    public func remove(_ episodes: [EpisodeID]) async throws(Failure) -> [Answer<DownloadState>] {
        try await ask { $0.remove.episodes = episodes.map(\.text) }
    }

    private func ask(
        _ fill: (inout WireDownloadsRequest) -> Void
    ) async throws(Failure) -> [Answer<DownloadState>] {
        var request = WireDownloadsRequest()
        fill(&request)
        let reply = try await fleet.ask(.downloads, request, reply: WireDownloadsReply.self)
        return zip(reply.downloads, reply.changed).map { Answer(changed: $1, value: DownloadState($0)) }
    }
}

/// Answers to alerts.
public struct AlertsClient: Sendable {
    let fleet: Fleet

    /// Answers an alert with one of its actions.
    ///
    /// - Throws: `notFound` when the alert no longer exists; `invalidArgument` for an action that it doesn’t have.
    public func answer(_ alert: AlertState, _ action: String) async throws(Failure) {
        _ = try await answer(alert: alert.id, owner: alert.owner, action: action)
    }

    /// Answers an alert at its owner.
    package func answer(alert: String, owner: String, action: String) async throws(Failure) -> WireAlertAnswered {
        guard let service = ServiceName(owner).flatMap({ ServiceCatalog[$0] }), let request = service.request else {
            throw Failure(.notFound, "The alert \(alert) belongs to “\(owner)”, which this version doesn’t know.")
        }
        var answer = WireAnswerAlert()
        answer.alert = alert
        answer.action = action
        return try await give(answer, to: service, request)
    }

    private func give<Request: ServiceRequest>(
        _ answer: WireAnswerAlert, to service: ServiceDescription, _: Request.Type
    ) async throws(Failure) -> WireAlertAnswered {
        let request = Request.with { $0.answerAlert = answer }
        return try await fleet.ask(
            service.name, request, reply: Request.Reply.self, within: service.replyLimit
        ).alertAnswered
    }
}

/// Questions to the library.
public struct LibraryClient: Sendable {
    let fleet: Fleet

    /// All podcasts, by title.
    ///
    /// - Parameter includesUnsubscribed: also those whose episodes are kept after `unsubscribe`.
    public func podcasts(includesUnsubscribed: Bool = false) async throws(Failure) -> [Podcast] {
        try await fleet.persistence.allPodcasts(includeUnsubscribed: includesUnsubscribed).map(Podcast.init)
    }

    /// Episodes, the newest first, page by page while they are read.
    ///
    /// - Parameters:
    ///   - podcast: of this podcast only; nil: of all.
    ///   - isUnplayed: only those that don’t count as played.
    public func episodes(of podcast: PodcastID? = nil, isUnplayed: Bool = false) -> EpisodeSequence {
        var query = WireEpisodesQuery()
        query.podcast = podcast?.text ?? ""
        query.unplayedOnly = isUnplayed
        return EpisodeSequence(persistence: fleet.persistence, query: query)
    }

    /// The one episode that an ID, the beginning of one, or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func episode(_ text: String) async throws(Failure) -> Episode {
        Episode(try await fleet.persistence.findEpisode(text))
    }

    /// The one podcast that an ID, the beginning of one, an address or a part of a title means.
    ///
    /// - Throws: `notFound`; `ambiguous`, whose message lists the candidates.
    public func podcast(_ text: String) async throws(Failure) -> Podcast {
        Podcast(try await fleet.persistence.findPodcast(text))
    }
}

/// Episodes of the library, read in pages. Ends with the library’s refusal if one comes.
public struct EpisodeSequence: AsyncSequence, Sendable {
    let persistence: PersistenceClient
    let query: WireEpisodesQuery

    /// Begins at the newest episode.
    public func makeAsyncIterator() -> Iterator { Iterator(persistence: persistence, query: query) }

    /// Reads a page when the one before is used up.
    public struct Iterator: AsyncIteratorProtocol {
        let persistence: PersistenceClient
        var query: WireEpisodesQuery
        private var page: ArraySlice<WireEpisode> = []
        private var isLast = false

        init(persistence: PersistenceClient, query: WireEpisodesQuery) {
            self.persistence = persistence
            self.query = query
        }

        /// The next episode; nil: that was the last.
        public mutating func next() async throws(Failure) -> Episode? {
            while page.isEmpty, !isLast {
                let answer = try await persistence.episodes(query)
                page = answer.episodes[...]
                isLast = answer.next.isEmpty || answer.next == query.after
                query.after = answer.next
            }
            return page.popFirst().map(Episode.init)
        }
    }
}
