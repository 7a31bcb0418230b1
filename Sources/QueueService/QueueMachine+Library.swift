import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What the library says of episodes: of those that a command names, and of those that stand in a queue.

extension QueueMachine {
    mutating func lookUp(_ episodes: [String], for purpose: LookupPurpose) -> [Effect] {
        lookups.add(episodes, for: purpose)
        return askLibrary()
    }

    private mutating func askLibrary() -> [Effect] {
        let call = nextCall("episodes")
        return lookups.ask(as: call).map { [.call($0)] } ?? []
    }

    /// Brings the entries of those of these episodes up to date that stand in a queue.
    mutating func refreshQueued(_ episodes: [String]) -> [Effect] {
        guard !episodes.isEmpty else { return [] }
        let queued = Set(queues.current.values.flatMap { $0.queue.entries.map(\.episode) })
        return refreshEpisodes(queued.intersection(episodes))
    }

    /// Brings the entries of these episodes up to date.
    mutating func refreshEpisodes(_ episodes: Set<String>) -> [Effect] {
        episodes.sorted().parts(of: RequestSizes.episodes).flatMap { lookUp($0, for: .refresh) }
    }

    mutating func handle(answer result: Result<[UInt8], Failure>, to call: CallID, now: Moment) -> [Effect] {
        if let asked = commandsOfPlayer.removeValue(forKey: call) { return playerAnswered(result, asked, now: now) }
        if loads.isPrepared(call) { return [] }
        if let answer = autoEnqueue.answered(result, to: call) { return podcastChecked(answer, now: now) }
        if let (load, answer) = loads.answered(result, to: call) { return loadAnswered(load, answer, now: now) }
        guard let outcome = lookups.answered(result, to: call) else { return [] }
        var effects: [Effect] = []
        switch outcome {
        case .found(let lookups):
            for (purpose, episodes) in lookups {
                switch purpose {
                case .command(let command, let request):
                    effects += perform(request, of: command, knowing: episodes, now: now)
                case .refresh: effects += refresh(with: episodes)
                }
            }
        case .failed(let purposes, let failure):
            for purpose in purposes {
                switch purpose {
                case .command(let command, _): effects.append(.reply(command.id, .failure(failure)))
                case .refresh:
                    effects.append(.log(.warning, "episodes of the queue could not be looked up: \(failure)"))
                }
            }
        }
        return effects + askLibrary()
    }

    /// Brings entries up to date with what the library says of their episodes.
    mutating func refresh(with episodes: [String: WireEpisodeSummary]) -> [Effect] {
        var effects: [Effect] = []
        for name in queues.current.keys.sorted() {
            let steps = named(name).queue.updates(with: episodes)
            guard !steps.isEmpty else { continue }
            var named = named(name)
            let change = named.refresh(steps)
            effects += commit(named, change)
        }
        return effects
    }
}
