import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The newest known states of episodes other than the loaded one.
struct EpisodeStates: Sendable {
    private static let limit = 1_000

    private var recent: [String: WireEpisodeState] = [:]

    mutating func remember(_ state: WireEpisodeState) {
        recent[state.episode] = state
        guard recent.count > Self.limit else { return }
        let newest = recent.values.sorted { $0.updatedAt > $1.updatedAt }.prefix(Self.limit / 2)
        recent = Dictionary(newest.map { ($0.episode, $0) }) { first, _ in first }
    }

    mutating func forget(_ state: WireEpisodeState) {
        if recent[state.episode] == state { recent[state.episode] = nil }
    }

    /// Returns the newest known state of an episode: the library may have read it before a newer one was stored.
    func newest(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        guard let recent = recent[episode], recent.updatedAt > found?.state.updatedAt ?? 0 else {
            return found?.storedState
        }
        return recent
    }
}

extension WireSetPlayed {
    func reason(_ command: Command) -> String {
        "marked as \(played ? "" : "un")played \(CommandOrigin(command.origin).phrase)"
    }
}

extension WireEpisode {
    var storedState: WireEpisodeState {
        var state = state
        state.episode = id
        return state
    }
}

extension WireEpisodeState {
    /// Returns the state marked as played or not played.
    ///
    /// - Parameter keepsPosition: false for an episode that was heard to its end, where there is nothing to resume.
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

/// A request to mark episodes, whose current states are fetched from the library.
package struct EpisodeMarking: Sendable {
    /// The maximum number of episodes in one request, which the library answers in one reply.
    private static let limit = RequestSizes.episodes

    let request: RequestID
    let episodes: [String]
    let played: Bool
    /// The group of requests that are undone together; empty for this one alone.
    let group: String
    let reason: String
    /// Whether the request names one episode, and is answered with its state alone.
    let isSingle: Bool

    init(_ set: WireSetPlayed, _ command: Command) throws(Failure) {
        isSingle = set.episodes.isEmpty || !set.episode.isEmpty
        let named = isSingle ? [set.episode] : set.episodes
        guard named.count <= Self.limit else {
            throw Failure(.limitReached, "At most \(Self.limit) episodes can be marked at once; use several requests.")
        }
        if let bad = named.first(where: { EpisodeID($0) == nil }) {
            throw Failure(.invalidArgument, "“\(bad)” isn’t a valid episode ID.")
        }
        var seen: Set<String> = []
        episodes = named.filter { seen.insert($0).inserted }
        request = command.id
        played = set.played
        group = set.group
        reason = set.reason(command)
    }

    func found(in result: Result<[UInt8], Failure>) throws(Failure) -> [WireEpisode] {
        let found = try result.persistenceReply.get().episodes.episodes
        let known = Dictionary(found.map { ($0.id, $0) }) { first, _ in first }
        if let missing = episodes.first(where: { known[$0] == nil }) {
            throw Failure(.notFound, "There is no episode “\(missing)”; nothing was marked.")
        }
        return episodes.compactMap { known[$0] }
    }

    /// Returns the changed marks of these episodes, and the reply.
    ///
    /// - Parameters:
    ///   - session: the loaded episode if its state is known, which is newer than the library’s.
    ///   - unsaved: the unsaved states, which are also newer than the library’s.
    func marks(
        of found: [WireEpisode], _ session: PlaybackSession?, _ unsaved: [String: WireEpisodeState], now: Moment
    ) -> ([EpisodeMark], WirePlaybackReply) {
        var reply = WirePlaybackReply()
        var marks: [EpisodeMark] = []
        for episode in found {
            let loaded = session?.episode.id == episode.id ? session : nil
            let before = loaded?.episodeState ?? unsaved[episode.id] ?? episode.storedState
            let keepsPosition = loaded.map { $0.status != .finished } ?? !played
            let after = before.marked(played: played, keepsPosition: keepsPosition, reason: reason, now: now)
            let isChanged = after.played != before.played || after.position != before.position
            let state = isChanged ? after : before
            let isUnsaved =
                state.played != episode.state.played
                || loaded == nil && state.position != episode.state.position
            if isChanged || isUnsaved {
                marks.append(EpisodeMark(before: before, after: state, unplayedFrom: loaded?.tracker.unplayedFrom))
            }
            if isSingle {
                reply.episodeState = state
                reply.changed = isChanged
            } else {
                reply.episodeStates.states.append(state)
                reply.episodeStates.changed.append(isChanged)
            }
        }
        return (marks, reply)
    }
}

/// A mark that is being committed.
struct EpisodeMark: Sendable {
    var before: WireEpisodeState
    let after: WireEpisodeState
    /// `PositionTracker.unplayedFrom` before the mark; nil if the episode isn’t loaded.
    let unplayedFrom: PlaybackPosition?

    /// The maximum number of changes that are published as separate events.
    private static let eventLimit = 20

    static func publications(of states: [WireEpisodeState]) -> [Publication] {
        guard states.count > eventLimit else {
            return states.map { Publication(.event, .episodeState($0.episode), $0.wireBytes) }
        }
        var all = WireEpisodeStatesChanged()
        all.episodes = states.map(\.episode)
        return [Publication(.event, .episodeStates, all.wireBytes)]
    }

    /// Returns a state without this mark, unless a later mark has replaced it.
    func rolledBack(from state: WireEpisodeState) -> WireEpisodeState {
        guard state.played == after.played, state.completedAt == after.completedAt else { return state }
        var state = state
        state.played = before.played
        state.completedAt = before.completedAt
        state.reason = before.reason
        return state
    }
}

extension PlaybackMachine {
    mutating func setPlayed(_ set: WireSetPlayed, _ command: Command) throws(Failure) {
        guard let session, session.episode.id == set.episode, session.isStateKnown else {
            let marking = try EpisodeMarking(set, command)
            return pending.lookUp(
                marking.episodes, for: .marks(marking), limit: marking.isSingle ? .seconds(2) : nil, brief: true)
        }
        let state = session.episodeState.marked(
            played: set.played, keepsPosition: session.status != .finished, reason: set.reason(command), now: now)
        let isChanged = state.played != session.episodeState.played
        if isChanged {
            let mark = EpisodeMark(before: session.episodeState, after: state, unplayedFrom: nil)
            var change = OwnerChange()
            marks.add([mark], played: set.played, group: set.group, at: now.wall, &change.changes)
            pending.save(change, as: Item.marks)
            self.session?.mark(as: state, pending)
        }
        // An unsaved change is acknowledged when it is saved.
        if isChanged || pending.writes.unsavedStates[state.episode] != nil {
            pending.writes.mark(.session)
            pending.writes.mark(state)
        }
        answer(
            command, set.played ? "Marked as played" : "Marked as unplayed", .episodeState(state), changed: isChanged)
    }

    /// Commits the marks of episodes whose current states the library has returned.
    mutating func finish(_ marking: EpisodeMarking, _ result: Result<[UInt8], Failure>) {
        let found: [WireEpisode]
        do throws(Failure) {
            found = try marking.found(in: result)
        } catch {
            return pending.refuse(marking.request, error)
        }
        let loaded = session?.isStateKnown == true ? session : nil
        let (marks, reply) = marking.marks(of: found, loaded, pending.writes.unsavedStates, now: now)
        guard !marks.isEmpty else { return pending.reply(marking.request, reply) }
        var change = OwnerChange()
        let key = self.marks.add(
            marks, played: marking.played, group: marking.group, at: now.wall, &change.changes)
        commit(marks, change, key.map { MarksRecordChange(key: $0) }, answering: marking.request, reply)
    }

    /// Commits marks, or their undoing, with the change of the record for it.
    mutating func commit(
        _ marks: [EpisodeMark], _ change: OwnerChange, _ record: MarksRecordChange?, answering request: RequestID,
        _ reply: WirePlaybackReply
    ) {
        var change = change
        change.publications += EpisodeMark.publications(of: marks.map(\.after))
        for mark in marks {
            change.changes.append(.putting(mark.after))
            prepared.forgetAnswer(about: mark.after.episode)
            pending.writes.supersede(mark.after)
            episodeStates.remember(mark.after)
            // A load that is still being looked up isn’t stored; its lookup returns the mark.
            guard session != nil, mark.unplayedFrom != nil else { continue }
            if mark.before != mark.after { session?.mark(as: mark.after, pending) }
            change.changes.append(self.change(.session))
        }
        commit(.marks(marks, record), change, answering: request, reply)
    }

    mutating func rollBack(_ marks: [EpisodeMark], _ record: MarksRecordChange?) {
        if let record {
            var unsaved: [WireChange] = []
            self.marks.remove(record.key, &unsaved)
            if let undone = record.undone { self.marks.restore(undone, as: record.key) }
        }
        for mark in marks {
            let episode = mark.after.episode
            episodeStates.forget(mark.after)
            if let unsaved = pending.writes.unsavedStates[episode] {
                pending.writes.mark(mark.rolledBack(from: unsaved))
            }
            session?.rollBack(mark)
        }
    }
}
