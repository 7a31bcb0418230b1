import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What the library says of episodes: of those that a command names, and of those that stand in a queue.

extension QueueMachine {
    /// A name for a call that no other has.
    mutating func nextCall(_ kind: String) -> CallID {
        callCount += 1
        return CallID("\(kind)/\(callCount)")
    }

    mutating func lookUp(_ episodes: [String], for purpose: Lookup) -> [Effect] {
        lookups.append(PendingLookup(episodes: episodes, purpose: purpose))
        return askLibrary()
    }

    private mutating func askLibrary() -> [Effect] {
        guard lookingUp == nil, !lookups.isEmpty else { return [] }
        var ids: [String] = []
        var count = 0
        for index in lookups.indices {
            let lookup = lookups[index]
            guard count == 0 || ids.count + lookup.episodes.count <= RequestSizes.episodes else { break }
            let part = lookup.episodes[lookup.asked...].prefix(RequestSizes.episodes)
            ids += part
            lookups[index].asked += part.count
            count += 1
            // The rest of a long one comes before the others.
            if lookups[index].asked < lookup.episodes.count { break }
        }
        let id = nextCall("episodes")
        lookingUp = (id, count)
        var request = WirePersistenceRequest()
        request.episodesByID.ids = ids
        request.episodesByID.brief = true
        return [.call(Call(id: id, to: .persistence, payload: request.wireBytes))]
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
        if let command = resuming.removeValue(forKey: call) {
            let answer = result.map { bytes in
                var reply = reply(named(playingQueue))
                reply.changed = (try? WirePlaybackReply(wireBytes: bytes))?.changed ?? false
                return reply.wireBytes
            }
            return [.reply(command.id, answer)]
        }
        if call == preparing {
            // Preparing only saves time: what did not come about is not repeated.
            preparing = nil
            return []
        }
        if call == checking { return podcastChecked(result, now: now) }
        guard let lookingUp, lookingUp.call == call else { return loadAnswered(result, call: call, now: now) }
        self.lookingUp = nil
        let asked = lookups.prefix(lookingUp.count)
        lookups.removeFirst(lookingUp.count)
        var effects: [Effect] = []
        do {
            let page = try WirePersistenceReply(wireBytes: result.get()).episodes.episodes
            let episodes = Dictionary(page.map { ($0.id, WireEpisodeSummary($0)) }) { first, _ in first }
            for var lookup in asked {
                // The answer is about the episodes of other look-ups, too.
                for id in lookup.episodes where episodes[id] != nil { lookup.found[id] = episodes[id] }
                guard lookup.asked == lookup.episodes.count else {
                    lookups.insert(lookup, at: 0)
                    continue
                }
                switch lookup.purpose {
                case .command(let command, let request):
                    effects += perform(request, of: command, knowing: lookup.found, now: now)
                case .refresh: effects += refresh(with: lookup.found)
                }
            }
        } catch {
            let failure = error as? Failure ?? Failure(.internalError, "The database’s answer cannot be read: \(error)")
            for lookup in asked {
                switch lookup.purpose {
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
            let queue = named(name).queue
            let concerned =
                episodes.count < 8 ? episodes.keys.sorted().compactMap(queue.entry(episode:)) : Array(queue.entries)
            let steps = concerned.compactMap { entry -> WireQueueStep? in
                guard let episode = episodes[entry.episode], entry.wire.episode != episode else { return nil }
                var updated = entry.wire
                updated.episode = episode
                return .updating(updated)
            }
            guard !steps.isEmpty else { continue }
            var named = named(name)
            let change = named.refresh(steps)
            effects += commit(named, change)
        }
        return effects
    }
}
