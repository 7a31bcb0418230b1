import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// Where a listener is in each episode, and that nothing but a wish leads back from there.
struct ListeningChecks {
    /// The most that the death of a process may cost, with the two places' own inexactness.
    private static let loss = 10.5
    /// Resuming goes back so far at most.
    private static let rewind = 10.0
    /// From here on an episode begins anew.
    private static let lastMoment = SimulatedSources.length - 1.5

    /// By episode, in seconds: what was heard by the engine's word and the player's.
    private var places: [String: Double] = [:]
    /// The last opened load, and the requested positions by episode.
    private var opened = ""
    private var sought: [String: Double] = [:]
    /// By episode: where its device was lost. Until playback is known to have resumed, it may go back to there.
    private var losses: [String: Double] = [:]
    /// The player has heard long afterwards what the engine had to say: it could not have stored that.
    private var isLate = false
    /// How many deaths were judged.
    private(set) var judged = 0

    /// The engine sounds at `position`.
    mutating func hear(_ position: Double, in state: WirePlaybackState, at now: MonotonicTime) {
        guard state.status == .playing, state.anchor.running else { return }
        let shown = self.position(state, at: now)
        // What was reckoned to be at the end is not kept, wherever the engine is.
        let place = shown < Self.lastMoment ? min(position, shown) : shown
        places[state.episode.id] = max(places[state.episode.id] ?? 0, place)
    }

    /// Where a state is.
    func position(_ state: WirePlaybackState, at now: MonotonicTime) -> Double {
        guard state.anchor.running else { return state.anchor.position }
        let elapsed = now.since(MonotonicTime(nanoseconds: state.anchor.at)) / .seconds(1)
        return min(state.anchor.position + max(0, elapsed) * state.anchor.speed, SimulatedSources.length)
    }

    /// Judges what an event has done to the place in the loaded episode.
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
        // What was reckoned while its device was going, or did not take the sound, was not heard: for the 1.5 s of a check of
        // the device, after an engine that told up to 3 s late that it was open.
        let lostAt = losses[episode] ?? .infinity
        if after.pausedBy == .soundDevice, shown >= place - 5 || shown >= lostAt - Self.rewind - 1 {
            losses[episode] = min(lostAt, shown)
            places[episode] = shown
            return nil
        }
        // Before it is looked up, a load may be wrong about where it is.
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

    /// Judges where the engine is told to begin.
    mutating func open(_ load: EngineLoad, of episode: WireEpisodeSummary) -> String? {
        opened = load.id.text
        guard let place = places[episode.id], load.start.seconds < place - 1 else { return nil }
        guard place < Self.lastMoment, sought[episode.id] != load.start.seconds else {
            places[episode.id] = load.start.seconds
            return nil
        }
        return "“\(episode.title)” was heard to \(place) and is opened at \(load.start.seconds)"
    }

    /// The player dies, or rests: what is stored is what there is.
    ///
    /// - Parameter isSettled: nothing was on its way to the database, nor overdue.
    mutating func judge(_ stored: [String: Double], isSettled: Bool) -> String? {
        var complaint: String?
        if isSettled, !isLate {
            judged += 1
            for (episode, place) in places.sorted(by: { $0.key < $1.key }) where place < Self.lastMoment {
                let kept = stored[episode] ?? 0
                if kept < place - Self.loss, kept != sought[episode] {
                    complaint = "\(episode) was heard to \(place), but \(kept) is stored"
                }
            }
        }
        return complaint
    }

    /// Unstored positions are lost.
    mutating func forget(but stored: [String: Double]) {
        for episode in places.keys { places[episode] = stored[episode] ?? 0 }
    }

    /// A new life has this loaded.
    mutating func begin(with session: WireSessionRecord?) {
        opened = session.flatMap { $0.isKnown ? $0.loadID : nil } ?? ""
        if let session, session.isSought { sought[session.episode.id] = session.position }
    }

    /// The time to store what was heard has passed, and nothing was done.
    mutating func miss() { isLate = true }

    /// Playback has resumed after the loss of its device.
    mutating func recover() { losses = [:] }

    /// The position has been stored.
    mutating func note(_ changes: [WireChange]) {
        if changes.contains(where: { $0.put.collection == "session" }) { isLate = false }
    }
}

extension WireSessionRecord {
    /// Whether the library had told of its episode; else where it is came with the load, or was only sought.
    var isKnown: Bool { register.updatedAt > 0 }
    var isSought: Bool { position != register.position }
}

extension MachineEvent where Input == PlaybackInput {
    /// Whether it tells of a place that is long past.
    fileprivate func isLate(at now: MonotonicTime) -> Bool {
        guard case .input(.engine(.progress(_, let progress))) = self else { return false }
        return now.since(progress.at) > .seconds(1)
    }

    /// Whether it may be somebody's wish to go on, which goes back a little.
    fileprivate var mayResume: Bool {
        switch self {
        case .command, .committed: true
        default: false
        }
    }
}
