import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// Checks that only a request moves the playback position of an episode back.
struct ListeningChecks {
    /// The maximum loss of position when a process is killed, including the error of both positions, in seconds.
    private static let loss = 10.5
    /// The maximum rewind on resumption, in seconds.
    private static let rewind = 10.0
    /// The position from which an episode starts over, in seconds.
    private static let lastMoment = SimulatedSources.length - 1.5

    /// The position that both the engine and the player have reported, by episode, in seconds.
    private var playedTo: [String: Double] = [:]
    /// The last opened load, and the requested positions by episode.
    private var opened = ""
    private var requested: [String: Double] = [:]
    /// The position at which each episode lost its device. Until playback has resumed, it may return there.
    private var losses: [String: Double] = [:]
    /// Whether the engine’s report reached the player too late for the position to be stored.
    private var isLate = false
    /// The number of restarts that were checked.
    private(set) var checkedRestarts = 0

    /// Records that the engine plays at `position`.
    mutating func recordEngine(_ position: Double, in state: WirePlaybackState, at now: MonotonicTime) {
        guard state.status == .playing, state.anchor.running else { return }
        let shown = self.position(state, at: now)
        // A position that was estimated at the end isn’t saved, whatever the engine’s position is.
        let reached = shown < Self.lastMoment ? min(position, shown) : shown
        playedTo[state.episode.id] = max(playedTo[state.episode.id] ?? 0, reached)
    }

    /// The position of a state.
    func position(_ state: WirePlaybackState, at now: MonotonicTime) -> Double {
        guard state.anchor.running else { return state.anchor.position }
        let elapsed = now.since(MonotonicTime(nanoseconds: state.anchor.at)) / .seconds(1)
        return min(state.anchor.position + max(0, elapsed) * state.anchor.speed, SimulatedSources.length)
    }

    /// Checks the effect of an event on the position in the loaded episode.
    mutating func check(
        _ event: PlaybackMachine.Event, from before: WirePlaybackState, to after: WirePlaybackState,
        at now: MonotonicTime
    ) -> String? {
        if event.isLate(at: now) { isLate = true }
        let estimated = position(before, at: now)
        if opened == before.loadID, estimated >= Self.lastMoment { playedTo[before.episode.id] = estimated }
        let episode = after.episode.id
        guard !episode.isEmpty, before.loadID == after.loadID else { return nil }
        if after.status == .finished {
            playedTo[episode] = 0
            return nil
        }
        guard let reached = playedTo[episode] else { return nil }
        let shown = position(after, at: now)
        if case .command(let command) = event,
            case .seek(let seek)? = (try? WirePlaybackRequest(wireBytes: command.payload))?.command,
            shown == seek.position
        {
            requested[episode] = shown
            losses[episode] = nil
            if opened == after.loadID { playedTo[episode] = shown }
            return nil
        }
        // A position estimated while the device failed or accepted no sound wasn’t played: for the 1.5 s of a device
        // check, after an engine that reported up to 3 s late that the device was open.
        let lostAt = losses[episode] ?? .infinity
        if after.pausedBy == .soundDevice, shown >= reached - 5 || shown >= lostAt - Self.rewind - 1 {
            losses[episode] = min(lostAt, shown)
            playedTo[episode] = shown
            return nil
        }
        // A load may have a wrong position until its episode is looked up.
        guard shown < reached - 1 else { return nil }
        let from = opened == after.loadID ? reached : min(reached, requested[episode] ?? reached)
        let isResumed = event.mayResume && shown >= from - Self.rewind - 1
        if isResumed { requested[episode] = shown }
        guard opened == after.loadID else { return nil }
        guard reached < Self.lastMoment, !isResumed, !event.isLate(at: now) else {
            playedTo[episode] = shown
            return nil
        }
        return "“\(after.episode.title)” was played to \(reached) and is \(after.status) at \(shown)"
    }

    /// Checks the start position of a load.
    mutating func checkOpen(_ load: EngineLoad, of episode: WireEpisodeSummary) -> String? {
        opened = load.id.text
        guard let reached = playedTo[episode.id], load.start.seconds < reached - 1 else { return nil }
        guard reached < Self.lastMoment, requested[episode.id] != load.start.seconds else {
            playedTo[episode.id] = load.start.seconds
            return nil
        }
        return "“\(episode.title)” was played to \(reached) and is opened at \(load.start.seconds)"
    }

    /// Compares the played positions with the stored ones when the player is killed or idle.
    ///
    /// - Parameter isSettled: whether no write is pending or overdue.
    mutating func checkStored(_ stored: [String: Double], isSettled: Bool) -> String? {
        var violation: String?
        if isSettled, !isLate {
            checkedRestarts += 1
            for (episode, reached) in playedTo.sorted(by: { $0.key < $1.key }) where reached < Self.lastMoment {
                let saved = stored[episode] ?? 0
                if saved < reached - Self.loss, saved != requested[episode] {
                    violation = "\(episode) was played to \(reached), but \(saved) is stored"
                }
            }
        }
        return violation
    }

    /// Drops positions that weren’t stored.
    mutating func dropUnsaved(stored: [String: Double]) {
        for episode in playedTo.keys { playedTo[episode] = stored[episode] ?? 0 }
    }

    /// Records that the restarted player has loaded this session.
    mutating func recordRestart(session: WireSessionRecord?) {
        opened = session.flatMap { $0.isKnown ? $0.loadID : nil } ?? ""
        if let session, session.isSeekTarget { requested[session.episode.id] = session.position }
    }

    /// Records that the deadline for storing the position has passed without a write.
    mutating func recordMissedWrite() { isLate = true }

    /// Records that playback has resumed after its device was lost.
    mutating func recordRecovery() { losses = [:] }

    /// Records that the session has been stored, if `changes` contain it.
    mutating func recordCommit(_ changes: [WireChange]) {
        if changes.contains(where: { $0.put.collection == "session" }) { isLate = false }
    }
}

extension WireSessionRecord {
    /// Whether the library has returned the episode’s state; otherwise the position is that of the load or of a seek.
    var isKnown: Bool { register.updatedAt > 0 }
    var isSeekTarget: Bool { position != register.position }
}

extension MachineEvent where Input == PlaybackInput {
    /// Whether it reports a position that is more than a second old.
    fileprivate func isLate(at now: MonotonicTime) -> Bool {
        guard case .input(.engine(.progress(_, let progress))) = self else { return false }
        return now.since(progress.at) > .seconds(1)
    }

    /// Whether it may resume playback, which rewinds by up to `rewind`.
    fileprivate var mayResume: Bool {
        switch self {
        case .command, .committed: true
        default: false
        }
    }
}
