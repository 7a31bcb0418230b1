import PodcastModel
import SwiftProtobuf
import WireMessages

/// The pages of a lookup of episodes by ID: a reply may answer only the first of the IDs.
struct EpisodeLookup: Sendable {
    let limit: Duration?
    private var rest: WireEpisodesByID
    /// The replies so far. Encoded messages that follow one another are one message with the episodes of all.
    private(set) var reply: [UInt8] = []

    /// Creates the lookup that a call consists of; nil if it is another request.
    init?(service: ServiceName, payload: [UInt8], limit: Duration?) {
        guard service == .persistence, let request = try? WirePersistenceRequest(wireBytes: payload),
            case .episodesByID(let query) = request.command, query.ids.count > 1
        else { return nil }
        rest = query
        self.limit = limit
    }

    /// Adds a reply.
    ///
    /// - Returns: the payload of the query for the rest; nil if this was the last reply.
    mutating func add(_ page: [UInt8]) -> [UInt8]? {
        reply += page
        // A reply that can’t be decoded is reported by its reader.
        let answered = (try? WirePersistenceReply(wireBytes: page)).map { Int($0.episodes.answered) } ?? 0
        guard answered > 0, answered < rest.ids.count else { return nil }
        rest.ids.removeFirst(answered)
        return WirePersistenceRequest.with { $0.episodesByID = rest }.wireBytes
    }
}
