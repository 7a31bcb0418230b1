import BusKit
import OwnerKit
import PodcastModel
package import WireMessages

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
    static let sessionKey = ("session", "current")
    static let settingsKey = ("settings", "current")
    private static let saveRetries = Backoff.exponential(first: .seconds(2), longest: .seconds(30))
    private static let sampleInterval = Duration.seconds(1)
    private static let sampleAfterChange = Duration.milliseconds(300)
    private static let saveInterval = Duration.seconds(10)

    /// Everything that was decided, in order: the stream, the database and the answers, the engine. What is published
    /// does not wait for the engine, whose threads are many.
    mutating func flush() -> [Effect] {
        passMilestones()
        if pending.hasEnded { perform(sleepTimer.episodeEnded()) }
        answerHeldSeek()
        followChapter()
        if let position = pending.movedTo { output.loss.moved(to: position) }
        if pending.opensEngine {
            output.loss.opens()
            prepareEngine()
        }
        followDevice()
        for case .engine(let command) in pending.actions { liveness.record(command) }
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
        effects += pending.actions.map { .perform(completed($0)) }
        effects += pending.calls.map { .call($0) }
        effects += timers.changes()
        effects += pending.logs.map { .log($0, $1) }
        pending.end()
        return effects
    }

    private mutating func putState() -> Publication {
        revision += 1
        var shown = state
        if pending.writes.hasEnd, shown.status == .finished { shown.status = .playing }
        return Publication(.put, .playbackState, shown.wireBytes)
    }

    /// Another load takes the place of one whose end is not durable yet: that it has ended is shown before.
    mutating func showEndNow() {
        guard pending.writes.hasEnd else { return }
        pending.writes.endIsShown()
        pending.earlierPublications.append(putState())
    }

    // MARK: Saving

    private mutating func commitOrReply() -> Effect? {
        let reply = pending.answer.map { ($0.request, body(of: $0)) }
        guard pending.commit || reply != nil else { return nil }
        guard !pending.writes.dirty.isEmpty else { return reply.map { .reply($0.0, .success($0.1)) } }
        let items = pending.writes.dirty.sorted()
        for case .episodeState(let episode) in items { next.forgetAnswer(about: episode) }
        let id = nextTransaction()
        pending.writes.begin(id, .state(items, request: reply?.0, fact: pending.answer?.fact ?? ""))
        if case .awaitingCommit(nil)? = session?.engine { session?.engine = .awaitingCommit(id) }
        let events = items.compactMap { item -> Publication? in
            guard case .episodeState(let episode) = item, let state = pending.writes.unsavedStates[episode] else {
                return nil
            }
            return Publication(.event, .episodeState(episode), state.wireBytes)
        }
        return .commit(Transaction(id: id, changes: items.map(change), publications: events, answering: reply))
    }

    mutating func nextTransaction() -> TransactionID { TransactionID(pending.nextSerial()) }

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

    /// Writes a thing as it is now.
    func change(_ item: PendingWrites.Item) -> WireChange {
        switch item {
        case .session:
            guard let session else { return .deleting(Self.sessionKey.0, Self.sessionKey.1) }
            let record = session.record(now: now, context: context, clean: pending.isStopping)
            return .putting(Self.sessionKey.0, Self.sessionKey.1, record)
        case .settings:
            var record = WirePlaybackSettingsRecord()
            record.volume = volume.percent
            output.fill(&record)
            return .putting(Self.settingsKey.0, Self.settingsKey.1, record)
        case .episodeState(let episode):
            var change = WireChange()
            change.putEpisodeState = pending.writes.unsavedStates[episode] ?? WireEpisodeState()
            return change
        case .alert(let id): return pending.alerts.change(id)
        case .setting(let podcast, let key): return settings.record(podcast, key)
        case .sleep: return sleepTimer.change(bootID: context.bootID)
        case .chapters(let episode): return chapters.change(episode)
        case .bookmark(let id): return bookmarks.change(id)
        }
    }

    package func everything() -> [WireChange] {
        var changes = [change(.settings)]
        if let session {
            changes.append(change(.session))
            if session.episodeState.updatedAt > 0 {
                var change = WireChange()
                change.putEpisodeState = session.episodeState
                changes.append(change)
            }
        }
        changes += settings.everything + bookmarks.everything
        if sleepTimer.phase != .off { changes.append(change(.sleep)) }
        return changes + chapters.everything + pending.alerts.everything
    }

    mutating func handleCommitted(_ id: TransactionID) {
        timers.wanted[PlaybackTimers.retry] = nil
        switch pending.writes.committed(id) {
        case .answer(let alert, _)?: carryOutAnswer(to: alert)
        case .state?, .marks?, .request?, nil: bookmarks.committed(id)
        }
        let writes = pending.writes
        if writes.refusals == 0, !writes.dirty.isEmpty, !writes.isBusy { pending.commit = true }
        if pending.writes.concludeEnd(id) { pending.state = true }
        if session?.engine == .awaitingCommit(id) { session?.open(&pending) }
    }

    mutating func handleRefused(_ id: TransactionID, _ failure: Failure) {
        // A state of an episode that the library has forgotten is not wanted any more.
        let forgotten = failure.known == .notFound || failure.known == .invalidArgument
        let answered = failure.code == "duplicateRequest"
        switch pending.writes.refused(id, keeping: { if case .episodeState = $0 { !forgotten } else { true } }) {
        case .state(_, let request?, let fact)? where !answered:
            pending.refuse(request, Failure(.notSaved, "\(fact), but not saved: \(failure.message)"))
        case .answer(let alert, let request)?:
            if !answered { pending.refuse(request, failure) }
            pending.writes.mark(.alert(alert))
            giveAnswers(pending.alerts.refused(alert))
        case .marks(let marks, let request)?:
            takeBack(marks)
            if !answered { pending.refuse(request, failure) }
        case .request(let request)?:
            if let episode = bookmarks.refused(id) {
                pending.publications.append(bookmarks.publication(of: episode))
            }
            if !answered { pending.refuse(request, failure) }
        default:
            break
        }
        timers.wanted[PlaybackTimers.retry] = now.monotonic.advanced(
            by: Self.saveRetries.wait(after: pending.writes.refusals))
        if pending.writes.concludeEnd(id) { pending.state = true }
        guard session?.engine == .awaitingCommit(id) else { return }
        if session?.resumedAt != nil {
            // What crashed may crash again, and that could not be found out now.
            session?.engine = .closed
            session?.status = .paused
            pending.state = true
        } else {
            session?.open(&pending)
        }
    }

    // MARK: Timers

    private mutating func setTimers() {
        let playing = session?.status == .playing && session?.engine == .open && !pending.isStopping
        let isWaiting = session?.status == .loading(plays: true) && session?.isOpened == true
        let fade = settings.number(.sleepFade)
        let sleepsAt = sleepTimer.nextAt(isPlaying: session?.status == .playing, fade: fade, now: now.monotonic)
        let recoversAt = session?.recovery.nextAt(isOpen: session?.engine == .open)
        timers.wanted[PlaybackTimers.recovery] = pending.isStopping ? nil : recoversAt
        timers.wanted[PlaybackTimers.milestone] = pending.isStopping ? nil : nextMilestone()
        timers.wanted[PlaybackTimers.sleep] = pending.isStopping ? nil : sleepsAt
        timers.wanted[PlaybackTimers.device] = pending.isStopping ? nil : output.loss.nextAt
        timers.wanted[PlaybackTimers.heldSeek] = pending.isStopping ? nil : nextHeldSeek
        timers.wanted[PlaybackTimers.liveness] = nextCheck
        if !playing { timers.wanted[PlaybackTimers.save] = nil }
        if !playing && !(isWaiting && session?.engine == .open && !pending.isStopping) {
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
            pending.tell(.sample)
            timers.wanted[name] = now.monotonic.advanced(by: Self.sampleInterval)
        case PlaybackTimers.save:
            session?.markPosition(&pending)
            // While the database does not answer, one commit waits, not one for each ten seconds.
            pending.commit = !pending.writes.isBusy
        case PlaybackTimers.retry:
            pending.commit = !pending.writes.isBusy
        case PlaybackTimers.recovery:
            session?.recoveryIsDue(&pending)
        case PlaybackTimers.device:
            deviceIsDue()
        case PlaybackTimers.sleep:
            perform(sleepTimer.tick(isPlaying: session?.status == .playing, now: now.monotonic))
        case PlaybackTimers.liveness:
            checkEngine()
        default:
            break
        }
    }
}
