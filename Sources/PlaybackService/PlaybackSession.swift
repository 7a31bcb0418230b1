import OwnerKit
import PodcastModel
import WireMessages

/// The loaded episode and its playback state.
struct PlaybackSession: Sendable, Hashable {
    enum Status: Sendable, Hashable {
        /// The audio is being opened. Exits: playing, paused, failed.
        case loading(plays: Bool)
        /// The audio plays, or waits for data. Exits: paused, finished, failed.
        case playing
        /// Playback is paused; the engine may have no file. Exits: playing, loading.
        case paused
        /// The episode was played to its confirmed end. Exit: another load.
        case finished
        /// Playback failed, and the position is kept. Exit: loading.
        case failed(Failure)

        /// Whether the episode plays, or will as soon as possible.
        var willPlay: Bool { self == .playing || self == .loading(plays: true) }

        var isFailed: Bool { if case .failed = self { true } else { false } }

        /// Whether the episode plays or is being opened, so that a failure may be retried.
        var isUnderWay: Bool {
            switch self {
            case .playing, .loading: true
            case .paused, .finished, .failed: false
            }
        }
    }

    /// The engine’s state.
    enum Engine: Sendable, Hashable {
        /// The engine has no file.
        case closed
        /// The library is being queried about the episode. The request is answered afterwards; nil if no request waits.
        case lookingUp(RequestID?, explicit: PlaybackPosition?)
        /// The file is opened once the session is durable, so that the next process can detect a crash.
        case awaitingCommit(TransactionID?)
        /// The engine is opening the file.
        case opening
        /// The engine has reported that the file is open.
        case open

        /// Whether the engine has a file or is opening one, so that it accepts commands for the file.
        var hasFile: Bool { self == .opening || self == .open }
    }

    /// Whether `episodeState` contains the library’s state of the episode.
    enum Lookup: Sendable, Hashable {
        /// The library hasn’t answered yet.
        case pending
        /// The lookup has failed and is retried until the library replies. If the file was opened meanwhile, its
        /// position takes precedence over the stored one.
        case failed(wasOpened: Bool)
        /// The library has answered: a further answer may be older than `episodeState`.
        case answered
    }

    var episode: WireEpisodeSummary
    /// The audio at the episode’s address; nil if the address can’t be played.
    var enclosure: AudioSource?
    /// The downloaded file that plays instead of the enclosure.
    var localPath: String?
    let loadID: LoadID
    var queueEntry = ""
    var queue = ""
    var status: Status
    var engine = Engine.closed
    var speed: PlaybackSpeed
    var tracker: PositionTracker
    var recovery: StreamRecovery
    var audio: AudioIdentity
    var buffering = false
    var pausedBy = WirePlaybackState.PausedBy.somebody
    /// The newest state of the episode, which may be unsaved.
    var episodeState: WireEpisodeState
    var lookup = Lookup.pending
    /// The time at which playback resumed after a crash of the process.
    var resumedAt: MonotonicTime?
    /// Detects that the sound server accepts no sound.
    var standstill = StandstillWatch(limit: 10)
    /// The alert that was answered with `skip`; nil if the episode isn’t skipped.
    var skippedAlert: String?

    var source: AudioSource? { localPath.map { .file(path: $0) } ?? enclosure }

    var isResting: Bool { status == .paused || status.isFailed }

    var isStartable: Bool { status == .paused && source != nil }

    var isStream: Bool { if case .web? = source { true } else { false } }

    /// The length that is shown, and that seeks are checked against.
    var duration: EpisodeDuration? { audio.duration(at: tracker.anchor.position) }

    /// The length that this or an earlier process has measured; nil if the length is only announced, or partial.
    var knownDuration: EpisodeDuration? { audio.knownDuration(at: tracker.anchor.position) }

    /// Whether the stored state of the episode is known, so that it can be changed.
    var isStateKnown: Bool { lookup == .answered || lookup == .pending && !isBeingLookedUp }

    var isBeingLookedUp: Bool { if case .lookingUp = engine { true } else { false } }

    var isOpening: Bool { if case .loading = status { true } else { false } }

    func situation(at now: Moment) -> StreamRecovery.Situation {
        StreamRecovery.Situation(
            position: position(at: now.monotonic), plays: status.willPlay, isOpen: engine.hasFile,
            isFailed: status.isFailed, now: now)
    }

    func position(at now: MonotonicTime) -> PlaybackPosition {
        tracker.anchor.position(at: now, duration: duration)
    }

    // MARK: Alerts

    /// Whether an alert is about this session. An alert about a device always is, even if raised for another load.
    func isSubject(of alert: WireAlert) -> Bool {
        alert.subject == loadID.text || DeviceAlert.codes.contains(alert.code)
    }

    /// Returns the session after the answer to an alert; nil if the answer changes nothing.
    func answered(_ answer: WireAnswerAlert, mayPlay: Bool) -> PlaybackSession? {
        guard status != .finished else { return nil }
        var session = self
        switch answer.action {
        case "skip" where status.isFailed: session.skippedAlert = answer.alert
        case "retry", "accept", "resume", "restart": if mayPlay { session.status = .loading(plays: true) }
        default: return nil
        }
        return session
    }

    /// Applies the durable answer to an alert, and returns whether playback resumes.
    mutating func apply(_ answer: WireAnswerAlert, _ pending: inout PendingEffects) -> Bool {
        switch answer.action {
        case "retry", "resume": return true
        case "accept":
            audio.acceptsReplacement = true
            return true
        case "restart":
            move(to: .zero, &pending)
            return true
        case "skip" where status.isFailed:
            skippedAlert = answer.alert
            pending.saveSession()
            return false
        default: return false
        }
    }
}
