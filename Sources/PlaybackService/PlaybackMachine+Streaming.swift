import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// A stream that failed, and when it is tried again.
struct StreamRetry: Sendable, Hashable {
    /// Which try it is, from 1.
    var attempt: Int
    /// Of how many.
    var of: Int
    /// How long it waits before it.
    var wait: Duration
    /// When it is tried; nil: it is being tried.
    var nextAt: MonotonicTime?
    /// What it failed of.
    var failure: Failure
    /// Where it failed.
    var position: PlaybackPosition

    var wire: WireRetryState {
        var wire = WireRetryState()
        wire.attempt = UInt32(attempt)
        wire.of = UInt32(of)
        wire.nextInSeconds = nextAt == nil ? 0 : wait / .seconds(1)
        wire.nextAt = nextAt?.nanoseconds ?? 0
        wire.error = WireFailure(failure)
        return wire
    }
}

/// An engine that waits for data.
struct Starving: Sendable, Hashable {
    /// Up to where it had data.
    var cached: Double
    /// Since when that has not moved.
    var since: MonotonicTime
}

/// Which audio a source has, as far as it says: an ETag, or else a size. Two that differ are not the same audio; of
/// different kinds they say nothing about each other.
public struct AudioTag: Sendable, Hashable {
    /// `etag:…` or `size:…`; empty: not known.
    public let text: String

    /// A source of this ETag (weak or strong) and size in bytes; 0: unknown.
    public init(etag: String, size: UInt64) {
        let strong = etag.hasPrefix("W/") ? String(etag.dropFirst(2)) : etag
        text = strong.isEmpty ? size == 0 ? "" : "size:\(size)" : "etag:\(strong.prefix(200))"
    }

    /// A stored one.
    init(stored text: String) { self.text = text }

    /// Whether it is known to be other audio than `other`.
    func differs(from other: AudioTag) -> Bool {
        guard !text.isEmpty, !other.text.isEmpty, text.prefix(5) == other.text.prefix(5) else { return false }
        return text != other.text
    }
}

extension PlaybackSession.Status {
    /// Whether it could not go on.
    var isFailed: Bool { if case .failed = self { true } else { false } }
}

extension AudioSource {
    /// The server of a web address; the path of a file.
    var host: String {
        guard case .web(let url) = self else { return description }
        return WebAddress(url)?.host ?? url
    }
}

extension PlaybackMachine {
    /// How far beyond the place of a failure it must play until that failure is over.
    private static let passes = 5.0

    // MARK: Trying again

    /// The audio cannot go on as it is: the stream in place of a file, another try of the stream, or the end of trying.
    mutating func recover(from failure: Failure) {
        guard let session else { return }
        if case .web? = session.enclosure, session.localPath != nil, failure.known != .noSoundDevice {
            return playStream(insteadOfFile: failure)
        }
        // What is no audio the server may have named.
        let isJudged = failure.retry || failure.known == .decoderFailed
        guard isJudged, session.isStream, session.status.isUnderWay else { return fail(failure) }
        recoverStream(from: failure)
    }

    /// A stream is tried again, or has failed for good.
    mutating func tryAgain(after failure: Failure) {
        guard let session else { return }
        // Nobody waits for it: it is tried again by whoever resumes it.
        if failure.retry, session.status == .loading(plays: false) { return rest(after: failure) }
        let made = session.retry?.attempt ?? 0
        guard failure.retry, made < context.limits.reconnect.count else {
            let passes = failure.retry && failure.known == .streamFailed && !context.limits.comeback.isEmpty
            fail(failure, mayComeBack: passes)
            if passes { awaitComeback(session.comeback) }
            return
        }
        let wait = context.limits.reconnect[made]
        closeFile()
        setAnchor(session.position(at: now.monotonic), running: false)
        self.session?.status = .loading(plays: session.wantsToPlay)
        self.session?.retry = StreamRetry(
            attempt: made + 1, of: context.limits.reconnect.count, wait: wait,
            nextAt: now.monotonic.advanced(by: wait), failure: failure,
            position: session.position(at: now.monotonic))
        let again = "Retry \(made + 1) of \(context.limits.reconnect.count) in \(Int(wait / .seconds(1))) s."
        pending.logs.append((.warning, "\(session.episode.id): \(failure) \(again)"))
        markPosition()
        pending.commit = true
    }

    /// What was paused before it was open, and cannot be opened now, is closed.
    private mutating func rest(after failure: Failure) {
        closeFile()
        session?.status = .paused
        pending.logs.append((.warning, "\(session?.episode.id ?? ""): \(failure) It is paused."))
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }

    /// The wait is over, or somebody does not want to wait.
    mutating func reconnect() {
        guard session?.retry?.nextAt != nil, session?.engine == .closed else { return }
        session?.retry?.nextAt = nil
        pending.state = true
        openEngine()
    }

    /// A failure is over once it has been played beyond the place of it.
    mutating func passFailure(at progress: EngineProgress) {
        guard progress.running, let session else { return }
        let place = progress.position.seconds - Self.passes
        if let retry = session.retry, place >= retry.position.seconds { self.session?.retry = nil }
        if let comeback = session.comeback, place >= comeback.position.seconds { self.session?.comeback = nil }
    }

    /// Whether it has waited too long for data. A slow stream whose data comes drop by drop is none.
    mutating func isStarved(_ progress: EngineProgress) -> Bool {
        guard let session, session.isStream, session.wantsToPlay, progress.buffering, !progress.running else {
            self.session?.starving = nil
            if progress.running { self.session?.hasSounded = true }
            return false
        }
        guard let starving = session.starving, starving.cached == progress.cached else {
            self.session?.starving = Starving(cached: progress.cached, since: now.monotonic)
            return false
        }
        // A server that ignores Range is read from its beginning to the place that is wanted, of which nothing is seen.
        let limit = session.hasSounded ? context.limits.stall : context.limits.opening
        return now.monotonic.since(starving.since) >= limit
    }

    mutating func closeFile() {
        if session?.engine == .open { pending.perform(.engine(.unload)) }
        session?.engine = .closed
        session?.isOpened = false
        session?.buffering = false
        session?.opensBy = nil
        session?.starving = nil
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
            "The downloaded file of “\(session.episode.title)” cannot be used, so it is streamed from \(clockText(position.seconds)): \(failure.message)",
            .warning, actions: ["dismiss"])
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }

    // MARK: The same audio

    /// What is opened is compared with what was begun: a server may put other advertisements in for each listener.
    mutating func identify(_ tag: AudioTag) {
        guard let session, !tag.text.isEmpty else { return }
        let begun = AudioTag(stored: session.register.audioTag)
        self.session?.sourceTag = tag
        self.session?.sameness = tag.text == begun.text ? .same : tag.differs(from: begun) ? .other : .unknown
        if session.isOpened, session.engine == .open { keepTag() }
        if tag.text == begun.text { endAlerts(code: "audioChanged") }
        let position = session.position(at: now.monotonic)
        guard tag.differs(from: begun), !session.acceptsWhatIsThere,
            position.seconds > 1 || session.register.position > 1
        else { return }
        raise(
            "audioChanged", title: "The audio is not the same any more",
            "“\(session.episode.title)” is another file now than the one that was begun; \(clockText(position.seconds)) may be another place in it.",
            .info, actions: ["dismiss"])
        pending.commit = true
    }

    /// What is open is the episode, and what it is compared with from now on; not what its listener has let stand in its
    /// place, so that the one that was begun is known when it is back.
    mutating func keepTag() {
        guard let session, let tag = session.sourceTag, tag.text != session.register.audioTag,
            !session.acceptsWhatIsThere || session.register.audioTag.isEmpty
        else { return }
        self.session?.register.audioTag = tag.text
        self.session?.hasNewTag = true
    }
}

extension PlaybackSession.Status {
    /// Whether it plays or is being opened, so that a failure may be tried again.
    var isUnderWay: Bool {
        switch self {
        case .playing, .loading: true
        case .paused, .finished, .failed: false
        }
    }
}
