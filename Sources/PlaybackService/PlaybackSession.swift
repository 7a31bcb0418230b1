import OwnerKit
import PodcastModel
import WireMessages

/// The loaded episode and its playback state.
struct PlaybackSession: Sendable, Hashable {
    /// The state of playback.
    enum Status: Sendable, Hashable {
        /// Being opened; `plays` says what follows. Exits: playing, paused, failed.
        case loading(plays: Bool)
        /// It sounds, or waits for data. Exits: paused, finished, failed.
        case playing
        /// It is held; the engine's file may be closed. Exits: playing, loading.
        case paused
        /// It was heard to its proven end. Only another load leads on.
        case finished
        /// It could not go on; its position is kept. Exits: loading.
        case failed(Failure)

        /// Whether it plays, or will when it can.
        var willPlay: Bool { self == .playing || self == .loading(plays: true) }

        /// Whether it could not go on.
        var isFailed: Bool { if case .failed = self { true } else { false } }

        /// Whether it plays or is being opened, so that a failure may be tried again.
        var isUnderWay: Bool {
            switch self {
            case .playing, .loading: true
            case .paused, .finished, .failed: false
            }
        }
    }

    /// How far the engine is involved.
    enum Engine: Sendable, Hashable {
        /// It has no file open.
        case closed
        /// The library is being asked about the episode for this request; nil: the request has been answered.
        case lookingUp(RequestID?, explicit: PlaybackPosition?)
        /// It opens the file once the session is durable, so that a crash in it is found out.
        case awaitingCommit(TransactionID?)
        /// It has been told to open the file.
        case open
    }

    var episode: WireEpisodeSummary
    /// The episode's own address; nil: it has none that can be played.
    var enclosure: AudioSource?
    /// The downloaded file that plays instead.
    var localPath: String?
    let loadID: LoadID
    var queueEntry = ""
    /// The name of that entry's queue.
    var queue = ""
    var status: Status
    var engine = Engine.closed
    /// The engine has its file open, and no second word of that will come.
    var isOpened = false
    /// The speed that is set for it.
    var speed: PlaybackSpeed
    var tracker: PositionTracker
    var recovery: StreamRecovery
    var audio: AudioIdentity
    var buffering = false
    /// The cause of the pause.
    var pausedBy = WirePlaybackState.PausedBy.somebody
    /// The episode's stored state; its played mark outlives new positions.
    var episodeState: WireEpisodeState
    /// The lookup has failed, and the library is asked until it answers.
    var isStateMissing = false
    /// The library has told of the episode once: what it is asked for again changes nothing of `episodeState`.
    var wasLookedUp = false
    /// When it played on after a crash of the process.
    var resumedAt: MonotonicTime?
    /// Notices that nothing takes its sound.
    var standstill = StandstillWatch(limit: 10)
    /// Its failure was answered with `skip`.
    var skip = false
    /// The alert that was answered so.
    var skippedAlert = ""

    /// Where its audio comes from.
    var source: AudioSource? { localPath.map { .file(path: $0) } ?? enclosure }

    /// Whether it has stopped where it is.
    var isResting: Bool { status == .paused || status.isFailed }

    /// Whether it can be told to play.
    var isStartable: Bool { status == .paused && source != nil }

    /// Whether it comes from the network.
    var isStream: Bool { if case .web? = source { true } else { false } }

    /// The length as it is shown, and as seeks are checked against.
    var duration: EpisodeDuration? { audio.duration(at: tracker.anchor.position) }

    /// The length as it is or was measured; nil: only announced, or growing.
    var knownDuration: EpisodeDuration? { audio.knownDuration(at: tracker.anchor.position) }

    /// Whether what is stored of its episode is known, so that it can be changed.
    var isStateKnown: Bool { (wasLookedUp || !isBeingLookedUp) && !isStateMissing }

    /// Whether what is stored of its episode is still being asked for.
    var isBeingLookedUp: Bool { if case .lookingUp = engine { true } else { false } }

    /// Whether it is being opened, or about to be.
    var isOpening: Bool { if case .loading = status { true } else { false } }

    /// Whether it plays or is about to.
    var wantsToPlay: Bool { status.willPlay }

    /// The facts that its recovery depends on.
    func situation(at now: Moment) -> StreamRecovery.Situation {
        StreamRecovery.Situation(
            position: position(at: now.monotonic), plays: wantsToPlay, isOpen: engine == .open,
            isFailed: status.isFailed,
            now: now)
    }

    func position(at now: MonotonicTime) -> PlaybackPosition {
        tracker.anchor.position(at: now, duration: duration)
    }

    // MARK: Alerts

    /// Whether an alert is about it: those about a sound device are, whatever was loaded when they were raised.
    func isConcerned(by alert: WireAlert) -> Bool {
        alert.subject == loadID.text || DeviceAlert.codes.contains(alert.code)
    }

    /// It as the answer to an alert leaves it; nil: it changes nothing.
    func answered(_ answer: WireAnswerAlert, mayPlay: Bool) -> PlaybackSession? {
        guard status != .finished else { return nil }
        var session = self
        switch answer.action {
        case "skip" where status.isFailed:
            session.skip = true
            session.skippedAlert = answer.alert
        case "retry", "accept", "resume", "restart": if mayPlay { session.status = .loading(plays: true) }
        default: return nil
        }
        return session
    }

    /// The answer to an alert is durable.
    ///
    /// - Returns: whether it is to play.
    mutating func carryOut(_ answer: WireAnswerAlert, _ pending: inout PendingEffects) -> Bool {
        switch answer.action {
        case "retry", "resume": return true
        case "accept":
            audio.acceptReplacement()
            return true
        case "restart":
            move(to: .zero, &pending)
            return true
        case "skip" where status.isFailed:
            skip = true
            skippedAlert = answer.alert
            pending.saveSession()
            return false
        default: return false
        }
    }
}
