import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackSession {
    /// The time after a seek during which waiting for data isn’t shown.
    private static let seeksQuietly = Duration.seconds(1)

    /// Makes the engine open the audio at the current position.
    mutating func open(_ pending: inout PendingEffects) {
        guard !pending.isStopping else { return }
        guard let source else { return failUnplayable(&pending) }
        engine = .opening
        audio.opens(isStream: isStream)
        pending.opensEngine = true
        perform(recovery.opens(host: isStream ? source.host : nil, now: pending.now.monotonic), &pending)
        let serial = pending.nextSerial()
        tracker.opens(serial: serial)
        pending.command(
            .open(
                EngineLoad(
                    id: loadID, source: source, start: tracker.anchor.position, paused: !status.willPlay, speed: speed,
                    serial: serial, podcast: episode.podcastID)))
    }

    /// Handles the outcome of a transaction, if the session waits for it.
    mutating func concluded(_ transaction: TransactionID, isSaved: Bool, _ pending: inout PendingEffects) {
        guard engine == .awaitingCommit(transaction) else { return }
        guard isSaved || resumedAt == nil else {
            // The episode may crash the process again, which can’t be detected without a saved session.
            engine = .closed
            status = .paused
            pending.state = true
            return
        }
        open(&pending)
    }

    private mutating func failUnplayable(_ pending: inout PendingEffects) {
        do throws(Failure) {
            _ = try AudioSource(enclosure: episode.enclosureURL)
            fail(Failure(.episodeUnavailable, "The episode has no playable audio."), &pending)
        } catch {
            fail(error, &pending)
        }
    }

    /// Handles that the audio is open, and returns whether it is the episode’s.
    mutating func opened(_ duration: MeasuredDuration?, _ pending: inout PendingEffects) -> Bool {
        engine = .open
        if case .failed = lookup { lookup = .failed(wasOpened: true) }
        recovery.opened()
        if let failure = replacedAudioFailure(duration) {
            reject(failure, &pending)
            return false
        }
        keepTag()
        audio.measured = duration
        pending.state = true
        if status == .loading(plays: false) {
            status = .paused
            pending.endAlerts(.resumed(loadID))
        }
        let position = tracker.anchor.position
        if let start = audio.start(insteadOf: position) {
            if start == .zero, position > start, !audio.acceptsReplacement {
                reportRestart(from: position.seconds, &pending)
            }
            move(to: start, &pending)
        }
        return true
    }

    mutating func measured(_ measured: MeasuredDuration, _ pending: inout PendingEffects) {
        let before = duration?.seconds ?? 0
        audio.measured = measured
        // Without a minimum step, a growing length would publish a state each second.
        let step = measured.source == .partial ? 10.0 : 0.5
        if abs((duration?.seconds ?? 0) - before) >= step { pending.state = true }
    }

    /// Handles the engine’s progress, and returns whether the sound server has accepted no sound for too long.
    mutating func progressed(_ progress: EngineProgress, _ pending: inout PendingEffects) -> Bool {
        guard !tracker.isOutdated(progress) else { return false }
        let now = pending.now.monotonic
        if let failure = recovery.starves(progress, isExpected: isStream && status.willPlay, now: now) {
            recover(from: failure, &pending)
            return false
        }
        guard tracker.reached(progress) else {
            // Until the seek is completed the position is stale, but waiting for data is shown.
            if status == .playing, recovery.isStarving(for: Self.seeksQuietly, now: now) {
                setBuffering(true, &pending)
            }
            return false
        }
        switch status {
        case .loading(plays: true):
            guard progress.running else {
                setBuffering(progress.buffering, &pending)
                return false
            }
            status = .playing
            buffering = false
            setAnchor(progress.position, running: true, at: progress.at, pace: progress.speed, &pending)
            pending.endAlerts(.resumed(loadID))
        case .playing:
            if progress.running { recovery.played(to: progress.position) }
            if standstill.isStalled(at: progress.position, isRunning: progress.running, now: progress.at) {
                return true
            }
            setBuffering(progress.buffering && !progress.running, &pending)
            guard tracker.differs(progress, from: position(at: progress.at)) else { return false }
            let pace = progress.speed ?? tracker.anchor.speed
            setAnchor(progress.position, running: progress.running, at: progress.at, pace: pace, &pending)
        case .paused:
            guard tracker.hasSettledElsewhere(progress, now: now) else { return false }
            setAnchor(progress.position, running: false, &pending)
            savePosition(&pending)
        case .loading, .finished, .failed:
            break
        }
        return false
    }

    private mutating func setBuffering(_ buffering: Bool, _ pending: inout PendingEffects) {
        guard self.buffering != buffering else { return }
        self.buffering = buffering
        pending.state = true
    }

    // MARK: The end

    /// Handles the end of the engine’s audio. Only a confirmed end finishes the episode.
    mutating func ended(_ end: ReportedEnd, _ pending: inout PendingEffects) {
        guard tracker.hasReachedSeek else { return }
        if let failure = replacedAudioFailure(end.measured) { return reject(failure, &pending) }
        audio.measured = end.measured ?? audio.measured
        if let position = audio.resumption(afterEnd: end, playedFrom: tracker.playedFrom) {
            return move(to: position, &pending)
        }
        guard end.isConfirmed(announced: audio.announced) else {
            // The later position is kept if the audio is shorter now than the part that was heard.
            setAnchor(max(end.position, tracker.playedFrom), running: false, &pending)
            let reason = end.cut ? "The stream was cut off." : "The audio ended too early."
            return recover(from: Failure(.endedEarly, reason), &pending)
        }
        finish(at: end.position, reason: "heard to its end" + remark(on: end.position), &pending)
    }

    /// Returns a remark for the log if the episode is much shorter than its feed announces.
    private func remark(on end: PlaybackPosition) -> String {
        guard let announced = audio.announced?.seconds, end.seconds < announced / 2 else { return "" }
        return " at \(ClockText.format(end.seconds)), although its feed announces \(ClockText.format(announced))"
    }

    private mutating func replacedAudioFailure(_ measured: MeasuredDuration?) -> Failure? {
        audio.replacement(
            measured, playedFrom: tracker.playedFrom, isHeard: tracker.isPlayedUpToHere, title: episode.title)
    }

    /// Handles audio that doesn’t contain the position: another attempt, or the stream instead of the file, may get the
    /// episode’s audio, unless the position is beyond the end of every audio.
    private mutating func reject(_ failure: Failure, _ pending: inout PendingEffects) {
        if failure.retry || localPath != nil { recover(from: failure, &pending) } else { fail(failure, &pending) }
    }

    /// Finishes the episode, which was played to its end or to its outro.
    mutating func finish(at position: PlaybackPosition, reason: String, _ pending: inout PendingEffects) {
        episodeState = episodeState.marked(played: true, keepsPosition: false, reason: reason, now: pending.now)
        if let duration { episodeState.duration = duration.seconds }
        let end = duration.flatMap { PlaybackPosition(seconds: $0.seconds) } ?? position
        status = .finished
        engine = .closed
        buffering = false
        resumedAt = nil
        recovery.end()
        setAnchor(end, running: false, &pending)
        pending.command(.unload)
        pending.endAlerts(.resumed(loadID))
        pending.hasEnded = true
        pending.writes.markEnd()
        pending.writes.mark(.session)
        pending.writes.mark(episodeState)
        pending.commit = true
    }

    /// Stops playback because of a failure; the position is kept, and an alert offers to retry.
    ///
    /// - Parameter mayReturn: whether playback resumes by itself when the server is available again.
    mutating func fail(_ failure: Failure, mayReturn: Bool = false, _ pending: inout PendingEffects) {
        let awaitedServer = recovery.awaitsServer
        setAnchor(position(at: pending.now.monotonic), running: false, &pending)
        if engine.hasFile { pending.command(.unload) }
        status = .failed(failure)
        tracker.paused(now: pending.now)
        engine = .closed
        buffering = false
        if !mayReturn { recovery.end() }
        markPosition(&pending)
        if audio.isReplaced { pending.endAlerts(.code("audioChanged")) }
        if awaitedServer, !mayReturn { pending.endAlerts(.code(FailureCode.streamFailed.rawValue)) }
        let actions = audio.isReplaced ? ["retry", "accept", "skip", "dismiss"] : ["retry", "skip", "dismiss"]
        var advice = ""
        if audio.isReplaced {
            advice = " Answer `accept` to play the audio anyway; a position beyond its end is dropped."
        } else if mayReturn {
            advice = recovery.limits.autoResumeNotice
        }
        let title = "“\(episode.title)”"
        let isNamed = episode.title.isEmpty || failure.message.contains(title)
        pending.raise(
            failure.code, about: self, title: mayReturn ? PlayerAlerts.interruptedTitle : PlayerAlerts.stoppedTitle,
            (isNamed ? "" : title + ": ") + failure.message + advice, .error, actions: actions)
        pending.commit = true
    }
}
