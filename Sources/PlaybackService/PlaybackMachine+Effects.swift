import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What one event has brought about so far; put in order when all of it is decided.
struct PendingEffects: Sendable {
    var actions: [PlaybackAction] = []
    /// The state has changed.
    var state = false
    /// The sound devices have changed.
    var output = false
    /// Other things to publish, after the state, and what comes before it.
    var publications: [Publication] = []
    var earlierPublications: [Publication] = []
    /// What is unsaved is to be committed now.
    var commit = false
    /// The command that is to be answered, with what, and what it did in words.
    var answer: Answer?
    var replies: [(RequestID, Result<[UInt8], Failure>)] = []
    var transactions: [Transaction] = []
    var calls: [Call] = []
    var logs: [(LogLevel, String)] = []

    struct Answer: Sendable {
        var request: RequestID
        var body: Body
        /// "Paused", for "Paused, but not saved".
        var fact: String
        /// Whether anything is another than before.
        var changed: Bool
        /// What it has done to a setting.
        var setting: WireSettingReply?
        /// The episode that a seek has ended.
        var ended: WireEpisodeSummary?
        enum Body: Sendable { case state, output, episodeState(WireEpisodeState) }
    }

    /// Whether anything has been decided that the stream shows or the database stores.
    var hasChanges: Bool { state || output || commit || !publications.isEmpty }

    mutating func perform(_ action: PlaybackAction) { actions.append(action) }
    mutating func refuse(_ request: RequestID, _ failure: Failure) { replies.append((request, .failure(failure))) }
}

/// The timers as they are set, so that only changes are asked for.
struct PlaybackTimers: Sendable {
    static let sample = TimerName("sample")
    static let save = TimerName("save")
    static let retry = TimerName("retry")
    static let recovery = TimerName("recovery")
    static let device = TimerName("device")
    static let milestone = TimerName("milestone")
    static let sleep = TimerName("sleep")
    static let liveness = TimerName("liveness")
    /// A seek whose answer is held is to be answered.
    static let heldSeek = TimerName("heldSeek")
    private static let all = [
        sample, save, retry, recovery, device, milestone, sleep, liveness, heldSeek,
    ]

    var wanted: [TimerName: MonotonicTime] = [:]
    private var set: [TimerName: MonotonicTime] = [:]

    mutating func changes<Action>() -> [OwnerEffect<Action>] {
        let names = Self.all.filter { wanted[$0] != set[$0] }
        set = wanted
        return names.map { .timer($0, at: wanted[$0]) }
    }

    /// A timer has gone off.
    mutating func fired(_ name: TimerName) {
        wanted[name] = nil
        set[name] = nil
    }
}

extension PlaybackMachine {
    /// Everything that was decided, in order: the stream, the database and the answers, the engine. What is published
    /// does not wait for the engine, whose threads are many.
    mutating func flush() -> [Effect] {
        passMilestones()
        answerHeldSeek()
        followChapter()
        followDevice()
        recordCommands()
        setTimers()
        var effects: [Effect] = []
        var publications = pending.earlierPublications
        if pending.state { publications.append(putState()) }
        if pending.output { publications.append(Publication(.put, .playbackOutput, output.wire.wireBytes)) }
        publications += pending.publications
        if !publications.isEmpty { effects.append(.publish(publications)) }
        effects += pending.replies.map { .reply($0, $1) }
        effects += pending.transactions.map { .commit($0) }
        if let outcome = commitOrReply() { effects.append(outcome) }
        allowSuspend()
        endHungProcess()
        effects += pending.actions.map { .perform($0) }
        effects += pending.calls.map { .call($0) }
        effects += timers.changes()
        effects += pending.logs.map { .log($0, $1) }
        pending = PendingEffects()
        return effects
    }

    private mutating func putState() -> Publication {
        revision += 1
        var shown = state
        if unsavedEnd != nil, shown.status == .finished { shown.status = .playing }
        return Publication(.put, .playbackState, shown.wireBytes)
    }

    /// Another load takes the place of one whose end is not durable yet: that it has ended is shown before.
    mutating func showEndNow() {
        guard unsavedEnd != nil else { return }
        unsavedEnd = nil
        pending.earlierPublications.append(putState())
    }

    private mutating func commitOrReply() -> Effect? {
        let reply = pending.answer.map { ($0.request, body(of: $0)) }
        guard pending.commit || reply != nil else { return nil }
        guard !book.dirty.isEmpty else { return reply.map { .reply($0.0, .success($0.1)) } }
        let items = book.dirty.sorted()
        for case .episodeState(let episode) in items { next.forgetAnswer(about: episode) }
        let id = nextTransaction()
        book.begin(id, .state(items, request: reply?.0, fact: pending.answer?.fact ?? ""))
        if case .awaitingCommit(nil)? = session?.engine { session?.engine = .awaitingCommit(id) }
        if unsavedEnd == .due { unsavedEnd = .underWay(id) }
        let events = items.compactMap { item -> Publication? in
            guard case .episodeState(let episode) = item, let episodeState = book.unsavedStates[episode] else {
                return nil
            }
            return Publication(.event, .episodeState(episode), episodeState.wireBytes)
        }
        return .commit(Transaction(id: id, changes: items.map(change), publications: events, answering: reply))
    }

    mutating func nextTransaction() -> TransactionID {
        TransactionID(nextSerial())
    }

    private func body(of answer: PendingEffects.Answer) -> [UInt8] {
        var reply = WirePlaybackReply()
        reply.changed = answer.changed
        switch answer.body {
        case .state: reply.state = state
        case .output: reply.output = output.wire
        case .episodeState(let episodeState): reply.episodeState = episodeState
        }
        if let setting = answer.setting { reply.setting = setting }
        if let ended = answer.ended { reply.ended = ended }
        return reply.wireBytes
    }

    private mutating func setTimers() {
        let playing = session?.status == .playing && session?.engine == .open && !isStopping
        let isWaiting = session?.status == .loading(plays: true) && session?.isOpened == true
        let fade = settings.number(.sleepFade)
        let sleepsAt = sleepTimer.nextAt(isPlaying: session?.status == .playing, fade: fade, now: now.monotonic)
        let recoversAt = session?.recovery.nextAt(isOpen: session?.engine == .open)
        timers.wanted[PlaybackTimers.recovery] = isStopping ? nil : recoversAt
        timers.wanted[PlaybackTimers.milestone] = isStopping ? nil : nextMilestone()
        timers.wanted[PlaybackTimers.sleep] = isStopping ? nil : sleepsAt
        timers.wanted[PlaybackTimers.device] = isStopping ? nil : output.loss.nextAt
        timers.wanted[PlaybackTimers.liveness] = nextCheck
        timers.wanted[PlaybackTimers.heldSeek] = isStopping ? nil : nextHeldSeek
        if !playing { timers.wanted[PlaybackTimers.save] = nil }
        if !playing && !(isWaiting && session?.engine == .open && !isStopping) {
            timers.wanted[PlaybackTimers.sample] = settling
        } else {
            if pending.state || timers.wanted[PlaybackTimers.sample] == nil {
                timers.wanted[PlaybackTimers.sample] = now.monotonic.advanced(by: Self.sampleAfterChange)
            }
            if playing, timers.wanted[PlaybackTimers.save] == nil {
                timers.wanted[PlaybackTimers.save] = now.monotonic.advanced(by: Self.saveInterval)
            }
        }
    }

    /// When the engine is to be asked where a pause has left it.
    private var settling: MonotonicTime? {
        guard let session, session.status == .paused, session.engine == .open else { return nil }
        return session.tracker.settlesAt
    }

    mutating func handleTimer(_ name: TimerName) {
        timers.fired(name)
        switch name {
        case PlaybackTimers.sample:
            session?.tracker.settled()
            pending.perform(.engine(.sample))
            timers.wanted[name] = now.monotonic.advanced(by: Self.sampleInterval)
        case PlaybackTimers.save:
            markPosition()
            // While the database does not answer, one commit waits, not one for each ten seconds.
            pending.commit = !book.isBusy
        case PlaybackTimers.retry:
            pending.commit = !book.isBusy
        case PlaybackTimers.recovery:
            recoveryIsDue()
        case PlaybackTimers.device:
            deviceIsDue()
        case PlaybackTimers.milestone:
            passMilestones()
        case PlaybackTimers.sleep:
            perform(sleepTimer.tick(isPlaying: session?.status == .playing, now: now.monotonic))
        case PlaybackTimers.liveness:
            checkEngine()
        default:
            break
        }
    }

    /// Fixes the position at `position`, now.
    ///
    /// - Parameter pace: how fast it runs from there; nil: at the speed that is set.
    mutating func setAnchor(
        _ position: PlaybackPosition, running: Bool, at time: MonotonicTime? = nil, pace: PlaybackSpeed? = nil
    ) {
        session?.tracker.fix(position, running: running, speed: pace ?? speed, at: time, now: now)
        pending.state = true
    }
}
