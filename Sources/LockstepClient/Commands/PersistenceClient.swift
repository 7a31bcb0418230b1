package import BusKit
import FoundationEssentials
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// The database's questions, typed. Each throws the service's refusal, or `malformed` for an answer of another kind.
package struct PersistenceClient: Sendable {
    private let client: BusClient
    private let limit: Duration

    /// Asks through `client`, each question for `limit` at most.
    package init(_ client: BusClient, within limit: Duration = .seconds(10)) {
        self.client = client
        self.limit = limit
    }

    /// A page of podcasts in order of their titles.
    package func podcasts(_ query: WirePodcastsQuery = WirePodcastsQuery()) async throws(Failure) -> WirePodcastsPage {
        try await ask({ $0.podcasts = query }, { $0.podcasts })
    }

    /// All podcasts, page by page.
    package func allPodcasts(includeUnsubscribed: Bool = false) async throws(Failure) -> [WirePodcast] {
        var query = WirePodcastsQuery()
        query.includeUnsubscribed = includeUnsubscribed
        var podcasts: [WirePodcast] = []
        while true {
            let page = try await self.podcasts(query)
            podcasts += page.podcasts
            guard !page.next.isEmpty, page.next != query.after else { return podcasts }
            query.after = page.next
        }
    }

    /// A page of episodes, the newest first.
    package func episodes(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        try await ask({ $0.episodes = query }, { $0.episodes })
    }

    /// The episodes of these ids, at most `RequestSizes.episodes`; those that are gone are left out. `brief`: without notes
    /// and chapters.
    package func episodes(ids: [String], brief: Bool = false) async throws(Failure) -> [WireEpisode] {
        try await ask(
            {
                $0.episodesByID.ids = ids
                $0.episodesByID.brief = brief
            }, { $0.episodes }
        ).episodes
    }

    /// The one episode that an id, a prefix of one or a part of a title means.
    /// - Throws: `notFound`; `ambiguous` with `WireCandidates` as its detail.
    package func findEpisode(_ text: String, podcast: String = "") async throws(Failure) -> WireEpisode {
        let page = try await ask(
            {
                $0.findEpisode.text = text
                $0.findEpisode.podcast = podcast
            }, { $0.episodes })
        guard let episode = page.episodes.first else { throw Failure(.notFound, "No episode is named “\(text)”.") }
        return episode
    }

    /// The one podcast that an id, a prefix of one or a part of a title means.
    /// - Throws: `notFound`; `ambiguous` with `WireCandidates` as its detail.
    package func findPodcast(_ text: String) async throws(Failure) -> WirePodcast {
        let page = try await ask({ $0.findPodcast.text = text }, { $0.podcasts })
        guard let podcast = page.podcasts.first else { throw Failure(.notFound, "No podcast is named “\(text)”.") }
        return podcast
    }

    /// Makes a backup now.
    package func backup() async throws(Failure) -> WireBackupDone {
        try await ask({ $0.backup = WireBackup() }, { $0.backup })
    }

    /// Reads the whole database and says what is wrong with it; large ones want a longer limit.
    package func check() async throws(Failure) -> WireDatabaseCheck {
        try await ask({ $0.check = WireCheckDatabase() }, { $0.check })
    }

    private func ask<Result: Sendable>(
        _ fill: (inout WirePersistenceRequest) -> Void, _ read: (WirePersistenceReply) -> Result
    ) async throws(Failure) -> Result {
        var request = WirePersistenceRequest()
        fill(&request)
        let answer = try await client.ask(.persistence, request, reply: WirePersistenceReply.self, within: limit)
        guard answer.reply.result != nil else {
            throw Failure(.malformed, "The database’s answer cannot be read.")
        }
        return read(answer.reply)
    }
}
