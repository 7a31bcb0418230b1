import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension AudioSource {
    /// The server of a web address; the path of a file.
    var host: String {
        guard case .web(let url) = self else { return description }
        return WebAddress(url)?.host ?? url
    }
}

// What becomes of audio that can’t go on as it is.
extension PlaybackMachine {
    /// The stream in place of a file, what `StreamRecovery` decides about a stream, or the end.
    mutating func recover(from failure: Failure) {
        guard let session else { return }
        if case .web? = session.enclosure, session.localPath != nil, failure.known != .noSoundDevice {
            return playStream(insteadOfFile: failure)
        }
        // What is no audio the server may have named.
        let isForRecovery = failure.retry || failure.known == .decoderFailed
        guard isForRecovery, session.isStream, session.status.isUnderWay else { return fail(failure) }
        perform(self.session?.recovery.failed(failure, session.situation(at: now)))
    }

    mutating func handleProbe(_ load: LoadID, _ serial: UInt64, _ answer: ProbeAnswer) {
        guard let session, session.loadID == load else { return }
        perform(self.session?.recovery.answered(serial, answer, session.situation(at: now)))
    }

    /// The timer of the recovery has gone off.
    mutating func recoveryIsDue() {
        guard let session else { return }
        perform(self.session?.recovery.tick(session.situation(at: now)))
    }

    mutating func perform(_ actions: [StreamRecovery.Action]?) {
        for action in actions ?? [] {
            guard let session else { return }
            switch action {
            case .askServer: askServer(of: session)
            case .recover(let failure): recover(from: failure)
            case .awaitServer: closeAndWait()
            case .awaitRetry(let retry):
                let wait = Int(retry.wait / .seconds(1))
                let again = "Retry \(retry.attempt) of \(retry.of) in \(wait) s."
                pending.logs.append((.warning, "\(session.episode.id): \(retry.failure) \(again)"))
                closeAndWait()
            case .open:
                pending.state = true
                openEngine()
            case .stayPaused(let failure): pauseAfterFailure(failure)
            case .fail(let failure, let mayReturn): fail(failure, mayReturn: mayReturn)
            case .playOn: serverReturned()
            case .giveUp:
                pending.logs.append(
                    (.info, "\(session.episode.id): its server has been away for too long; it stays stopped"))
                withdrawPromises()
            case .identify(let tag): identify(tag)
            }
        }
    }

    /// Asks the server of the loaded stream which audio it has.
    private mutating func askServer(of session: PlaybackSession) {
        guard case .web(let url)? = session.source else { return }
        let serial = nextSerial()
        self.session?.recovery.asked(serial: serial, now: now.monotonic)
        pending.perform(.probe(session.loadID, url: url, podcast: session.episode.podcastID, serial: serial))
    }

    /// The stream is closed where it is, until something is known or due.
    private mutating func closeAndWait() {
        guard let session else { return }
        closeFile()
        setAnchor(session.position(at: now.monotonic), running: false)
        self.session?.status = .loading(plays: session.wantsToPlay)
        savePosition()
    }

    /// What was paused before it was open, and cannot be opened now, is closed.
    private mutating func pauseAfterFailure(_ failure: Failure) {
        closeFile()
        session?.status = .paused
        pending.logs.append((.warning, "\(session?.episode.id ?? ""): \(failure) It is paused."))
        saveSession()
    }

    mutating func closeFile() {
        if session?.engine == .open { pending.perform(.engine(.unload)) }
        session?.engine = .closed
        session?.isOpened = false
        session?.buffering = false
        session?.recovery.closed()
    }

    // MARK: The return of the server

    /// What has failed plays on.
    private mutating func serverReturned() {
        guard let session else { return }
        pending.logs.append((.info, "\(session.episode.id): its server is back; it plays on"))
        self.session?.status = .loading(plays: true)
        self.session?.tracker.resumed()
        // Its alert ends when it plays.
        lookUpAgain(at: session.tracker.anchor.position)
        saveSession()
    }

    /// The server is asked no more, which its alert then doesn’t promise either.
    mutating func forgetServer() {
        if session?.recovery.forgetServer() == true { withdrawPromises() }
    }

    /// What a failure’s alert says while its server is asked.
    var returnPromise: String {
        let minutes = Int(context.limits.comebackWindow / .seconds(60))
        return " It plays on by itself if its server is back within \(minutes) min."
    }

    /// No alert says any more that it plays on by itself.
    mutating func withdrawPromises() {
        for (id, record) in alerts.sorted(by: { $0.key < $1.key }) where record.alert.message.hasSuffix(returnPromise) {
            reword(id, String(record.alert.message.dropLast(returnPromise.count)))
        }
    }

    // MARK: Files of one's own

    /// What was downloaded is played rather than streamed.
    mutating func preferFile(of download: WireDownload) {
        guard download.state == .downloaded, !download.path.isEmpty, session?.isStream == true else { return }
        session?.localPath = download.path
        identify(AudioTag(etag: download.etag, size: download.totalBytes))
    }

    /// The downloaded file is gone or broken: the stream plays on from the same position.
    private mutating func playStream(insteadOfFile failure: Failure) {
        guard let session else { return }
        let position = session.position(at: now.monotonic)
        closeFile()
        self.session?.localPath = nil
        if session.status == .playing { self.session?.status = .loading(plays: true) }
        if session.status.isUnderWay {
            setAnchor(position, running: false)
            openEngine()
        }
        raise(
            "playsStream", title: "The stream plays instead of the file",
            "The downloaded file of “\(session.episode.title)” cannot be used, so it is streamed from \(ClockText.format(position.seconds)): \(failure.message)",
            .warning, actions: ["dismiss"])
        saveSession()
    }

    // MARK: The same audio

    /// What is opened is compared with what was begun.
    mutating func identify(_ tag: AudioTag) {
        guard let session, !tag.text.isEmpty else { return }
        let begun = AudioTag(stored: session.episodeState.audioTag)
        self.session?.audio.identify(tag, begun: begun)
        if session.isOpened, session.engine == .open { keepTag() }
        if tag.text == begun.text { endAlerts(code: "audioChanged") }
        let position = session.position(at: now.monotonic)
        guard tag.differs(from: begun), !session.audio.acceptsReplacement,
            position.seconds > 1 || session.episodeState.position > 1
        else { return }
        raise(
            "audioChanged", title: "The audio is not the same any more",
            "“\(session.episode.title)” is another file now than the one that was begun; \(ClockText.format(position.seconds)) may be another place in it.",
            .info, actions: ["dismiss"])
        pending.commit = true
    }

    /// What is open is the episode, and what it is compared with from now on.
    mutating func keepTag() {
        guard let session, let tag = self.session?.audio.newTag(insteadOf: session.episodeState.audioTag) else {
            return
        }
        self.session?.episodeState.audioTag = tag
    }
}
