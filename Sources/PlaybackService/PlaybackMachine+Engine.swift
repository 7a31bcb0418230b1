import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Takes in what the engine reports; what it says of another load than the present one is past.
    mutating func handle(_ event: EngineEvent) {
        switch event {
        case .opened(let load, let audio): if isOpen(load) { handleOpened(audio) }
        case .measured(let load, let measured): if isOpen(load) { handleMeasured(measured) }
        case .progress(let load, let progress): if isOpen(load) { handleProgress(progress) }
        case .ended(let load, let end): if isOpen(load) { handleEnd(end) }
        case .failed(let load, let failure): if isOpen(load) { recover(from: failure) }
        case .outputs(let outputs): handleOutputs(outputs)
        case .pong(let number): liveness.answer(number)
        case .unusable(let failure):
            liveness.reset()
            refuseListings(failure)
            if session?.engine == .open { fail(failure) }
        }
    }

    func isOpen(_ load: LoadID) -> Bool { session?.loadID == load && session?.engine == .open }

    private mutating func handleOpened(_ audio: OpenedAudio) {
        guard let session else { return }
        self.session?.isOpened = true
        self.session?.recovery.opened()
        if let failure = replacedAudioFailure(audio.duration) { return recover(from: failure) }
        keepTag()
        self.session?.audio.measured(audio.duration)
        let marks = audio.chapters.map { ChapterMark(start: $0.start, title: $0.title) }
        let end = audio.duration.flatMap { $0.source == .growing ? nil : $0.duration }
        for episode in chapters.opened(marks, of: session.episode, duration: end, now: now.wall) {
            book.mark(.chapters(episode))
            pending.commit = true
        }
        pending.state = true
        if session.status == .loading(plays: false) {
            self.session?.status = .paused
            endAlerts(of: session.loadID)
        }
        if let start = self.session?.audio.start(insteadOf: session.tracker.anchor.position) { move(to: start) }
    }

    private mutating func handleMeasured(_ measured: MeasuredDuration) {
        let before = session?.duration?.seconds ?? 0
        session?.audio.measured(measured)
        // A length that grows while the file is read is not worth a message a second.
        let step = measured.source == .growing ? 10.0 : 0.5
        if abs((session?.duration?.seconds ?? 0) - before) >= step { pending.state = true }
    }

    private mutating func handleProgress(_ progress: EngineProgress) {
        // What was said of it before it was closed and opened again is past.
        guard let session, !session.tracker.isOutdated(progress) else { return }
        let isExpected = session.isStream && session.wantsToPlay
        let starvation = self.session?.recovery.starves(progress, isExpected: isExpected, now: now.monotonic)
        if let failure = starvation ?? nil { return recover(from: failure) }
        guard self.session?.tracker.reached(progress) == true else { return handleSeeking(progress) }
        switch session.status {
        case .loading(plays: true):
            guard progress.running else { return setBuffering(progress.buffering) }
            self.session?.status = .playing
            self.session?.buffering = false
            setAnchor(progress.position, running: true, at: progress.at, pace: progress.speed)
            endAlerts(of: session.loadID)
        case .playing:
            if progress.running { self.session?.recovery.played(to: progress.position) }
            guard !standsStill(at: progress) else { return engineHangs() }
            setBuffering(progress.buffering && !progress.running)
            let isOff = self.session?.tracker.isOff(progress, from: session.position(at: progress.at)) == true
            guard isOff else { return }
            let pace = progress.speed ?? session.tracker.anchor.speed
            setAnchor(progress.position, running: progress.running, at: progress.at, pace: pace)
        case .paused:
            guard session.tracker.hasComeToRest(elsewhere: progress, now: now.monotonic) else { return }
            setAnchor(progress.position, running: false)
            savePosition()
        case .loading, .finished, .failed:
            break
        }
    }

    /// The place that was sought is not reached yet: where the engine is says nothing, but that data is waited for is seen.
    private mutating func handleSeeking(_ progress: EngineProgress) {
        guard let session, session.status == .playing,
            session.recovery.isStarving(for: Self.seeksQuietly, now: now.monotonic)
        else { return }
        setBuffering(true)
    }

    private mutating func setBuffering(_ buffering: Bool) {
        guard session?.buffering != buffering else { return }
        session?.buffering = buffering
        pending.state = true
    }

    // MARK: The end

    /// An end is believed only when it is proven: everything that follows a finished episode follows from here.
    private mutating func handleEnd(_ end: EndOfFile) {
        guard let session, session.tracker.hasReachedSeek else { return }
        if let failure = replacedAudioFailure(end.measured) { return recover(from: failure) }
        self.session?.audio.measured(end.measured ?? session.audio.measured)
        let resumption = self.session?.audio.resumption(afterEnd: end, playedFrom: session.tracker.playedFrom)
        if let position = resumption ?? nil { return move(to: position) }
        guard end.isProven(announced: session.audio.announced) else {
            // Where less of it is left than was heard before, the place is still that.
            setAnchor(max(end.position, session.tracker.playedFrom), running: false)
            // Which episode it is, and where, is shown beside it.
            return recover(from: Failure(.endedEarly, end.cut ? "Its stream was cut." : "Its audio ended too early."))
        }
        finish(at: end.position, reason: "heard to its end" + remark(on: end.position))
    }

    /// That it is much shorter than its feed says, which may be wrong about it, or have been right.
    private func remark(on end: PlaybackPosition) -> String {
        guard let announced = session?.audio.announced?.seconds, end.seconds < announced / 2 else { return "" }
        return
            " at \(ClockText.format(end.seconds)), where its feed says that it is \(ClockText.format(announced)) long"
    }

    /// Why what is open is not the episode, if something stands in its place.
    private mutating func replacedAudioFailure(_ measured: MeasuredDuration?) -> Failure? {
        guard let session else { return nil }
        let playedFrom = session.tracker.playedFrom
        return self.session?.audio.replacement(measured, playedFrom: playedFrom, title: session.episode.title)
    }

    /// It has been heard to its end, or to where its listener wants it to end.
    mutating func finish(at position: PlaybackPosition, reason: String) {
        guard let session else { return }
        var episodeState = session.episodeState.marked(played: true, keepsPosition: false, reason: reason, now: now)
        if let duration = session.duration { episodeState.duration = duration.seconds }
        self.session?.episodeState = episodeState
        self.session?.status = .finished
        self.session?.engine = .closed
        self.session?.buffering = false
        self.session?.resumedAt = nil
        self.session?.recovery.end()
        setAnchor(session.duration.flatMap { PlaybackPosition(seconds: $0.seconds) } ?? position, running: false)
        pending.perform(.engine(.unload))
        endAlerts(of: session.loadID)
        perform(sleepTimer.episodeEnded())
        unsavedEnd = .due
        book.mark(.session)
        book.mark(episodeState)
        pending.commit = true
    }

    /// It cannot go on: the position is kept, and an alert offers to try again.
    ///
    /// - Parameter mayReturn: whether it goes on by itself when its server is back.
    mutating func fail(_ failure: Failure, mayReturn: Bool = false) {
        guard let session else { return }
        setAnchor(session.position(at: now.monotonic), running: false)
        if session.engine == .open { pending.perform(.engine(.unload)) }
        self.session?.status = .failed(failure)
        self.session?.tracker.paused(now: now)
        self.session?.engine = .closed
        self.session?.buffering = false
        if !mayReturn { self.session?.recovery.end() }
        markPosition()
        // The failure says more.
        if session.audio.isReplaced { endAlerts(code: "audioChanged") }
        if session.recovery.awaitsServer, !mayReturn { endAlerts(code: FailureCode.streamFailed.rawValue) }
        let actions = session.audio.isReplaced ? ["retry", "accept", "skip", "dismiss"] : ["retry", "skip", "dismiss"]
        var advice = ""
        if session.audio.isReplaced {
            advice = " Answer `accept` to play it all the same; a place that it does not have is given up."
        } else if mayReturn {
            advice = returnPromise
        }
        let title = "“\(session.episode.title)”"
        let isNamed = session.episode.title.isEmpty || failure.message.contains(title)
        raise(
            failure.code, title: "Playback stopped", (isNamed ? "" : title + ": ") + failure.message + advice, .error,
            actions: actions)
        pending.commit = true
    }
}
