import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Lookups of episodes in the library: of those that a command names, and of those that are in a queue.

extension QueueMachine {
    mutating func lookUp(
        _ episodes: [String], for purpose: EpisodeLookups.Purpose, _ effects: inout [Effect]
    ) {
        lookups.add(episodes, for: purpose)
        askLibrary(&effects)
    }

    private mutating func askLibrary(_ effects: inout [Effect]) {
        guard let episodes = lookups.nextQuestion() else { return }
        effects.append(
            .ask(.episodes) {
                $0.episodesByID.ids = episodes
                $0.episodesByID.brief = true
            })
    }

    /// Looks up those of these episodes that are in a queue, and updates their entries.
    mutating func refreshQueued(_ episodes: [String], _ effects: inout [Effect]) {
        guard !episodes.isEmpty else { return }
        let queued = Set(queues.values.flatMap { $0.queue.entries.map(\.episode) })
        refreshEpisodes(queued.intersection(episodes), &effects)
    }

    /// Looks up these episodes, and updates their entries.
    mutating func refreshEpisodes(_ episodes: Set<String>, _ effects: inout [Effect]) {
        for part in episodes.sorted().parts(of: RequestSizes.episodes) { lookUp(part, for: .refresh, &effects) }
    }

    mutating func episodesAnswered(
        _ result: Result<[UInt8], Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        switch lookups.answered(result.persistenceReply) {
        case .found(let lookups):
            for (purpose, episodes) in lookups {
                switch purpose {
                case .command(var context):
                    context.episodes = episodes
                    context.now = now
                    perform(context, &effects)
                case .refresh: refresh(with: episodes, &effects)
                }
            }
        case .failed(let purposes, let failure):
            for purpose in purposes {
                switch purpose {
                case .command(let context): effects.append(.reply(context.command.id, .failure(failure)))
                case .refresh:
                    effects.append(.log(.warning, "couldn’t look up episodes of the queue: \(failure)"))
                }
            }
        }
        askLibrary(&effects)
    }

    /// Updates the entries of these episodes.
    mutating func refresh(with episodes: [String: WireEpisodeSummary], _ effects: inout [Effect]) {
        for var named in queues.inOrder {
            let steps = named.queue.updates(with: episodes)
            guard !steps.isEmpty else { continue }
            let change = named.refresh(steps)
            commit(named, change, &effects)
        }
    }
}
