import PodcastModel
import WireMessages

/// The retry of a failed stream.
struct StreamRetry: Sendable, Hashable {
    /// The number of this attempt, from 1.
    let attempt: Int
    /// The number of attempts.
    let of: Int
    let wait: Duration
    /// The time at which the retry is due; nil if the retry is in progress.
    fileprivate(set) var nextAt: MonotonicTime?
    let failure: Failure
    let position: PlaybackPosition

    var wire: WireRetryState {
        var wire = WireRetryState()
        wire.attempt = UInt32(clamping: attempt)
        wire.of = UInt32(clamping: of)
        wire.nextInSeconds = nextAt == nil ? 0 : wait / .seconds(1)
        wire.nextAt = nextAt?.nanoseconds ?? 0
        wire.error = WireFailure(failure)
        return wire
    }
}

/// Decides whether a failed stream is retried, and whether it resumes when its server is available again. The server is
/// probed in parallel with the engine for the reason of the failure: libmpv reports status codes only in its log, if at
/// all.
struct StreamRecovery: Sendable, Hashable {
    /// The state of playback in which an event happens.
    struct Situation: Sendable, Hashable {
        let position: PlaybackPosition
        let plays: Bool
        let isOpen: Bool
        let isFailed: Bool
        let now: Moment
    }

    enum Action: Sendable, Hashable {
        /// Probe the server, and report the probe’s number with `asked`.
        case askServer
        case recover(Failure)
        case awaitServer
        case awaitRetry(StreamRetry)
        case open
        /// Close the stream and leave the episode paused; resuming opens the stream again.
        case stayPaused(Failure)
        /// `mayReturn`: playback resumes when the server is available again.
        case fail(Failure, mayReturn: Bool)
        /// Resume, because the server is available again.
        case resume
        /// Stop waiting, because the server has been unavailable for too long.
        case stopWaiting
        /// Compare the open audio with this tag of the server’s audio.
        case identify(AudioTag)
    }

    /// The probes of a server, until it has the audio again.
    private struct ServerReturn: Sendable, Hashable {
        /// The position at which the stream failed, or to which a later seek has moved.
        var position: PlaybackPosition
        /// The end of the probes, by the clock that reaches it first: the monotonic one stops during suspension.
        let endsAt: MonotonicTime
        let endsAtWall: Timestamp
        var asked = 0
        /// The next probe; nil if the audio is being opened.
        var nextAt: MonotonicTime?
    }

    private struct Probe: Sendable, Hashable {
        let serial: UInt64
        /// The time until which a decision waits for the answer.
        let answersBy: MonotonicTime
        var answer: ProbeAnswer?
    }

    private struct Starving: Sendable, Hashable {
        let cached: Double
        /// The time at which `cached` was first reported.
        let since: MonotonicTime
    }

    /// The distance beyond the position of a failure at which the failure is over, in seconds.
    private static let passes = 5.0

    let limits: PlaybackLimits
    /// The server; empty if a file is open.
    private var host = ""
    /// The retry that is due or in progress, until playback is past the position of the failure.
    private(set) var retry: StreamRetry?
    private var serverReturn: ServerReturn?
    private var probe: Probe?
    /// The server refuses probes, but not the engine.
    private var distrustsProbes = false
    private var failureAwaitingProbe: Failure?
    /// The deadline for opening the stream.
    private var opensBy: MonotonicTime?
    private var openedSinceProbe = false
    private var starving: Starving?
    /// The stream has been heard since it was opened, or since the last seek.
    private var hasProducedAudio = false

    init(limits: PlaybackLimits) {
        self.limits = limits
    }

    func nextAt(isOpen: Bool) -> MonotonicTime? {
        let answersBy = failureAwaitingProbe == nil ? nil : probe?.answersBy
        return [isOpen ? opensBy : nil, answersBy, retry?.nextAt, serverReturn?.nextAt].compactMap { $0 }.min()
    }

    var isWaitingToRetry: Bool { retry?.nextAt != nil }

    /// Whether the server is probed, or is available again but playback isn’t past the failure yet.
    var awaitsServer: Bool { serverReturn != nil }

    var probeSerial: UInt64? { probe?.serial }

    // MARK: The engine

    /// - Parameter host: the server; nil if a file is opened.
    mutating func opens(host: String?, now: MonotonicTime) -> [Action] {
        closed()
        self.host = host ?? ""
        hasProducedAudio = false
        openedSinceProbe = false
        probe = nil
        failureAwaitingProbe = nil
        guard host != nil else { return [] }
        opensBy = now.advanced(by: limits.opening)
        return [.askServer]
    }

    mutating func opened() {
        opensBy = nil
        openedSinceProbe = true
        distrustProbe()
    }

    mutating func closed() {
        opensBy = nil
        starving = nil
    }

    mutating func moved(to position: PlaybackPosition) {
        starving = nil
        hasProducedAudio = false
        serverReturn?.position = position
    }

    /// Handles the engine’s progress. A stream whose data arrives slowly doesn’t time out.
    ///
    /// - Parameter isExpected: whether data should arrive.
    /// - Returns: the failure of a stream that has waited too long for data.
    mutating func starves(_ progress: EngineProgress, isExpected: Bool, now: MonotonicTime) -> Failure? {
        guard isExpected, progress.buffering, !progress.running else {
            starving = nil
            if progress.running { hasProducedAudio = true }
            return nil
        }
        guard let starving, starving.cached == progress.cached else {
            self.starving = Starving(cached: progress.cached, since: now)
            return nil
        }
        // If a server ignores Range, the stream is read from its beginning to the requested position without progress.
        let limit = hasProducedAudio ? limits.stall : limits.opening
        guard now.since(starving.since) >= limit else { return nil }
        return Failure(.streamFailed, "No data is arriving from \(host).")
    }

    func isStarving(for time: Duration, now: MonotonicTime) -> Bool {
        starving.map { now.since($0.since) >= time } ?? false
    }

    /// Handles playback up to a position. A failure is over once playback is past the failure’s position.
    mutating func played(to position: PlaybackPosition) {
        let passed = position.seconds - Self.passes
        if let retry, passed >= retry.position.seconds { self.retry = nil }
        if let serverReturn, passed >= serverReturn.position.seconds { self.serverReturn = nil }
    }

    // MARK: Failures

    /// Handles a failure of the stream, which is classified when the server has answered, or after a time limit.
    mutating func failed(_ failure: Failure, _ situation: Situation) -> [Action] {
        failureAwaitingProbe = failure
        guard !distrustsProbes else { return finishClassification(situation) }
        // An answer from before the audio was opened is stale.
        if openedSinceProbe || probe == nil { return [.askServer, .awaitServer] }
        return probe?.answer == nil ? [.awaitServer] : finishClassification(situation)
    }

    private mutating func finishClassification(_ situation: Situation) -> [Action] {
        guard let failure = failureAwaitingProbe else { return [] }
        failureAwaitingProbe = nil
        return scheduleRetry(after: classify(failure), situation)
    }

    /// Returns the engine’s failure, or the server’s reason if that explains it better.
    private func classify(_ failure: Failure) -> Failure {
        guard !distrustsProbes else { return failure }
        // The engine’s reason is a guess unless the audio ended too early.
        let isGuess = failure.known == .streamFailed
        switch probe?.answer {
        case .refused(let status)?:
            let refusal = Failure(refusedWith: status, by: host, asking: .audio)
            return isGuess || !refusal.retry ? refusal : failure
        case .notAudio(let reason)?: return isGuess || failure.known == .decoderFailed ? reason : failure
        // A permanent reason also explains the engine’s failure.
        case .unanswered(let reason?)?: return isGuess || !reason.retry ? reason : failure
        case .audio?, .unanswered(nil)?, nil: return failure
        }
    }

    private mutating func scheduleRetry(after failure: Failure, _ situation: Situation) -> [Action] {
        if failure.retry, !situation.plays { return [.stayPaused(failure)] }
        let made = retry?.attempt ?? 0
        guard failure.retry, limits.reconnectBackoff.allowsRetry(after: made + 1) else {
            let mayReturn =
                failure.retry && failure.known == .streamFailed && limits.serverProbeBackoff.allowsRetry(after: 1)
            if mayReturn { awaitReturn(situation) }
            return [.fail(failure, mayReturn: mayReturn)]
        }
        let wait = limits.reconnectBackoff.wait(after: made + 1)
        let next = StreamRetry(
            attempt: made + 1, of: limits.reconnectBackoff.retryLimit, wait: wait,
            nextAt: situation.now.monotonic.advanced(by: wait), failure: failure, position: situation.position)
        retry = next
        return [.awaitRetry(next)]
    }

    mutating func retryNow() -> [Action] {
        guard isWaitingToRetry else { return [] }
        retry?.nextAt = nil
        return [.open]
    }

    mutating func end() {
        retry = nil
        serverReturn = nil
        failureAwaitingProbe = nil
    }

    // MARK: Waiting for the server

    private mutating func awaitReturn(_ situation: Situation) {
        let window = limits.serverReturnWindow
        let wall = situation.now.wall.milliseconds + Int64(window / .milliseconds(1))
        retry = nil
        // A second failure at the same position doesn’t extend the window.
        serverReturn =
            serverReturn
            ?? ServerReturn(
                position: situation.position, endsAt: situation.now.monotonic.advanced(by: window),
                endsAtWall: Timestamp(milliseconds: wall))
        scheduleProbe(situation.now.monotonic)
    }

    private mutating func scheduleProbe(_ now: MonotonicTime) {
        guard let asked = serverReturn?.asked, limits.serverProbeBackoff.allowsRetry(after: asked + 1) else { return }
        serverReturn?.nextAt = now.advanced(by: limits.serverProbeBackoff.wait(after: asked + 1))
        serverReturn?.asked += 1
    }

    private mutating func probeServer(_ situation: Situation) -> [Action] {
        guard let serverReturn, situation.isFailed else { return [] }
        guard situation.now.monotonic < serverReturn.endsAt, situation.now.wall < serverReturn.endsAtWall else {
            self.serverReturn = nil
            return [.stopWaiting]
        }
        scheduleProbe(situation.now.monotonic)
        return [.askServer]
    }

    /// Restarts the probes after the computer’s wake, perhaps on another network.
    mutating func woke(_ situation: Situation) -> [Action] {
        guard serverReturn?.nextAt != nil else { return [] }
        serverReturn?.asked = 0
        return probeServer(situation)
    }

    /// Stops probing the server, and returns whether it was being probed.
    mutating func stopProbing() -> Bool {
        defer { serverReturn = nil }
        return serverReturn != nil
    }

    // MARK: Time and the server’s answers

    mutating func tick(_ situation: Situation) -> [Action] {
        let now = situation.now.monotonic
        func isDue(_ time: MonotonicTime?) -> Bool { time.map { now >= $0 } ?? false }
        if situation.isOpen, isDue(opensBy) {
            opensBy = nil
            let seconds = Int(limits.opening / .seconds(1))
            return [.recover(Failure(.streamFailed, "\(host) didn’t respond within \(seconds) s."))]
        }
        if failureAwaitingProbe != nil, isDue(probe?.answersBy) { return finishClassification(situation) }
        if isDue(retry?.nextAt) { return retryNow() }
        return isDue(serverReturn?.nextAt) ? probeServer(situation) : []
    }

    /// Records that the server is probed with this number; earlier answers are stale.
    mutating func asked(serial: UInt64, now: MonotonicTime) {
        probe = Probe(serial: serial, answersBy: now.advanced(by: limits.probe))
    }

    mutating func answered(_ serial: UInt64, _ answer: ProbeAnswer, _ situation: Situation) -> [Action] {
        guard probe?.serial == serial else { return [] }
        probe?.answer = answer
        if failureAwaitingProbe != nil { return finishClassification(situation) }
        if situation.isOpen {
            if openedSinceProbe { distrustProbe() }
            if case .audio(let tag) = answer { return [.identify(tag)] }
        } else if serverReturn?.nextAt != nil {
            return situation.isFailed ? returned(answer) : []
        } else if let retry, retry.nextAt != nil {
            // The answer has arrived after the decision to retry.
            let failure = classify(retry.failure)
            if !failure.retry { return [.fail(failure, mayReturn: false)] }
        }
        return []
    }

    /// Distrusts the refusals of a server that lets the engine open the audio.
    private mutating func distrustProbe() {
        if case .refused? = probe?.answer { distrustsProbes = true }
    }

    /// Handles the answer of a probed server: it has the audio, refuses permanently, or is probed again.
    private mutating func returned(_ answer: ProbeAnswer) -> [Action] {
        let refusal: Failure?
        switch answer {
        case .notAudio: return []
        case .unanswered(nil): return []
        case .unanswered(let reason?): refusal = reason
        case .refused(let status) where !distrustsProbes:
            refusal = Failure(refusedWith: status, by: host, asking: .audio)
        case .audio, .refused: refusal = nil
        }
        if let refusal { return refusal.retry ? [] : [.fail(refusal, mayReturn: false)] }
        serverReturn?.nextAt = nil
        return [.resume]
    }
}
