import OwnerKit
import PodcastModel
import WireMessages

/// The loaded episode and its playback state.
struct PlaybackSession: Sendable, Hashable {
    /// What the player does with it.
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
        /// What is stored about the episode is being asked for, for this request; nil: it was stopped meanwhile.
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
    /// What has paused it.
    var pausedBy = WirePlaybackState.PausedBy.somebody
    /// The episode's stored state; its played mark outlives new positions.
    var episodeState: WireEpisodeState
    /// What is stored of the episode could not be found out in time; it is asked for until it comes.
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

    /// Whether it plays or is about to.
    var wantsToPlay: Bool { status.willPlay }

    /// What its recovery must know of it.
    func situation(at now: Moment) -> StreamRecovery.Situation {
        StreamRecovery.Situation(
            position: position(at: now.monotonic), plays: wantsToPlay, isOpen: engine == .open,
            isFailed: status.isFailed,
            now: now)
    }

    func position(at now: MonotonicTime) -> PlaybackPosition {
        tracker.anchor.position(at: now, duration: duration)
    }
}
