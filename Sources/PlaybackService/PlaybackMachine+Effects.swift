import BusKit
import OwnerKit
import PodcastModel
package import WireMessages

extension PlaybackMachine {
    /// Returns the effects of the event in order: publications, replies and commits, then actions. The engine’s
    /// commands are actions.
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
        recordPlaySession()
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
        effects += Timer.allCases.map { .timer($0, at: timers[$0]) }
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

    /// Publishes an end that isn’t durable yet before another load replaces it.
    mutating func showEndNow() {
        guard pending.writes.hasEnd else { return }
        pending.writes.endIsShown()
        pending.earlierPublications.append(putState())
    }

    // MARK: Saving

    private mutating func commitOrReply() -> Effect? {
        let reply = pending.answer.map { ($0.request, $0.reply(state, output.wire).wireBytes) }
        guard pending.commit || reply != nil else { return nil }
        if pending.writes.dirty.contains(.session), let heard = playSessions.takeUnsaved() {
            pending.writes.mark(heard)
        }
        guard !pending.writes.dirty.isEmpty else { return reply.map { .reply($0.0, .success($0.1)) } }
        let items = pending.writes.dirty.sorted()
        for case .episodeState(let episode) in items { prepared.forgetAnswer(about: episode) }
        let id = TransactionID(pending.nextSerial())
        pending.writes.begin(id, .state(items))
        if case .awaitingCommit(nil)? = session?.engine { session?.engine = .awaitingCommit(id) }
        let events = items.compactMap(pending.writes.event)
        return .commit(
            Transaction(
                id, changes: items.map(change), publications: events, answering: reply,
                onRefusal: .notSaved(pending.answer?.fact ?? "")))
    }

    /// Commits a change in a transaction of its own, and answers a request with it.
    @discardableResult
    mutating func commit(
        _ entry: PendingWrites.Entry, _ change: OwnerChange, answering request: RequestID, _ reply: WirePlaybackReply
    ) -> TransactionID {
        let id = TransactionID(pending.nextSerial())
        pending.writes.begin(id, entry)
        pending.transactions.append(Transaction(id, change, answering: (request, reply.wireBytes)))
        return id
    }

    func change(_ item: Item) -> WireChange {
        switch item {
        case .session:
            guard let session else { return .deleting("session", "current") }
            let record = session.record(now: now, context: context, clean: pending.isStopping)
            return .putting("session", "current", record)
        case .settings:
            var record = WirePlaybackSettingsRecord()
            record.volume = volume.percent
            output.fill(&record)
            return .putting("settings", "current", record)
        case .episodeState(let episode):
            return .putting(pending.writes.unsavedStates[episode] ?? WireEpisodeState())
        case .alert(let id): return pending.alerts.change(id)
        case .setting(let podcast, let key): return settings.record(podcast, key)
        case .sleep: return sleepTimer.change(bootID: context.bootID)
        case .chapters(let episode): return chapters.files.change(episode)
        case .marks(let key): return marks.records.change(key)
        case .bookmark(let id): return bookmarks.bookmarks.change(id)
        case .playSession(let id): return .putting(pending.writes.unsavedSessions[id] ?? WirePlaySession())
        }
    }

    package func everything() -> [WireChange] {
        var changes = [change(.settings)]
        if let session {
            changes.append(change(.session))
            if session.episodeState.updatedAt > 0 { changes.append(.putting(session.episodeState)) }
        }
        changes += settings.everything + bookmarks.bookmarks.everything + marks.records.everything
        if sleepTimer.phase != .off { changes.append(change(.sleep)) }
        if let heard = playSessions.current { changes.append(.putting(heard)) }
        return changes + chapters.files.everything + pending.alerts.everything
    }

    mutating func handleCommitted(_ id: TransactionID) {
        timers.retrySaving(after: 0, now: now.monotonic)
        switch pending.writes.committed(id) {
        case .answer(let answer)?: apply(answer)
        case .state?, .marks?, .bookmark?, nil: bookmarks.committed(id)
        }
        let writes = pending.writes
        if writes.refusals == 0, !writes.dirty.isEmpty, !writes.isBusy { pending.commit = true }
        if pending.writes.concludeEnd(id) { pending.state = true }
        session?.concluded(id, isSaved: true, &pending)
    }

    mutating func handleRefused(_ id: TransactionID, _ failure: Failure) {
        // The state of an episode that is no longer in the library is dropped, and so is a refused play session.
        let forgotten = failure.known == .notFound || failure.known == .invalidArgument
        switch pending.writes.refused(id, keeping: { !forgotten || $0.isKeptIfRefused }) {
        case .answer(let answer)?:
            pending.writes.mark(.alert(answer.answer.alert))
            processAnswers(pending.alerts.refused(answer.answer.alert))
        case .marks(let marks, let record)?: rollBack(marks, record)
        case .bookmark?:
            if let episode = bookmarks.refused(id) {
                pending.publications.append(bookmarks.publication(of: episode))
            }
        case .state?, nil: break
        }
        timers.retrySaving(after: pending.writes.refusals, now: now.monotonic)
        if pending.writes.concludeEnd(id) { pending.state = true }
        session?.concluded(id, isSaved: false, &pending)
    }

    // MARK: Timers

    private mutating func setTimers() {
        let time = now.monotonic
        let isStopping = pending.isStopping
        let isPlaying = session?.status == .playing
        timers.follow(isStopping ? nil : session, isChanged: pending.state, now: time)
        timers[.liveness] = liveness.nextAt(timers[.liveness], isStopping: isStopping, now: time)
        timers[.recovery] = isStopping ? nil : session?.recovery.nextAt(isOpen: engineHasFile)
        timers[.milestone] = isStopping ? nil : nextMilestone()
        timers[.sleep] =
            isStopping ? nil : sleepTimer.nextAt(isPlaying: isPlaying, fade: settings.number(.sleepFade), now: time)
        timers[.device] = isStopping ? nil : output.loss.nextAt
        timers[.heldSeek] =
            isStopping ? nil : heldSeeks.nextAt(session, hasChapters: !chapters.chapters.isEmpty, now: time)
    }

    mutating func handleTimer(_ timer: Timer) {
        timers.fired(timer, now: now.monotonic)
        switch timer {
        case .sample:
            session?.tracker.settlesAt = nil
            pending.command(.sample)
        case .save, .retry:
            if timer == .save { session?.markPosition(&pending) }
            // One commit at a time waits for the database.
            pending.commit = !pending.writes.isBusy
        case .recovery: session?.recoveryIsDue(&pending)
        case .device: deviceIsDue()
        case .sleep: perform(sleepTimer.tick(isPlaying: session?.status == .playing, now: now.monotonic))
        case .liveness: checkEngine()
        case .milestone, .heldSeek: break
        }
    }
}
