package import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Sends queries to the database.
package struct PersistenceClient: Sendable {
    private let client: BusClient
    private let limit: Duration

    /// Creates a client that sends through `client`, with a timeout of `limit` for each query.
    package init(_ client: BusClient, within limit: Duration = .seconds(10)) {
        self.client = client
        self.limit = limit
    }

    /// Returns a page of episodes, the newest first.
    package func episodes(_ query: WireEpisodesQuery) async throws(Failure) -> WireEpisodesPage {
        try await ask({ $0.episodes = query }, { $0.episodes })
    }

    /// Returns the episodes with these IDs; missing ones are omitted.
    package func episodes(ids: [String]) async throws(Failure) -> [WireEpisode] {
        try await ask({ $0.episodesByID.ids = ids }, { $0.episodes }).episodes
    }

    /// Creates a backup.
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
