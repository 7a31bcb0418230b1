import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackSession {
    /// Creates a session for an episode that a request loads, before the library is queried about it.
    init(
        _ load: WireLoadEpisode, _ request: RequestID, speed: PlaybackSpeed, _ context: PlaybackContext, now: Moment
    ) throws(Failure) {
        guard let loadID = LoadID(load.loadID) else {
            throw Failure(.invalidArgument, "“\(load.loadID)” isn’t a valid load ID.")
        }
        guard EpisodeID(load.episode.id) != nil else {
            throw Failure(.invalidArgument, "“\(load.episode.id)” isn’t a valid episode ID.")
        }
        var explicit: PlaybackPosition?
        if load.hasPosition {
            guard let position = PlaybackPosition(seconds: load.position) else {
                throw Failure(.invalidArgument, "An episode can’t start at \(load.position) s.")
            }
            explicit = position
        }
        episodeState = WireEpisodeState()
        episodeState.episode = load.episode.id
        episodeState.played = load.episode.played
        episodeState.position = load.episode.position.isFinite ? max(0, load.episode.position) : 0
        self.loadID = loadID
        self.speed = speed
        episode = load.episode
        // An episode without audio is loaded too, and fails visibly.
        enclosure = try? AudioSource(enclosure: load.episode.enclosureURL)
        queueEntry = load.queueEntry
        queue = load.queue
        status = .loading(plays: !load.paused)
        engine = .lookingUp(request, explicit: explicit)
        tracker = PositionTracker(
            at: explicit ?? PlaybackPosition(clamping: episodeState.position), speed: speed, bootID: context.bootID,
            now: now)
        recovery = StreamRecovery(limits: context.limits)
        audio = AudioIdentity(announced: load.episode.duration)
    }

    // MARK: Answers of the library

    /// Looks the episode up again, then resumes it at a position; nil means its stored position.
    mutating func lookUpAgain(at explicit: PlaybackPosition?, _ pending: inout PendingEffects) {
        engine = .lookingUp(nil, explicit: explicit)
        pending.lookUp([episode.id], for: .load(loadID))
    }

    /// Looks up an episode whose process died before the library had answered, because the load’s data may be out of
    /// date.
    mutating func lookUpIfUnknown(_ pending: inout PendingEffects) {
        guard episodeState.updatedAt == 0, status == .paused else { return }
        let position = tracker.anchor.position
        lookUpAgain(at: position.seconds == episodeState.position ? nil : position, &pending)
    }

    /// Repeats a failed lookup until the library answers.
    mutating func lookupFailed(_ failure: Failure, _ pending: inout PendingEffects) {
        guard isBeingLookedUp, lookup != .answered else { return }
        pending.log(.warning, "Couldn’t look up the state of \(episode.id), retrying: \(failure)")
        if lookup == .pending { lookup = .failed(wasOpened: false) }
        pending.lookUp([episode.id], for: .lateLoad(loadID), limit: nil)
    }

    /// Handles the library’s reply about the episode; nil if the lookup failed or found nothing.
    ///
    /// - Parameter state: the newest known state of the episode.
    mutating func found(_ found: WireEpisode?, _ state: WireEpisodeState?, _ pending: inout PendingEffects) {
        // A change during a repeated lookup is newer than the answer.
        if let state, lookup != .answered || state.updatedAt >= episodeState.updatedAt { episodeState = state }
        if lookup == .pending { lookup = .answered }
        if let found { preferFile(of: found.download, &pending) }
    }

    private mutating func preferFile(of download: WireDownload, _ pending: inout PendingEffects) {
        guard download.source(insteadOf: source) != nil else { return }
        localPath = download.path
        identify(AudioTag(etag: download.etag, size: download.totalBytes), &pending)
    }

    /// Handles a stored state that arrives after the episode has begun to play: the progress since then is added.
    mutating func foundLate(_ state: WireEpisodeState?, _ pending: inout PendingEffects) {
        lookup = .answered
        if episodeState.updatedAt == 0, let state {
            episodeState = state
            if audio.recorded == nil { audio.recorded = EpisodeDuration(seconds: state.duration) }
        }
        // If nothing has been played yet, the stored position isn’t overwritten.
        guard position(at: pending.now.monotonic).seconds > tracker.playedFrom.seconds + 0.5 else { return }
        savePosition(&pending)
    }

    /// Makes the load durable before the engine opens it.
    ///
    /// - Parameter intro: the number of seconds that are skipped at the beginning.
    mutating func begin(at explicit: PlaybackPosition?, intro: Double, _ pending: inout PendingEffects) {
        audio.begin(EpisodeDuration(seconds: episodeState.duration), atStoredPosition: explicit == nil)
        if explicit == nil, episodeState.isAtEnd { reportRestart(from: episodeState.position, &pending) }
        let start = explicit ?? Self.start(of: episodeState, duration: duration, intro: intro)
        if start != tracker.anchor.position { setAnchor(start, running: false, &pending) }
        engine = status == .paused ? .closed : .awaitingCommit(nil)
        pending.writes.mark(.session)
        pending.commit = true
    }

    /// Returns the stored position of an episode, else the end of its intro.
    static func start(of state: WireEpisodeState, duration: EpisodeDuration?, intro: Double) -> PlaybackPosition {
        let start = PlaybackPosition(clamping: state.position)
        guard state.isAtEnd || start == .zero else { return start }
        if let duration, intro >= duration.seconds - 1 { return .zero }
        return PlaybackPosition(clamping: intro)
    }

    /// Raises an alert that an episode with a stored position starts from the beginning, because nothing is left to play.
    func reportRestart(from position: Double, _ pending: inout PendingEffects) {
        guard episodeState.position > 0 else { return }
        pending.raise(
            "startsOver", about: self, title: "The episode starts from the beginning",
            "“\(episode.title)” had been played to its end at \(ClockText.format(position)), so it starts from the beginning.",
            .info, actions: ["dismiss"])
    }
}

extension WireEpisodeState {
    /// Whether less than a second is left. A position beyond the length isn’t at the end: the length may be wrong.
    var isAtEnd: Bool { duration > 0 && abs(position - duration) < 1 }
}
