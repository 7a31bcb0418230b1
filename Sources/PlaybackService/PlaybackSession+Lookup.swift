import OwnerKit
import PodcastModel
import WireMessages

// What the library knows of the loaded episode.
extension PlaybackSession {
    /// What is loaded goes on once the library has said what there is of it now: at a position, or (nil) where it was left.
    mutating func lookUpAgain(at explicit: PlaybackPosition?, _ pending: inout PendingEffects) {
        engine = .lookingUp(nil, explicit: explicit)
        pending.lookUp(episode.id, as: PlaybackMachine.lookup(loadID))
    }

    /// A process that died before the library had told it of a load has stored what came with that, which may be long past,
    /// and where somebody wanted to be in it.
    mutating func lookUpIfUnknown(_ pending: inout PendingEffects) {
        guard episodeState.updatedAt == 0, status == .paused else { return }
        let position = tracker.anchor.position
        lookUpAgain(at: position.seconds == episodeState.position ? nil : position, &pending)
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

    /// What was downloaded is played rather than streamed.
    private mutating func preferFile(of download: WireDownload, _ pending: inout PendingEffects) {
        guard download.state == .downloaded, !download.path.isEmpty, isStream else { return }
        localPath = download.path
        identify(AudioTag(etag: download.etag, size: download.totalBytes), &pending)
    }

    /// What is stored of the episode has come after it had begun to play: what was heard meanwhile is added to it.
    mutating func foundLate(_ state: WireEpisodeState?, _ pending: inout PendingEffects) {
        isStateMissing = false
        wasLookedUp = true
        if episodeState.updatedAt == 0, let state {
            episodeState = state
            if audio.recorded == nil { audio.restore(EpisodeDuration(seconds: state.duration)) }
        }
        // Where nothing was heard yet the stored place is the better one.
        guard position(at: pending.now.monotonic).seconds > tracker.playedFrom.seconds + 0.5 else { return }
        savePosition(&pending)
    }

    /// All is known: the load becomes durable, then the engine opens it.
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
        // In its last moment it begins anew. A place behind its length is no error of the place.
        let isOver = episodeState.duration > 0 && abs(start.seconds - episodeState.duration) < 1
        guard isOver || start == .zero else { return start }
        // Nothing would be left of a shorter one.
        if let duration, intro >= duration.seconds - 1 { return .zero }
        return PlaybackPosition(clamping: intro)
    }
}
