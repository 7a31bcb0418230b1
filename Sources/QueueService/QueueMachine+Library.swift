import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Looks up episodes in the library: those that a command names, and those in a queue.

extension QueueMachine {
    mutating func lookUp(
        _ episodes: [String], for purpose: EpisodeLookups.Purpose, _ effects: inout [Effect]
    ) {
        lookups.add(episodes, for: purpose)
        queryLibrary(&effects)
    }

    private mutating func queryLibrary(_ effects: inout [Effect]) {
        guard let episodes = lookups.nextQuery() else { return }
        effects.append(
            .ask(.episodes) {
                $0.episodesByID.ids = episodes
                $0.episodesByID.brief = true
            })
    }

    /// Looks up the given episodes that are in a queue or playlist, and updates their entries.
    mutating func refreshQueued(_ episodes: [String], _ effects: inout [Effect]) {
        guard !episodes.isEmpty else { return }
        let lists = contents
        refreshEpisodes(
            Set(episodes.filter { episode in lists.contains { $0.entry(episode: episode) != nil } }), &effects)
    }

    mutating func refreshEpisodes(_ episodes: Set<String>, _ effects: inout [Effect]) {
        for part in episodes.sorted().parts(of: RequestSizes.episodes) { lookUp(part, for: .refresh, &effects) }
    }

    mutating func episodesAnswered(
        _ result: Result<[UInt8], Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        for (purpose, result) in lookups.answered(result.persistenceReply) {
            switch (purpose, result) {
            case (.command(var context), .success(let episodes)):
                context.episodes = episodes
                context.now = now
                perform(context, &effects)
            case (.command(let context), .failure(let failure)):
                effects.append(.reply(context.command.id, .failure(failure)))
            case (.refresh, .success(let episodes)): refresh(with: episodes, &effects)
            case (.refresh, .failure(let failure)):
                effects.append(.log(.warning, "couldn’t look up episodes of the queue: \(failure)"))
            }
        }
        queryLibrary(&effects)
    }

    mutating func refresh(with episodes: [String: WireEpisodeSummary], _ effects: inout [Effect]) {
        for var named in queues.inOrder {
            let change = named.refresh(named.queue.updates(with: episodes))
            if !change.isEmpty { commit(named, change, &effects) }
        }
        for var playlist in playlists.inOrder {
            let change = playlist.refresh(playlist.queue.updates(with: episodes))
            if !change.isEmpty { commit(playlist, change, &effects) }
        }
    }
}
