import PodcastModel
import WireMessages

/// A stream that failed, and when it is tried again.
struct StreamRetry: Sendable, Hashable {
    /// The number of this attempt, from 1.
    let attempt: Int
    /// The number of attempts.
    let of: Int
    /// How long it waits before it.
    let wait: Duration
    /// When it is tried; nil: it is being tried.
    fileprivate(set) var nextAt: MonotonicTime?
    /// The failure that caused it.
    let failure: Failure
    /// Where it failed.
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

/// Decides what becomes of a stream that fails: why that is, whether it is tried again, and whether it goes on by itself
/// when its server is back.
///
/// Why a stream fails is for its server to say, which is asked beside the engine: the engine's library tells an answer of
/// 404 from one of 503, or from none, in lines of its log alone, if at all.
struct StreamRecovery: Sendable, Hashable {
    /// The situation in which an event happens.
    struct Situation: Sendable, Hashable {
        let position: PlaybackPosition
        /// Whether the episode plays, or will when it can.
        let plays: Bool
        /// Whether the engine has been told to open the stream.
        let isOpen: Bool
        /// Whether it has failed, and nothing is tried any more.
        let isFailed: Bool
        let now: Moment
    }

    /// An action that follows from an event.
    enum Action: Sendable, Hashable {
        /// Ask the server which audio it has, and say so with `asked`.
        case askServer
        /// Deal with this failure.
        case recover(Failure)
        /// Close the stream until its server has answered.
        case awaitServer
        /// Close it until this attempt.
        case awaitRetry(StreamRetry)
        case open
        /// Close it, and leave it paused: nobody waits for it, and whoever resumes it tries again.
        case stayPaused(Failure)
        /// It has failed; `mayReturn`: it plays on when its server is back.
        case fail(Failure, mayReturn: Bool)
        /// Its server is back: play on.
        case playOn
        /// Its server has been away for too long: it stays stopped.
        case giveUp
        /// Compare what is open with this audio, which its server has.
        case identify(AudioTag)
    }

    /// A server that is asked now and then whether it has the audio again.
    private struct ServerReturn: Sendable, Hashable {
        /// Where the stream failed.
        let position: PlaybackPosition
        /// From then on the server is not asked any more, by whichever clock it comes first: the first does not run while
        /// the machine sleeps.
        let endsAt: MonotonicTime
        let endsAtWall: Timestamp
        /// How often it has been asked.
        var asked = 0
        /// When it is asked next; nil: what it has is being opened.
        var nextAt: MonotonicTime?
    }

    /// A question to the server.
    private struct Probe: Sendable, Hashable {
        /// Its answer carries this number.
        let serial: UInt64
        /// A decision waits for the answer until then.
        let answersBy: MonotonicTime
        /// Nil: there is none yet.
        var answer: ProbeAnswer?
    }

    /// An engine that waits for data.
    private struct Starving: Sendable, Hashable {
        /// Up to where it had data.
        let cached: Double
        /// The time since when that hasn’t moved.
        let since: MonotonicTime
    }

    /// How far beyond the position of a failure it must play until that failure is over, in seconds.
    private static let passes = 5.0

    private let limits: PlaybackLimits
    /// The server of what is open; empty: it is a file.
    private var host = ""
    /// The stream failed and is tried again, or has been and is not through the position where it failed.
    private(set) var retry: StreamRetry?
    private var serverReturn: ServerReturn?
    private var probe: Probe?
    /// Its server refuses the question, but not the engine.
    private var distrustsProbes = false
    /// The failure whose classification waits for the server’s answer.
    private var failureAwaitingProbe: Failure?
    /// The stream must be open by then.
    private var opensBy: MonotonicTime?
    /// Its audio has been opened since its server was asked last.
    private var openedSinceProbe = false
    private var starving: Starving?
    /// It has been heard since it was opened, or moved in.
    private var hasProducedAudio = false

    init(limits: PlaybackLimits) {
        self.limits = limits
    }

    /// When `tick` has something to do.
    func nextAt(isOpen: Bool) -> MonotonicTime? {
        let answersBy = failureAwaitingProbe == nil ? nil : probe?.answersBy
        return [isOpen ? opensBy : nil, answersBy, retry?.nextAt, serverReturn?.nextAt].compactMap { $0 }.min()
    }

    /// Whether it waits for its next attempt.
    var isWaitingToRetry: Bool { retry?.nextAt != nil }

    /// Whether its server is asked for its return, or has returned and not yet been heard.
    var awaitsServer: Bool { serverReturn != nil }

    /// The number of the last question to its server.
    var probeSerial: UInt64? { probe?.serial }

    // MARK: The engine

    /// The engine opens the episode.
    ///
    /// - Parameter host: its server; nil: it is a file.
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

    /// The engine has it open.
    mutating func opened() {
        opensBy = nil
        openedSinceProbe = true
        distrustProbe()
    }

    /// The engine closes it.
    mutating func closed() {
        opensBy = nil
        starving = nil
    }

    /// Somebody has moved in it.
    mutating func moved() {
        starving = nil
        hasProducedAudio = false
    }

    /// The engine has said where it is. A slow stream whose data comes drop by drop does not starve.
    ///
    /// - Parameter isExpected: whether data should come.
    /// - Returns: that it has waited too long for data.
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
        // A server that ignores Range is read from its beginning to the position that is wanted, of which nothing is seen.
        let limit = hasProducedAudio ? limits.stall : limits.opening
        guard now.since(starving.since) >= limit else { return nil }
        return Failure(.streamFailed, "No data comes from \(host) any more.")
    }

    /// Whether it has waited so long for data.
    func isStarving(for time: Duration, now: MonotonicTime) -> Bool {
        starving.map { now.since($0.since) >= time } ?? false
    }

    /// It is heard at a position: a failure is over once it has been played beyond the position of it.
    mutating func played(to position: PlaybackPosition) {
        let passed = position.seconds - Self.passes
        if let retry, passed >= retry.position.seconds { self.retry = nil }
        if let serverReturn, passed >= serverReturn.position.seconds { self.serverReturn = nil }
    }

    // MARK: Failures

    /// The stream has failed. The failure is classified when its server has answered, or its time is up.
    mutating func failed(_ failure: Failure, _ situation: Situation) -> [Action] {
        failureAwaitingProbe = failure
        guard !distrustsProbes else { return finishClassification(situation) }
        // What its server said before it let the audio be opened is past.
        if openedSinceProbe || probe == nil { return [.askServer, .awaitServer] }
        return probe?.answer == nil ? [.awaitServer] : finishClassification(situation)
    }

    private mutating func finishClassification(_ situation: Situation) -> [Action] {
        guard let failure = failureAwaitingProbe else { return [] }
        failureAwaitingProbe = nil
        return tryAgain(after: classify(failure), situation)
    }

    /// A failure of the engine's in the light of what the server says.
    private func classify(_ failure: Failure) -> Failure {
        guard !distrustsProbes else { return failure }
        // The engine's own reason is a guess, but for an end that comes too early.
        let isGuess = failure.known == .streamFailed
        switch probe?.answer {
        case .refused(let status)?:
            let refusal = Failure(refusedWith: status, by: host, asking: .audio)
            return isGuess || !refusal.retry ? refusal : failure
        case .notAudio(let reason)?: return isGuess || failure.known == .decoderFailed ? reason : failure
        // What stays so is what the engine has met.
        case .unanswered(let reason?)?: return isGuess || !reason.retry ? reason : failure
        case .audio?, .unanswered(nil)?, nil: return failure
        }
    }

    /// Retries, or fails for good.
    private mutating func tryAgain(after failure: Failure, _ situation: Situation) -> [Action] {
        if failure.retry, !situation.plays { return [.stayPaused(failure)] }
        let made = retry?.attempt ?? 0
        guard failure.retry, limits.reconnect.allowsRetry(after: made + 1) else {
            let mayReturn = failure.retry && failure.known == .streamFailed && limits.serverProbes.allowsRetry(after: 1)
            if mayReturn { awaitReturn(situation) }
            return [.fail(failure, mayReturn: mayReturn)]
        }
        let wait = limits.reconnect.wait(after: made + 1)
        let next = StreamRetry(
            attempt: made + 1, of: limits.reconnect.retryLimit, wait: wait,
            nextAt: situation.now.monotonic.advanced(by: wait), failure: failure, position: situation.position)
        retry = next
        return [.awaitRetry(next)]
    }

    /// Retries now: the wait is over, or a command ends it.
    mutating func retryNow() -> [Action] {
        guard isWaitingToRetry else { return [] }
        retry?.nextAt = nil
        return [.open]
    }

    /// Ends retries and probes.
    mutating func end() {
        retry = nil
        serverReturn = nil
        failureAwaitingProbe = nil
    }

    // MARK: The return of the server

    private mutating func awaitReturn(_ situation: Situation) {
        let window = limits.serverReturnWindow
        let wall = situation.now.wall.milliseconds + Int64(window / .milliseconds(1))
        retry = nil
        // Where it has failed at the same position again, it is the same wait.
        serverReturn =
            serverReturn
            ?? ServerReturn(
                position: situation.position, endsAt: situation.now.monotonic.advanced(by: window),
                endsAtWall: Timestamp(milliseconds: wall))
        scheduleProbe(situation.now.monotonic)
    }

    private mutating func scheduleProbe(_ now: MonotonicTime) {
        guard let asked = serverReturn?.asked, limits.serverProbes.allowsRetry(after: asked + 1) else { return }
        serverReturn?.nextAt = now.advanced(by: limits.serverProbes.wait(after: asked + 1))
        serverReturn?.asked += 1
    }

    /// Probes the server, unless it has been away for too long.
    private mutating func probeServer(_ situation: Situation) -> [Action] {
        guard let serverReturn, situation.isFailed else { return [] }
        guard situation.now.monotonic < serverReturn.endsAt, situation.now.wall < serverReturn.endsAtWall else {
            self.serverReturn = nil
            return [.giveUp]
        }
        scheduleProbe(situation.now.monotonic)
        return [.askServer]
    }

    /// The machine has woken, perhaps on another network.
    mutating func woke(_ situation: Situation) -> [Action] {
        guard serverReturn?.nextAt != nil else { return [] }
        serverReturn?.asked = 0
        return probeServer(situation)
    }

    /// The sentence in a failure’s alert while its server is asked.
    var returnPromise: String { Self.returnPromise(limits) }

    /// The same, of another life of the process.
    static func returnPromise(_ limits: PlaybackLimits) -> String {
        " It plays on by itself if its server is back within \(Int(limits.serverReturnWindow / .seconds(60))) min."
    }

    /// Stops probing the server.
    ///
    /// - Returns: whether it was being probed.
    mutating func forgetServer() -> Bool {
        defer { serverReturn = nil }
        return serverReturn != nil
    }

    // MARK: Time and the server's answers

    /// The time of `nextAt` has come.
    mutating func tick(_ situation: Situation) -> [Action] {
        let now = situation.now.monotonic
        func isDue(_ time: MonotonicTime?) -> Bool { time.map { now >= $0 } ?? false }
        if situation.isOpen, isDue(opensBy) {
            opensBy = nil
            let seconds = Int(limits.opening / .seconds(1))
            return [.recover(Failure(.streamFailed, "\(host) did not answer within \(seconds) s."))]
        }
        if failureAwaitingProbe != nil, isDue(probe?.answersBy) { return finishClassification(situation) }
        if isDue(retry?.nextAt) { return retryNow() }
        return isDue(serverReturn?.nextAt) ? probeServer(situation) : []
    }

    /// The server has been asked with this number; what it was asked before counts for nothing any more.
    mutating func asked(serial: UInt64, now: MonotonicTime) {
        probe = Probe(serial: serial, answersBy: now.advanced(by: limits.probe))
    }

    /// The server has answered the question of this number.
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
            // It has taken longer than the decision has waited.
            let failure = classify(retry.failure)
            if !failure.retry { return [.fail(failure, mayReturn: false)] }
        }
        return []
    }

    /// Distrusts the refusals of a server that lets the engine open the audio.
    private mutating func distrustProbe() {
        if case .refused? = probe?.answer { distrustsProbes = true }
    }

    /// The server that is waited for has answered. What it refuses for good it won’t have in half an hour, nor be found
    /// where it leads in circles.
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
        return [.playOn]
    }
}
