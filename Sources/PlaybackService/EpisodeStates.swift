import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What is known of the states of episodes beside the loaded one, and the requests to mark episodes that wait for the
/// library.
struct EpisodeStates: Sendable {
    /// Episodes that are to be marked once the library has said how they are marked now.
    struct Marking: Sendable {
        let request: RequestID
        let episodes: [String]
        let played: Bool
        let reason: String
        /// Whether the request names one episode, and is answered with its state alone.
        let isSingle: Bool

        /// The episodes that the library answered with.
        func found(in result: Result<[UInt8], Failure>) throws(Failure) -> [WireEpisode] {
            let bytes = try result.get()
            let page: WireEpisodesPage
            do {
                page = try WirePersistenceReply(wireBytes: bytes).episodes
            } catch {
                throw Failure(.internalError, "The database’s answer can’t be read: \(error)")
            }
            let known = Dictionary(page.episodes.map { ($0.id, $0) }) { first, _ in first }
            if let missing = episodes.first(where: { known[$0] == nil }) {
                throw Failure(.notFound, "There is no episode “\(missing)”; nothing was marked.")
            }
            return episodes.compactMap { known[$0] }
        }
    }

    /// The maximum number of episodes in one request: what the library answers at once.
    private static let markLimit = RequestSizes.episodes

    /// The state of the episode that was loaded before.
    private var previous: WireEpisodeState?
    private var markings: [CallID: Marking] = [:]

    /// Another episode takes the place of the one in this state.
    mutating func left(_ state: WireEpisodeState) { previous = state }

    /// The newest state of an episode that is known: the library may have looked before what was left last was stored, and
    /// answered behind that.
    func newest(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        guard let previous, previous.episode == episode, previous.updatedAt > found?.state.updatedAt ?? 0 else {
            return found?.storedState
        }
        return previous
    }

    /// Episodes are to be marked as one request says.
    ///
    /// - Returns: the question to the library.
    mutating func mark(_ set: WireSetPlayed, _ command: Command) throws(Failure) -> Call {
        let isSingle = set.episodes.isEmpty || !set.episode.isEmpty
        let episodes = isSingle ? [set.episode] : set.episodes
        guard episodes.count <= Self.markLimit else {
            throw Failure(
                .limitReached, "At most \(Self.markLimit) episodes can be marked at once; use several requests.")
        }
        if let bad = episodes.first(where: { EpisodeID($0) == nil }) {
            throw Failure(.invalidArgument, "“\(bad)” isn’t a valid episode ID.")
        }
        var seen: Set<String> = []
        let marking = Marking(
            request: command.id, episodes: episodes.filter { seen.insert($0).inserted }, played: set.played,
            reason: set.reason(command), isSingle: isSingle)
        let call = CallID("mark/\(command.id)")
        markings[call] = marking
        var query = WirePersistenceRequest()
        query.episodesByID.ids = marking.episodes
        query.episodesByID.brief = true
        return Call(id: call, to: .persistence, payload: query.wireBytes, limit: isSingle ? .seconds(2) : nil)
    }

    /// The marking that waits for this answer of the library.
    mutating func takeMarking(awaiting call: CallID) -> Marking? { markings.removeValue(forKey: call) }
}

extension WireSetPlayed {
    /// Why episodes are marked, for their states.
    func reason(_ command: Command) -> String {
        "marked as \(played ? "" : "not ")played \(CommandOrigin(command.origin).phrase)"
    }
}

extension WireEpisode {
    /// Its state as it is stored.
    var storedState: WireEpisodeState {
        var state = state
        state.episode = id
        return state
    }
}

extension WireEpisodeState {
    /// The state with its mark set; where it was heard to the end there is nothing to resume.
    func marked(played: Bool, keepsPosition: Bool, reason: String, now: Moment) -> WireEpisodeState {
        var state = self
        if state.played != played { state.reason = reason }
        state.played = played
        state.completedAt = played ? now.wall.milliseconds : 0
        if !keepsPosition { state.position = 0 }
        state.updatedAt = now.wall.milliseconds
        return state
    }
}

extension PlaybackMachine {
    /// More changes than this are told by one event.
    private static let eventLimit = 20

    mutating func setPlayed(_ set: WireSetPlayed, _ command: Command) throws(Failure) {
        guard let session, session.episode.id == set.episode, session.isStateKnown else {
            return pending.calls.append(try episodeStates.mark(set, command))
        }
        let state = session.episodeState.marked(
            played: set.played, keepsPosition: session.status != .finished, reason: set.reason(command), now: now)
        let isChanged = state.played != session.episodeState.played
        if isChanged {
            mark(session, as: state)
            book.mark(.session)
            book.mark(state)
        }
        answer(
            command, set.played ? "Marked as played" : "Marked as not played", .episodeState(state), changed: isChanged)
    }

    /// The loaded episode has been marked.
    private mutating func mark(_ session: PlaybackSession, as state: WireEpisodeState) {
        self.session?.episodeState = state
        self.session?.tracker.marked(played: state.played, at: session.position(at: now.monotonic))
    }

    /// The library has said how episodes are marked now: what changes is committed at once.
    mutating func finish(_ marking: EpisodeStates.Marking, _ result: Result<[UInt8], Failure>) {
        let found: [WireEpisode]
        do throws(Failure) {
            found = try marking.found(in: result)
        } catch {
            return pending.refuse(marking.request, error)
        }
        var reply = WirePlaybackReply()
        var changed: [WireEpisodeState] = []
        for episode in found {
            let isLoaded = session?.episode.id == episode.id && session?.isStateKnown == true
            let before =
                (isLoaded ? session?.episodeState : book.unsavedStates[episode.id]) ?? episode.storedState
            let keepsPosition = isLoaded ? session?.status != .finished : !marking.played
            let after = before.marked(
                played: marking.played, keepsPosition: keepsPosition, reason: marking.reason, now: now)
            let isChanged = after.played != before.played || after.position != before.position
            if isChanged { changed.append(after) }
            if marking.isSingle {
                reply.episodeState = isChanged ? after : before
                reply.changed = isChanged
            } else {
                reply.episodeStates.states.append(isChanged ? after : before)
                reply.episodeStates.changed.append(isChanged)
            }
        }
        guard !changed.isEmpty else { return pending.replies.append((marking.request, .success(reply.wireBytes))) }
        commit(changed, answering: (marking.request, reply.wireBytes))
    }

    private mutating func commit(_ states: [WireEpisodeState], answering answer: (RequestID, [UInt8])) {
        var changes: [WireChange] = []
        for state in states {
            var change = WireChange()
            change.putEpisodeState = state
            changes.append(change)
            next.forgetAnswer(about: state.episode)
            book.supersede(state)
            guard let session, session.episode.id == state.episode else { continue }
            mark(session, as: state)
            changes.append(self.change(.session))
        }
        var all = WireEpisodeStatesChanged()
        all.episodes = states.map(\.episode)
        let publications =
            states.count > Self.eventLimit
            ? [Publication(.event, .episodeStates, all.wireBytes)]
            : states.map { Publication(.event, .episodeState($0.episode), $0.wireBytes) }
        let id = nextTransaction()
        book.begin(id, .request(answer.0))
        pending.transactions.append(
            Transaction(id: id, changes: changes, publications: publications, answering: answer))
    }
}
