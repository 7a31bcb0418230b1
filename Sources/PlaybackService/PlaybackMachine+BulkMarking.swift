import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Marking many episodes with one request, one question to the library and one commit.

extension PlaybackMachine {
    /// The maximum number of episodes in one request: what the library answers at once.
    private static let markLimit = 500
    /// More changes than this are told by one event.
    private static let eventLimit = 20

    /// Episodes that are to be marked once the library has said how they are marked now.
    struct BulkMarking: Sendable {
        var request: RequestID
        var episodes: [String]
        var played: Bool
        var reason: String
    }

    mutating func setPlayed(_ episodes: [String], _ played: Bool, _ command: Command) throws(Failure) {
        guard episodes.count <= Self.markLimit else {
            throw Failure(
                .limitReached, "At most \(Self.markLimit) episodes can be marked at once; use several requests.")
        }
        if let bad = episodes.first(where: { EpisodeID($0) == nil }) {
            throw Self.invalid("“\(bad)” isn’t a valid episode ID.")
        }
        var seen: Set<String> = []
        let call = CallID("mark/\(command.id)")
        let marking = BulkMarking(
            request: command.id, episodes: episodes.filter { seen.insert($0).inserted }, played: played,
            reason: Self.byHand(played, command.origin))
        bulkMarkings[call] = marking
        var query = WirePersistenceRequest()
        query.episodesByID.ids = marking.episodes
        query.episodesByID.brief = true
        pending.calls.append(Call(id: call, to: .persistence, payload: query.wireBytes))
    }

    mutating func mark(_ marking: BulkMarking, _ result: Result<[UInt8], Failure>) {
        let found: [String: WireEpisode]
        do {
            let page = try WirePersistenceReply(wireBytes: result.get()).episodes
            found = Dictionary(page.episodes.map { ($0.id, $0) }) { first, _ in first }
        } catch {
            let unreadable = Failure(.internalError, "The database’s answer can’t be read: \(error)")
            return pending.refuse(marking.request, error as? Failure ?? unreadable)
        }
        if let missing = marking.episodes.first(where: { found[$0] == nil }) {
            let failure = Failure(.notFound, "There is no episode “\(missing)”; nothing was marked.")
            return pending.refuse(marking.request, failure)
        }
        var reply = WirePlaybackReply()
        var changed: [WireEpisodeState] = []
        for episode in marking.episodes.compactMap({ found[$0] }) {
            let isLoaded = session?.episode.id == episode.id && session?.isStateKnown == true
            let stored = Self.register(of: episode)
            let before = (isLoaded ? session?.register : book.registers[episode.id]) ?? stored
            let keepsPosition = isLoaded ? session?.status != .finished : !marking.played
            let after = marked(before, played: marking.played, keepsPosition: keepsPosition, reason: marking.reason)
            let isChanged = after.played != before.played || after.position != before.position
            reply.episodeStates.states.append(isChanged ? after : before)
            reply.episodeStates.changed.append(isChanged)
            if isChanged { changed.append(after) }
        }
        guard !changed.isEmpty else { return pending.replies.append((marking.request, .success(reply.wireBytes))) }
        commit(changed, of: marking, reply)
    }

    private mutating func commit(_ states: [WireEpisodeState], of marking: BulkMarking, _ reply: WirePlaybackReply) {
        var changes: [WireChange] = []
        for state in states {
            var change = WireChange()
            change.putEpisodeState = state
            changes.append(change)
            next.forgetAnswer(about: state.episode)
            book.supersede(state)
            guard let session, session.episode.id == state.episode else { continue }
            self.session?.register = state
            self.session?.tracker.marked(played: marking.played, at: session.position(at: now.monotonic))
            changes.append(self.change(.session))
        }
        var all = WireEpisodeStatesChanged()
        all.episodes = states.map(\.episode)
        let publications =
            states.count > Self.eventLimit
            ? [Publication(.event, .episodeStates, all.wireBytes)]
            : states.map { Publication(.event, .episodeState($0.episode), $0.wireBytes) }
        let id = nextTransaction()
        book.begin(id, .request(marking.request))
        pending.transactions.append(
            Transaction(
                id: id, changes: changes, publications: publications, answering: (marking.request, reply.wireBytes)))
    }
}
