import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackSession {
    /// A second crash on an episode within this time leaves it paused.
    private static let crashWindow = Duration.seconds(60)

    mutating func pause(_ pending: inout PendingEffects) {
        let hasFile = engine.hasFile
        switch status {
        case .playing,
            .loading(plays: true) where engine == .open:
            let position = position(at: pending.now.monotonic)
            status = .paused
            buffering = false
            tracker.paused(now: pending.now, settles: true)
            setAnchor(position, running: false, &pending)
            savePosition(&pending)
        case .loading(plays: true):
            // A session that waits for a retry is closed, and is paused at once.
            status = engine == .closed ? .paused : .loading(plays: false)
            recovery.end()
            tracker.paused(now: pending.now)
            if engine == .closed { markPosition(&pending) }
            pending.saveSession()
        case .loading, .paused, .failed, .finished:
            return
        }
        if hasFile { pending.command(.setPaused(true)) }
    }

    /// Pauses at a position because the sound device was lost.
    mutating func pauseWithoutDevice(at position: PlaybackPosition, _ pending: inout PendingEffects) {
        pause(&pending)
        pausedBy = .soundDevice
        guard engine == .open else { return }
        setAnchor(position, running: false, &pending)
        seekEngine(to: position, &pending)
        savePosition(&pending)
    }

    mutating func keepPaused(_ pending: inout PendingEffects) {
        guard pausedBy == .soundDevice else { return }
        pausedBy = .somebody
        pending.saveSession()
    }

    /// Resumes some seconds before the position of the pause, more after a longer pause; exactly there if nothing was
    /// heard at that position.
    ///
    /// - Parameters:
    ///   - rewind: the maximum number of seconds to rewind.
    ///   - reloadsOutput: whether the output is reopened, because there may be a device now.
    mutating func resume(rewind: Double, reloadsOutput: Bool, _ pending: inout PendingEffects) {
        if isResting, tracker.isPlayedUpToHere, !isBeingLookedUp, let pausedAt = tracker.pausedAt {
            let pause = pending.now.wall.seconds - pausedAt.seconds
            let rewind = Rewind.seconds(pause: pause, limit: rewind)
            let position = position(at: pending.now.monotonic)
            if rewind > 0, position > .zero {
                move(to: PlaybackPosition(clamping: position.seconds - rewind), &pending)
            }
        }
        play(reloadsOutput: reloadsOutput, &pending)
    }

    mutating func play(reloadsOutput: Bool, _ pending: inout PendingEffects) {
        skippedAlert = nil
        tracker.resumed()
        pausedBy = .somebody
        var opens = false
        switch status {
        case .loading where recovery.isWaitingToRetry:
            status = .loading(plays: true)
            perform(recovery.retryNow(), &pending)
        case .playing, .finished, .loading(plays: true):
            return
        case .loading:
            status = .loading(plays: true)
            if engine.hasFile { pending.command(.setPaused(false)) }
        case .paused where engine.hasFile:
            status = .playing
            if reloadsOutput { pending.command(.reloadOutput) }
            pending.command(.setPaused(false))
        case .paused where isBeingLookedUp:
            status = .loading(plays: true)
        case .paused, .failed:
            recovery.end()
            status = .loading(plays: true)
            setAnchor(position(at: pending.now.monotonic), running: false, &pending)
            opens = true
        }
        pending.endAlerts(.resumed(loadID))
        // A stream may have been downloaded since it was loaded.
        if opens, isStream {
            lookUpAgain(at: tracker.anchor.position, &pending)
        } else if opens {
            open(&pending)
        }
        pending.saveSession()
    }

    /// Resumes an episode that was playing, or waiting for a sound device, when the process ended in a running fleet.
    ///
    /// - Returns: whether playback resumes; it doesn’t after a second crash within a minute.
    mutating func resumePlayback(afterCrash: Bool, _ pending: inout PendingEffects) -> Bool {
        let now = pending.now.monotonic
        pending.writes.mark(.session)
        pending.commit = true
        if afterCrash, let before = resumedAt, now.since(before) < Self.crashWindow {
            resumedAt = nil
            pending.raise(
                "playbackCrashed", about: self, title: "Playback crashed twice",
                "The player crashed twice within a minute at “\(episode.title)”, which is now paused.",
                .error, actions: ["resume", "dismiss"])
            return false
        }
        if afterCrash { resumedAt = now }
        status = .loading(plays: true)
        if !isBeingLookedUp { engine = .awaitingCommit(nil) }
        tracker.resumed(isRestored: true)
        return true
    }

    /// Pauses playback and closes the file.
    mutating func stop(_ pending: inout PendingEffects) {
        switch status {
        case .playing, .loading, .paused: break
        case .failed, .finished: return
        }
        if engine.hasFile { pending.command(.unload) }
        let wasPaused = status == .paused
        let isClosing = engine.hasFile || !wasPaused || pausedBy != .stop
        if case .lookingUp(let request, let explicit) = engine {
            if let request {
                pending.refuse(request, Failure(.nothingLoaded, "Playback was stopped before the episode was open."))
            }
            // The position at which playback resumes is unknown before the library’s answer.
            engine = .lookingUp(nil, explicit: explicit)
        } else {
            engine = .closed
        }
        let position = position(at: pending.now.monotonic)
        status = .paused
        pausedBy = .stop
        buffering = false
        recovery.end()
        if !wasPaused { tracker.paused(now: pending.now) }
        if isClosing {
            setAnchor(position, running: false, &pending)
            savePosition(&pending)
        }
    }

    /// Closes the session before it is unloaded, and returns the episode’s state.
    mutating func leave(_ pending: inout PendingEffects) -> WireEpisodeState {
        if lookup == .failed(wasOpened: true) { lookup = .answered }
        markPosition(&pending)
        if engine.hasFile { pending.command(.unload) }
        if case .lookingUp(let request?, _) = engine {
            pending.refuse(request, Failure(.revisionMismatch, "Something else was loaded in the meantime."))
        }
        pending.endAlerts(.left(loadID))
        return episodeState
    }

    /// Stops the engine when the process ends; the session is stored as playing, so that the next process resumes it.
    mutating func processStops(_ pending: inout PendingEffects) {
        if engine.hasFile { pending.command(.unload) }
        markPosition(&pending)
        setAnchor(position(at: pending.now.monotonic), running: false, &pending)
        engine = .closed
        recovery.end()
        pending.commit = true
    }

    // MARK: Seeking

    /// Seeks to a position; the anchor advances again when the engine reports that the audio plays.
    mutating func move(to position: PlaybackPosition, _ pending: inout PendingEffects) {
        setAnchor(position, running: false, &pending)
        tracker.moved(to: position)
        recovery.moved(to: position)
        pending.movedTo = position
        if engine.hasFile {
            seekEngine(to: position, &pending)
        } else if case .lookingUp(let request, _) = engine {
            engine = .lookingUp(request, explicit: position)
        }
        savePosition(&pending)
    }

    /// Makes the engine seek; its reports before the seek is done are stale.
    private mutating func seekEngine(to position: PlaybackPosition, _ pending: inout PendingEffects) {
        let serial = pending.nextSerial()
        tracker.requestedSeek = serial
        pending.command(.seek(position, serial: serial))
    }

    /// Publishes a new anchor.
    ///
    /// - Parameter pace: the speed at which the anchor advances; nil means the speed that is set.
    mutating func setAnchor(
        _ position: PlaybackPosition, running: Bool, at time: MonotonicTime? = nil, pace: PlaybackSpeed? = nil,
        _ pending: inout PendingEffects
    ) {
        tracker.fix(position, running: running, speed: pace ?? speed, at: time, now: pending.now)
        pending.state = true
    }

    /// Sets another speed. Buffered sound still plays at the old one; the engine reports when the new one is heard.
    mutating func setSpeed(_ speed: PlaybackSpeed, _ pending: inout PendingEffects) {
        self.speed = speed
        let isHeard = engine.hasFile && tracker.anchor.running
        if !isHeard {
            setAnchor(position(at: pending.now.monotonic), running: tracker.anchor.running, &pending)
        }
        if engine.hasFile { pending.command(.setSpeed(speed)) }
        markPosition(&pending)
    }

    // MARK: Saving

    /// Marks the position as unsaved: in the session, and in the episode’s state unless it is at the very start or end.
    mutating func markPosition(_ pending: inout PendingEffects) {
        guard status != .finished else { return }
        pending.writes.mark(.session)
        // The stored state isn’t known yet, and must not be overwritten.
        guard isStateKnown else { return }
        let position = position(at: pending.now.monotonic).seconds
        if audio.measured?.source == .declared, let end = duration?.seconds, position >= end - 0.5 { return }
        guard position > 0 || episodeState.position > 0 else { return }
        var state = episodeState
        state.position = position
        if let duration = audio.confirmedDuration {
            state.duration = duration.seconds
        } else if position > state.duration + 1 {
            // The episode is longer than its stored length.
            state.duration = 0
        }
        // An unchanged state keeps its time, so that it isn’t newer than a state from elsewhere.
        let isNewTag = audio.saved()
        guard state != episodeState || isNewTag else { return }
        state.updatedAt = pending.now.wall.milliseconds
        episodeState = state
        pending.writes.mark(state)
    }

    /// Marks the position as unsaved and saves it now.
    mutating func savePosition(_ pending: inout PendingEffects) {
        markPosition(&pending)
        pending.commit = true
    }

    /// Marks the episode as played because it has reached its `playedThreshold`; playback continues.
    mutating func countAsPlayed(_ settings: OwnerSettings, _ pending: inout PendingEffects) {
        guard !episodeState.played else { return }
        let threshold = settings.value(.playedThreshold, podcast: episode.podcastID)
        let reason = threshold.hasSuffix("%") ? "\(threshold) of it heard" : "heard to within \(threshold) s of its end"
        episodeState = episodeState.marked(played: true, keepsPosition: true, reason: reason, now: pending.now)
        pending.writes.mark(episodeState)
        savePosition(&pending)
    }

    mutating func mark(as state: WireEpisodeState, _ pending: PendingEffects) {
        episodeState = state
        tracker.marked(played: state.played, at: position(at: pending.now.monotonic))
    }

    mutating func rollBack(_ mark: EpisodeMark) {
        guard mark.after.episode == episode.id, let unplayedFrom = mark.unplayedFrom else { return }
        episodeState = mark.rolledBack(from: episodeState)
        tracker.marked(played: false, at: unplayedFrom)
    }
}
