import BusKit
import PodcastModel
import WireMessages

/// Looks episodes up in the library: one question at a time; the lookups that come meanwhile share the next one.
struct EpisodeLookups: Sendable {
    enum Purpose: Sendable {
        case command(CommandContext)
        case refresh
    }

    typealias Outcome = (purpose: Purpose, result: Result<[String: WireEpisodeSummary], Failure>)

    private struct Lookup: Sendable {
        var episodes: [String]
        var purpose: Purpose
        /// The number of them that the library has been asked for, the question under way included.
        var asked = 0
        var found: [String: WireEpisodeSummary] = [:]
    }

    private var waiting: [Lookup] = []
    /// The number of waiting lookups that the question under way is about; 0: none is under way.
    private var askedLookups = 0

    mutating func add(_ episodes: [String], for purpose: Purpose) {
        waiting.append(Lookup(episodes: episodes, purpose: purpose))
    }

    /// The episodes to ask the library for now; nil while a question is under way or nothing waits.
    mutating func nextQuestion() -> [String]? {
        guard askedLookups == 0, !waiting.isEmpty else { return nil }
        var ids: [String] = []
        for index in waiting.indices {
            let lookup = waiting[index]
            guard index == 0 || ids.count + lookup.episodes.count <= RequestSizes.episodes else { break }
            let part = lookup.episodes[lookup.asked...].prefix(RequestSizes.episodes)
            ids += part
            waiting[index].asked += part.count
            askedLookups += 1
            // The rest of a long one comes before the others.
            if waiting[index].asked < lookup.episodes.count { break }
        }
        return ids
    }

    /// The lookups that the answer to the question under way completes, in order.
    mutating func answered(_ result: Result<WirePersistenceReply, Failure>) -> [Outcome] {
        var lookups = Array(waiting.prefix(askedLookups))
        waiting.removeFirst(askedLookups)
        askedLookups = 0
        switch result {
        case .success(let reply):
            let pairs = reply.episodes.episodes.map { ($0.id, WireEpisodeSummary($0)) }
            let episodes = Dictionary(pairs) { first, _ in first }
            for index in lookups.indices {
                // The answer is about the episodes of other lookups, too.
                for id in lookups[index].episodes where episodes[id] != nil { lookups[index].found[id] = episodes[id] }
            }
            // One that is too long for one question is the only one of it.
            if let last = lookups.last, last.asked < last.episodes.count { waiting.insert(lookups.removeLast(), at: 0) }
            return lookups.map { ($0.purpose, .success($0.found)) }
        case .failure(let failure): return lookups.map { ($0.purpose, .failure(failure)) }
        }
    }
}
