import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackSession {
    /// An episode as a request loads it, which the library has yet to be asked about.
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
        // What has no audio is loaded all the same, and fails where everybody sees it.
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

    // MARK: What the library knows

    /// Looks the episode up again, and then resumes it at a position, or (nil) where it was left.
    mutating func lookUpAgain(at explicit: PlaybackPosition?, _ pending: inout PendingEffects) {
        engine = .lookingUp(nil, explicit: explicit)
        pending.lookUp([episode.id], for: .load(loadID))
    }

    /// A process that died before the library had told it of a load has stored what came with that, which may be long past,
    /// and where somebody wanted to be in it.
    mutating func lookUpIfUnknown(_ pending: inout PendingEffects) {
        guard episodeState.updatedAt == 0, status == .paused else { return }
        let position = tracker.anchor.position
        lookUpAgain(at: position.seconds == episodeState.position ? nil : position, &pending)
    }

    /// The lookup has failed: the library is asked until it answers.
    mutating func lookupFailed(_ failure: Failure, _ pending: inout PendingEffects) {
        guard isBeingLookedUp, !wasLookedUp else { return }
        pending.log(.warning, "The state of \(episode.id) isn’t known yet: \(failure)")
        isStateMissing = true
        pending.lookUp([episode.id], for: .lateLoad(loadID), limit: nil)
    }

    /// The library has said what it knows of the episode, or (nil) could not.
    ///
    /// - Parameter state: the newest state of it that is known.
    mutating func found(_ found: WireEpisode?, _ state: WireEpisodeState?, _ pending: inout PendingEffects) {
        // What was changed while the library was asked again is newer than its answer.
        if let state, !wasLookedUp || state.updatedAt >= episodeState.updatedAt { episodeState = state }
        wasLookedUp = !isStateMissing
        if let found { preferFile(of: found.download, &pending) }
    }

    /// Prefers a downloaded file to the stream.
    private mutating func preferFile(of download: WireDownload, _ pending: inout PendingEffects) {
        guard download.state == .downloaded, !download.path.isEmpty, isStream else { return }
        localPath = download.path
        identify(AudioTag(etag: download.etag, size: download.totalBytes), &pending)
    }

    /// The stored state has come after the episode had begun to play: the progress since then is added to it.
    mutating func foundLate(_ state: WireEpisodeState?, _ pending: inout PendingEffects) {
        isStateMissing = false
        wasLookedUp = true
        if episodeState.updatedAt == 0, let state {
            episodeState = state
            if audio.recorded == nil { audio.restore(EpisodeDuration(seconds: state.duration)) }
        }
        // Where nothing was heard yet the stored position is the better one.
        guard position(at: pending.now.monotonic).seconds > tracker.playedFrom.seconds + 0.5 else { return }
        savePosition(&pending)
    }

    /// Makes the load durable, as all is known of it; then the engine opens it.
    ///
    /// - Parameter intro: how many seconds an episode that begins at its start leaves out.
    mutating func begin(at explicit: PlaybackPosition?, intro: Double, _ pending: inout PendingEffects) {
        audio.begins(EpisodeDuration(seconds: episodeState.duration), isAnew: explicit == nil)
        let start = start(explicit: explicit, intro: intro)
        if start != tracker.anchor.position { setAnchor(start, running: false, &pending) }
        engine = status == .paused ? .closed : .awaitingCommit(nil)
        pending.writes.mark(.session)
        pending.commit = true
    }

    /// Where a load begins: where it is told to, else where the episode was left, else at its beginning.
    func start(explicit: PlaybackPosition?, intro: Double) -> PlaybackPosition {
        if let explicit { return explicit }
        let start = PlaybackPosition(clamping: episodeState.position)
        // In its last moment it begins anew. A position beyond its length isn’t a wrong position.
        let isOver = episodeState.duration > 0 && abs(start.seconds - episodeState.duration) < 1
        guard isOver || start == .zero else { return start }
        // Nothing would be left of a shorter one.
        if let duration, intro >= duration.seconds - 1 { return .zero }
        return PlaybackPosition(clamping: intro)
    }
}
