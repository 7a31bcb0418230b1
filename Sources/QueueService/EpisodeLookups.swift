import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Looks episodes up in the library: one question at a time, and what comes meanwhile is asked together.
struct EpisodeLookups<Purpose: Sendable>: Sendable {
    /// The outcome of the lookups that an answer completes, in order.
    enum Outcome: Sendable {
        case found([(purpose: Purpose, episodes: [String: WireEpisodeSummary])])
        case failed([Purpose], Failure)
    }

    private struct Lookup: Sendable {
        var episodes: [String]
        var purpose: Purpose
        /// How many of them the library has been asked about, the question under way included.
        var asked = 0
        var found: [String: WireEpisodeSummary] = [:]
    }

    private var waiting: [Lookup] = []
    /// The question under way, and how many of the waiting lookups it is about.
    private var question: (call: CallID, count: Int)?

    /// Adds a lookup; `ask` puts the next question.
    mutating func add(_ episodes: [String], for purpose: Purpose) {
        waiting.append(Lookup(episodes: episodes, purpose: purpose))
    }

    /// The next question; nil while one is under way or nothing waits.
    mutating func ask(as call: CallID) -> Call? {
        guard question == nil, !waiting.isEmpty else { return nil }
        var ids: [String] = []
        var count = 0
        for index in waiting.indices {
            let lookup = waiting[index]
            guard count == 0 || ids.count + lookup.episodes.count <= RequestSizes.episodes else { break }
            let part = lookup.episodes[lookup.asked...].prefix(RequestSizes.episodes)
            ids += part
            waiting[index].asked += part.count
            count += 1
            // The rest of a long one comes before the others.
            if waiting[index].asked < lookup.episodes.count { break }
        }
        question = (call, count)
        var request = WirePersistenceRequest()
        request.episodesByID.ids = ids
        request.episodesByID.brief = true
        return Call(id: call, to: .persistence, payload: request.wireBytes)
    }

    /// The library has answered, or refused. Nil: the call was another one.
    mutating func answered(_ result: Result<[UInt8], Failure>, to call: CallID) -> Outcome? {
        guard let asked = question, asked.call == call else { return nil }
        question = nil
        var lookups = Array(waiting.prefix(asked.count))
        waiting.removeFirst(asked.count)
        do {
            let page = try WirePersistenceReply(wireBytes: result.get()).episodes.episodes
            let episodes = Dictionary(page.map { ($0.id, WireEpisodeSummary($0)) }) { first, _ in first }
            for index in lookups.indices {
                // The answer is about the episodes of other lookups, too.
                for id in lookups[index].episodes where episodes[id] != nil { lookups[index].found[id] = episodes[id] }
            }
            // One that is too long for one question is the only one of it.
            if let last = lookups.last, last.asked < last.episodes.count { waiting.insert(lookups.removeLast(), at: 0) }
            return .found(lookups.map { ($0.purpose, $0.found) })
        } catch {
            let failure = error as? Failure ?? Failure(.internalError, "The database’s answer cannot be read: \(error)")
            return .failed(lookups.map(\.purpose), failure)
        }
    }
}
