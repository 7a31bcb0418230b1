package import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Questions to the database, as messages.
package struct PersistenceClient: Sendable {
    private let client: BusClient
    private let limit: Duration

    /// Asks through `client`, each question for `limit` at most.
    package init(_ client: BusClient, within limit: Duration = .seconds(10)) {
        self.client = client
        self.limit = limit
    }

    /// A page of episodes, the newest first.
    package func episodes(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        try await ask({ $0.episodes = query }, { $0.episodes })
    }

    /// The episodes of these IDs; those that are gone are left out.
    package func episodes(ids: [String]) async throws(Failure) -> [WireEpisode] {
        try await ask({ $0.episodesByID.ids = ids }, { $0.episodes }).episodes
    }

    /// Makes a backup now.
    package func backup() async throws(Failure) -> WireBackupDone {
        try await ask({ $0.backup = WireBackup() }, { $0.backup })
    }

    private func ask<Result: Sendable>(
        _ fill: (inout WirePersistenceRequest) -> Void, _ read: (WirePersistenceReply) -> Result
    ) async throws(Failure) -> Result {
        var request = WirePersistenceRequest()
        fill(&request)
        let answer = try await client.ask(.persistence, request, reply: WirePersistenceReply.self, within: limit)
        guard answer.reply.result != nil else {
            throw Failure(.malformed, "Couldn’t read the database’s answer.")
        }
        return read(answer.reply)
    }
}
