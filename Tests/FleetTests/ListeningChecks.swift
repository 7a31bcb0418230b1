import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// The playback position in each episode; only a request may move it back.
struct ListeningChecks {
    /// The maximum loss of position when a process is killed, including the error of both positions, in seconds.
    private static let loss = 10.5
    /// The maximum rewind on resumption, in seconds.
    private static let rewind = 10.0
    /// The position from which an episode starts over, in seconds.
    private static let lastMoment = SimulatedSources.length - 1.5

    /// The position that both the engine and the player have reported, by episode, in seconds.
    private var places: [String: Double] = [:]
    /// The last opened load, and the requested positions by episode.
    private var opened = ""
    private var sought: [String: Double] = [:]
    /// The position at which each episode lost its device. Until playback has resumed, it may return there.
    private var losses: [String: Double] = [:]
    /// Whether the engine’s report reached the player too late for the position to be stored.
    private var isLate = false
    /// The number of restarts that were checked.
    private(set) var judged = 0

    /// Records that the engine plays at `position`.
    mutating func hear(_ position: Double, in state: WirePlaybackState, at now: MonotonicTime) {
        guard state.status == .playing, state.anchor.running else { return }
        let shown = self.position(state, at: now)
        // A position that was estimated at the end isn’t kept, whatever the engine’s position is.
        let place = shown < Self.lastMoment ? min(position, shown) : shown
        places[state.episode.id] = max(places[state.episode.id] ?? 0, place)
    }

    /// The position of a state.
    func position(_ state: WirePlaybackState, at now: MonotonicTime) -> Double {
        guard state.anchor.running else { return state.anchor.position }
        let elapsed = now.since(MonotonicTime(nanoseconds: state.anchor.at)) / .seconds(1)
        return min(state.anchor.position + max(0, elapsed) * state.anchor.speed, SimulatedSources.length)
    }

    /// Checks the effect of an event on the position in the loaded episode.
    mutating func follow(
        _ event: PlaybackMachine.Event, from before: WirePlaybackState, to after: WirePlaybackState,
        at now: MonotonicTime
    ) -> String? {
        if event.isLate(at: now) { isLate = true }
        let reckoned = position(before, at: now)
        if opened == before.loadID, reckoned >= Self.lastMoment { places[before.episode.id] = reckoned }
        let episode = after.episode.id
        guard !episode.isEmpty, before.loadID == after.loadID else { return nil }
        if after.status == .finished {
            places[episode] = 0
            return nil
        }
        guard let place = places[episode] else { return nil }
        let shown = position(after, at: now)
        if case .command(let command) = event,
            case .seek(let seek)? = (try? WirePlaybackRequest(wireBytes: command.payload))?.command,
            shown == seek.position
        {
            sought[episode] = shown
            losses[episode] = nil
            if opened == after.loadID { places[episode] = shown }
            return nil
        }
        // A position estimated while the device failed or took no sound wasn’t played: for the 1.5 s of a device
        // check, after an engine that reported up to 3 s late that the device was open.
        let lostAt = losses[episode] ?? .infinity
        if after.pausedBy == .soundDevice, shown >= place - 5 || shown >= lostAt - Self.rewind - 1 {
            losses[episode] = min(lostAt, shown)
            places[episode] = shown
            return nil
        }
        // Until its episode is looked up, a load may have a wrong position.
        guard shown < place - 1 else { return nil }
        let from = opened == after.loadID ? place : min(place, sought[episode] ?? place)
        let isResumed = event.mayResume && shown >= from - Self.rewind - 1
        if isResumed { sought[episode] = shown }
        guard opened == after.loadID else { return nil }
        guard place < Self.lastMoment, !isResumed, !event.isLate(at: now) else {
            places[episode] = shown
            return nil
        }
        return "“\(after.episode.title)” was heard to \(place) and is \(after.status) at \(shown)"
    }

    /// Checks the start position that the engine is given.
    mutating func open(_ load: EngineLoad, of episode: WireEpisodeSummary) -> String? {
        opened = load.id.text
        guard let place = places[episode.id], load.start.seconds < place - 1 else { return nil }
        guard place < Self.lastMoment, sought[episode.id] != load.start.seconds else {
            places[episode.id] = load.start.seconds
            return nil
        }
        return "“\(episode.title)” was heard to \(place) and is opened at \(load.start.seconds)"
    }

    /// Compares with the stored positions when the player is killed or idle.
    ///
    /// - Parameter isSettled: whether no write is pending or overdue.
    mutating func judge(_ stored: [String: Double], isSettled: Bool) -> String? {
        var violation: String?
        if isSettled, !isLate {
            judged += 1
            for (episode, place) in places.sorted(by: { $0.key < $1.key }) where place < Self.lastMoment {
                let kept = stored[episode] ?? 0
                if kept < place - Self.loss, kept != sought[episode] {
                    violation = "\(episode) was heard to \(place), but \(kept) is stored"
                }
            }
        }
        return violation
    }

    /// Drops positions that weren’t stored.
    mutating func forget(but stored: [String: Double]) {
        for episode in places.keys { places[episode] = stored[episode] ?? 0 }
    }

    /// Records that the restarted player has loaded this session.
    mutating func begin(with session: WireSessionRecord?) {
        opened = session.flatMap { $0.isKnown ? $0.loadID : nil } ?? ""
        if let session, session.isSought { sought[session.episode.id] = session.position }
    }

    /// Records that the deadline for storing the position has passed without a write.
    mutating func miss() { isLate = true }

    /// Records that playback has resumed after its device was lost.
    mutating func recover() { losses = [:] }

    /// Records that the position has been stored.
    mutating func note(_ changes: [WireChange]) {
        if changes.contains(where: { $0.put.collection == "session" }) { isLate = false }
    }
}

extension WireSessionRecord {
    /// Whether the library has returned the episode’s state; otherwise the position is that of the load or of a seek.
    var isKnown: Bool { register.updatedAt > 0 }
    var isSought: Bool { position != register.position }
}

extension MachineEvent where Input == PlaybackInput {
    /// Whether it reports a position that is long outdated.
    fileprivate func isLate(at now: MonotonicTime) -> Bool {
        guard case .input(.engine(.progress(_, let progress))) = self else { return false }
        return now.since(progress.at) > .seconds(1)
    }

    /// Whether it may be a request to resume, which rewinds a little.
    fileprivate var mayResume: Bool {
        switch self {
        case .command, .committed: true
        default: false
        }
    }
}
