import ArgumentParser
import BusKit
import LockstepClient
import PodcastModel
import WireMessages

struct QueueAdd: LockstepCommand {
    static let configuration = CommandConfiguration(
        commandName: "add", abstract: "Add episodes at the end, or after the one that is playing.",
        usage: """
            lockstep queue add <episodes> ... [--next] [--queue <queue>]
            lockstep queue add --podcast <podcast> [--unplayed] [--next] [--queue <queue>]
            """)
    @Flag(help: "After the current entry instead of at the end.") var next = false
    @Option(help: "All episodes of this podcast, the oldest first.", completion: .podcasts) var podcast: String?
    @Flag(help: "With --podcast: only those that have not been played.") var unplayed = false
    @Argument(help: "IDs, beginnings of IDs, or parts of titles.", completion: .episodes) var episodes: [String] = []
    @OptionGroup var queue: QueueOption
    @OptionGroup var options: GlobalOptions

    func validate() throws {
        guard episodes.isEmpty != (podcast == nil) else {
            throw ValidationError("Name episodes, or a podcast with --podcast.")
        }
        guard !unplayed || podcast != nil else { throw ValidationError("--unplayed needs --podcast.") }
    }

    func perform(_ context: CommandContext) async throws {
        try await context.withSession { session in
            let found = try await wanted(session)
            guard !found.isEmpty else {
                var none = WireQueueReply()
                none.revision = try await session.view(of: [.queue]).queue(queue.known).revision
                return try context.output.change(
                    none.json, "No change: this podcast has no \(unplayed ? "unplayed episode" : "episode").")
            }
            let reply = try await session.queue(named: queue.known) {
                $0.add.episodes = found.map(\.id)
                $0.add.next = next
            }
            try context.output.change(reply.json, Self.sentence(reply, found, to: queue.known))
        }
    }

    private func wanted(_ session: Session) async throws -> [WireEpisode] {
        guard let podcast else {
            return try await session.findEpisodes(episodes)
        }
        var query = WireEpisodesQuery()
        query.podcast = try await session.findPodcast(podcast).id
        query.unplayedOnly = unplayed
        return try await session.episodes(query, limit: nil).0.reversed()
    }

    static func sentence(_ reply: WireQueueReply, _ found: [WireEpisode], to queue: String) -> String {
        let titles = Dictionary(found.map { ($0.id, $0.title) }) { first, _ in first }
        var parts: [String] = []
        if !reply.entries.isEmpty {
            let place = queue == FleetView.usualQueue ? "" : " to \(WireQueueState.shownName(queue))"
            let added =
                reply.count > reply.entries.count
                ? "\(reply.count) episodes" : names(reply.entries.map(\.episode.title))
            parts.append("Added \(added)\(place)")
        }
        if !reply.alreadyThere.isEmpty {
            let names = names(reply.alreadyThere.map { titles[$0] ?? $0 })
            let already = "already in \(WireQueueState.shownName(queue)): \(names)"
            parts.append(parts.isEmpty ? "No change: \(already)" : already)
        }
        return Sentence.stopped(parts.joined(separator: "; "))
    }

    /// Up to three titles, else how many there are.
    static func names(_ titles: [String], _ what: String = "episodes") -> String {
        titles.count > 3
            ? "\(titles.count) \(what)" : titles.map { "“\(DisplayText.sanitised($0))”" }.joined(separator: ", ")
    }
}
