import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension AudioSource {
    var host: String {
        guard case .web(let url) = self else { return description }
        return WebAddress(url)?.host ?? url
    }
}

extension PlaybackSession {
    /// Falls back from a file to its stream, recovers a stream, or fails.
    mutating func recover(from failure: Failure, _ pending: inout PendingEffects) {
        if case .web? = enclosure, localPath != nil, failure.known != .noSoundDevice {
            return playStream(insteadOfFile: failure, &pending)
        }
        // The probe may identify the data that the server sent instead of audio.
        let isForRecovery = failure.retry || failure.known == .decoderFailed
        guard isForRecovery, isStream, status.isUnderWay else { return fail(failure, &pending) }
        perform(recovery.failed(failure, situation(at: pending.now)), &pending)
    }

    mutating func probed(_ serial: UInt64, _ answer: ProbeAnswer, _ pending: inout PendingEffects) {
        perform(recovery.answered(serial, answer, situation(at: pending.now)), &pending)
    }

    mutating func recoveryIsDue(_ pending: inout PendingEffects) {
        perform(recovery.tick(situation(at: pending.now)), &pending)
    }

    /// Handles the computer’s wake: the engine’s position replaces the computed one.
    mutating func woke(_ pending: inout PendingEffects) {
        perform(recovery.woke(situation(at: pending.now)), &pending)
        guard engine.hasFile else { return }
        tracker.hasSlept = true
        pending.command(.sample)
    }

    mutating func perform(_ actions: [StreamRecovery.Action], _ pending: inout PendingEffects) {
        for action in actions {
            switch action {
            case .askServer: askServer(&pending)
            case .recover(let failure): recover(from: failure, &pending)
            case .awaitServer: closeAndWait(&pending)
            case .awaitRetry(let retry):
                let wait = Int(retry.wait / .seconds(1))
                let again = "Retry \(retry.attempt) of \(retry.of) in \(wait) s."
                pending.log(.warning, "\(episode.id): \(retry.failure) \(again)")
                closeAndWait(&pending)
            case .open:
                pending.state = true
                open(&pending)
            case .stayPaused(let failure): pauseAfterFailure(failure, &pending)
            case .fail(let failure, let mayReturn): fail(failure, mayReturn: mayReturn, &pending)
            case .resume: serverReturned(&pending)
            case .stopWaiting:
                pending.log(.info, "\(episode.id): the server has been unavailable for too long; playback won’t resume")
                withdrawAutoResumeNotice(&pending)
            case .identify(let tag): identify(tag, &pending)
            }
        }
    }

    private mutating func askServer(_ pending: inout PendingEffects) {
        guard case .web(let url)? = source else { return }
        let serial = pending.nextSerial()
        recovery.asked(serial: serial, now: pending.now.monotonic)
        pending.perform(.probe(loadID, url: url, podcast: episode.podcastID, serial: serial))
    }

    /// Closes the stream until the server has answered or a retry is due.
    private mutating func closeAndWait(_ pending: inout PendingEffects) {
        closeFile(&pending)
        setAnchor(position(at: pending.now.monotonic), running: false, &pending)
        status = .loading(plays: status.willPlay)
        savePosition(&pending)
    }

    /// Closes an episode that was paused before it was open and can’t be opened now.
    private mutating func pauseAfterFailure(_ failure: Failure, _ pending: inout PendingEffects) {
        closeFile(&pending)
        status = .paused
        pending.log(.warning, "\(episode.id): \(failure) It is paused.")
        pending.saveSession()
    }

    private mutating func closeFile(_ pending: inout PendingEffects) {
        if engine.hasFile { pending.command(.unload) }
        engine = .closed
        if case .failed = lookup { lookup = .failed(wasOpened: false) }
        buffering = false
        recovery.closed()
    }

    // MARK: A server that is available again

    private mutating func serverReturned(_ pending: inout PendingEffects) {
        pending.log(.info, "\(episode.id): the server is available again; playback resumes")
        status = .loading(plays: true)
        tracker.resumed()
        lookUpAgain(at: tracker.anchor.position, &pending)
        pending.saveSession()
    }

    mutating func stopProbing(_ pending: inout PendingEffects) {
        if recovery.stopProbing() { withdrawAutoResumeNotice(&pending) }
    }

    /// Removes the notice from the alerts and from the published failure, which has it only while the server is probed.
    private func withdrawAutoResumeNotice(_ pending: inout PendingEffects) {
        pending.withdraw(recovery.limits.autoResumeNotice)
        pending.state = true
    }

    // MARK: Downloaded files

    /// Plays the stream from the same position because the downloaded file is missing or broken.
    private mutating func playStream(insteadOfFile failure: Failure, _ pending: inout PendingEffects) {
        let position = position(at: pending.now.monotonic)
        closeFile(&pending)
        localPath = nil
        if status == .playing { status = .loading(plays: true) }
        if status.isUnderWay {
            setAnchor(position, running: false, &pending)
            open(&pending)
        }
        pending.raise(
            "playsStream", about: self, title: "The stream plays instead of the file",
            "The downloaded file of “\(episode.title)” can’t be used, so it is streamed from \(ClockText.format(position.seconds)): \(failure.message)",
            .warning, actions: ["dismiss"])
        pending.saveSession()
    }

    // MARK: Identity of the audio

    /// Compares the audio of the source with the audio that was begun.
    mutating func identify(_ tag: AudioTag, _ pending: inout PendingEffects) {
        guard !tag.text.isEmpty else { return }
        let begun = AudioTag(stored: episodeState.audioTag)
        audio.identify(tag, begun: begun)
        let position = position(at: pending.now.monotonic)
        let isBegun = position.seconds > 1 || episodeState.position > 1
        if engine == .open { keepTag() }
        if tag.text == begun.text { pending.endAlerts(.code("audioChanged")) }
        guard tag.differs(from: begun), !audio.acceptsReplacement, isBegun else { return }
        pending.raise(
            "audioChanged", about: self, title: "The audio has changed",
            "“\(episode.title)” is a different file now, so its audio at \(ClockText.format(position.seconds)) may differ.",
            .info, actions: ["dismiss"])
        pending.commit = true
    }

    mutating func keepTag() {
        if let tag = audio.newTag(insteadOf: episodeState.audioTag) { episodeState.audioTag = tag }
    }
}
