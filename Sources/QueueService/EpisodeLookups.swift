import BusKit
import PodcastModel
import WireMessages

/// Looks up episodes in the library with one query at a time; lookups that are added meanwhile share the next query.
struct EpisodeLookups: Sendable {
    enum Purpose: Sendable {
        case command(CommandContext)
        case refresh
    }

    typealias Outcome = (purpose: Purpose, result: Result<[String: WireEpisodeSummary], Failure>)

    private struct Lookup: Sendable {
        var episodes: [String]
        var purpose: Purpose
        /// The number of episodes that have been queried, including the pending query.
        var queried = 0
        var found: [String: WireEpisodeSummary] = [:]
    }

    private var waiting: [Lookup] = []
    /// The number of waiting lookups in the pending query; 0 if none is pending.
    private var queriedLookups = 0

    mutating func add(_ episodes: [String], for purpose: Purpose) {
        waiting.append(Lookup(episodes: episodes, purpose: purpose))
    }

    /// Returns the episodes to query now; nil while a query is pending or no lookup waits.
    mutating func nextQuery() -> [String]? {
        guard queriedLookups == 0, !waiting.isEmpty else { return nil }
        var ids: [String] = []
        for index in waiting.indices {
            let lookup = waiting[index]
            guard index == 0 || ids.count + lookup.episodes.count <= RequestSizes.episodes else { break }
            let part = lookup.episodes[lookup.queried...].prefix(RequestSizes.episodes)
            ids += part
            waiting[index].queried += part.count
            queriedLookups += 1
            // The rest of a long lookup is queried before the other lookups.
            if waiting[index].queried < lookup.episodes.count { break }
        }
        return ids
    }

    /// Returns the lookups that the reply to the pending query completes, in order.
    mutating func answered(_ result: Result<WirePersistenceReply, Failure>) -> [Outcome] {
        var lookups = Array(waiting.prefix(queriedLookups))
        waiting.removeFirst(queriedLookups)
        queriedLookups = 0
        switch result {
        case .success(let reply):
            let pairs = reply.episodes.episodes.map { ($0.id, WireEpisodeSummary($0)) }
            let episodes = Dictionary(pairs) { first, _ in first }
            for index in lookups.indices {
                // The reply also contains the episodes of other lookups.
                for id in lookups[index].episodes where episodes[id] != nil { lookups[index].found[id] = episodes[id] }
            }
            // A lookup that is too long for one query is alone in it.
            if let last = lookups.last, last.queried < last.episodes.count {
                waiting.insert(lookups.removeLast(), at: 0)
            }
            return lookups.map { ($0.purpose, .success($0.found)) }
        case .failure(let failure): return lookups.map { ($0.purpose, .failure(failure)) }
        }
    }
}
