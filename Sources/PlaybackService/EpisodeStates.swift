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

    /// The states of the episodes that were left or marked last.
    private var recent: [String: WireEpisodeState] = [:]
    private var markings: [CallID: Marking] = [:]

    /// An episode was left, or marked, in this state.
    mutating func remember(_ state: WireEpisodeState) {
        recent[state.episode] = state
        guard recent.count > 2 * Self.markLimit else { return }
        let newest = recent.values.sorted { $0.updatedAt > $1.updatedAt }.prefix(Self.markLimit)
        recent = Dictionary(newest.map { ($0.episode, $0) }) { first, _ in first }
    }

    /// A state could not be saved, and does not hold.
    mutating func forget(_ state: WireEpisodeState) {
        if recent[state.episode] == state { recent[state.episode] = nil }
    }

    /// The newest state of an episode that is known: the library may have looked before a state was stored, and answered
    /// behind that.
    func newest(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        guard let recent = recent[episode], recent.updatedAt > found?.state.updatedAt ?? 0 else {
            return found?.storedState
        }
        return recent
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

/// A mark that is on its way to the database.
struct EpisodeMark: Sendable {
    var before: WireEpisodeState
    let after: WireEpisodeState
    /// Where the loaded episode was not played before; nil: another episode is marked.
    let unplayedFrom: PlaybackPosition?

    /// A state without the mark, which others may have followed.
    func takenBack(from state: WireEpisodeState) -> WireEpisodeState {
        guard state.played == after.played, state.completedAt == after.completedAt else { return state }
        var state = state
        state.played = before.played
        state.completedAt = before.completedAt
        state.reason = before.reason
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
        if isChanged { self.session?.mark(as: state, pending) }
        // What is unsaved is acknowledged when it is saved.
        if isChanged || pending.writes.unsavedStates[state.episode] != nil {
            pending.writes.mark(.session)
            pending.writes.mark(state)
        }
        answer(
            command, set.played ? "Marked as played" : "Marked as not played", .episodeState(state), changed: isChanged)
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
        var marks: [EpisodeMark] = []
        for episode in found {
            let isLoaded = session?.episode.id == episode.id && session?.isStateKnown == true
            let before =
                (isLoaded ? session?.episodeState : pending.writes.unsavedStates[episode.id]) ?? episode.storedState
            let keepsPosition = isLoaded ? session?.status != .finished : !marking.played
            let after = before.marked(
                played: marking.played, keepsPosition: keepsPosition, reason: marking.reason, now: now)
            let isChanged = after.played != before.played || after.position != before.position
            let state = isChanged ? after : before
            let isUnsaved =
                state.played != episode.state.played || !isLoaded && state.position != episode.state.position
            if isChanged || isUnsaved {
                let unplayedFrom = isLoaded ? session?.tracker.unplayedFrom : nil
                marks.append(EpisodeMark(before: before, after: state, unplayedFrom: unplayedFrom))
            }
            if marking.isSingle {
                reply.episodeState = state
                reply.changed = isChanged
            } else {
                reply.episodeStates.states.append(state)
                reply.episodeStates.changed.append(isChanged)
            }
        }
        guard !marks.isEmpty else { return pending.reply(marking.request, reply) }
        commit(marks, answering: (marking.request, reply.wireBytes))
    }

    private mutating func commit(_ marks: [EpisodeMark], answering answer: (RequestID, [UInt8])) {
        var changes: [WireChange] = []
        for mark in marks {
            let state = mark.after
            var change = WireChange()
            change.putEpisodeState = state
            changes.append(change)
            next.forgetAnswer(about: state.episode)
            pending.writes.supersede(state)
            episodeStates.remember(state)
            // A load whose episode is not known yet is not stored, and finds the mark.
            guard session != nil, mark.unplayedFrom != nil else { continue }
            if mark.before != state { session?.mark(as: state, pending) }
            changes.append(self.change(.session))
        }
        let states = marks.map(\.after)
        var all = WireEpisodeStatesChanged()
        all.episodes = states.map(\.episode)
        let publications =
            states.count > Self.eventLimit
            ? [Publication(.event, .episodeStates, all.wireBytes)]
            : states.map { Publication(.event, .episodeState($0.episode), $0.wireBytes) }
        let id = nextTransaction()
        pending.writes.begin(id, .marks(marks, request: answer.0))
        pending.transactions.append(
            Transaction(id: id, changes: changes, publications: publications, answering: answer))
    }

    /// Marks could not be saved: they are taken back.
    mutating func takeBack(_ marks: [EpisodeMark]) {
        for mark in marks {
            let episode = mark.after.episode
            episodeStates.forget(mark.after)
            if let unsaved = pending.writes.unsavedStates[episode] { pending.writes.mark(mark.takenBack(from: unsaved)) }
            guard let session, session.episode.id == episode, let unplayedFrom = mark.unplayedFrom else { continue }
            self.session?.episodeState = mark.takenBack(from: session.episodeState)
            self.session?.tracker.marked(played: false, at: unplayedFrom)
        }
    }
}
