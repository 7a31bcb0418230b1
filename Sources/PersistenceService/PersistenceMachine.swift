package import BusKit
import OwnerKit
package import PodcastModel
import WireMessages

/// Decides what the database's service does next: which writes go into one transaction, how many questions run at
/// once, when copies are made and old replies forgotten, what its status and alerts say. It performs nothing itself.
package struct PersistenceMachine: Sendable {
    /// Names a request until it is answered.
    package struct Ticket: Sendable, Hashable {
        package var number: UInt64
        /// The ticket of this number.
        package init(_ number: UInt64) { self.number = number }
    }

    /// The purpose of a write.
    package enum Purpose: Sendable, Hashable {
        /// To answer a request.
        case request(Ticket)
        /// An alert was answered.
        case alert(String)
        /// To find out whether the disk takes something again.
        case probe
    }

    var facts: StoreFacts
    var status = WirePersistenceStatus()
    var alerts: PersistenceAlertStore
    var schedule: UpkeepSchedule
    private var pending: [(purpose: Purpose, write: StoreWrite, bytes: Int)] = []
    private var isWriting = false
    private var intake = BatchIntake()
    private var questions: [(Ticket, WirePersistenceRequest.OneOf_Command)] = []
    private var running = 0
    private var backupWaiters: [Ticket] = []
    /// The requests for a check of the database, which takes long: one check answers all of them.
    private var checkWaiters: [Ticket] = []
    private var isStopping = false
    private var hasStopped = false
    private var lastWake: MonotonicTime?
    private var published: WirePersistenceStatus?

    /// The questions that run at the same time.
    package static let questionLimit = 4
    /// The most that one transaction takes, in bytes of the requests; one larger request goes alone.
    package static let transactionLimit = 4 << 20

    /// A machine over a store that was just opened.
    package init(_ facts: StoreFacts, now: Moment) {
        self.facts = facts
        alerts = PersistenceAlertStore(facts.ownRecords)
        schedule = UpkeepSchedule(
            lastBackup: facts.needsBackup ? nil : facts.lastBackup, needsCheck: facts.needsCheck,
            loggedPages: facts.loggedPages, now: now)
        status.incarnation = facts.incarnation
        status.schemaVersion = UInt32(Schema.version)
        status.podcasts = facts.podcasts
        status.episodes = facts.episodes
        status.lastBackup = facts.lastBackup?.milliseconds ?? 0
    }

    /// Everything that is retained on the stream under its name now.
    package func retained() -> [Publication] {
        [Publication(.put, .persistenceStatus, status.wireBytes)] + alerts.publications
    }

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        guard !hasStopped else { return [] }
        var effects: [Effect] = []
        handle(event, now: now, &effects)
        if hasStopped { return effects }
        startWriting(&effects)
        startQuestions(&effects)
        upkeep(now: now, &effects)
        if status != published {
            published = status
            effects.append(.publish([Publication(.put, .persistenceStatus, status.wireBytes)]))
        }
        stopIfDone(&effects)
        let wake = schedule.nextWake(now: now, isDiskFull: status.diskFull)
        if wake != lastWake {
            lastWake = wake
            effects.append(.wake(at: wake))
        }
        return effects
    }

    private mutating func handle(_ event: Event, now: Moment, _ effects: inout [Effect]) {
        switch event {
        case .started: break
        case .request(let ticket, let payload, let deadline):
            do throws(Failure) {
                try handle(ticket, payload, deadline: deadline, now: now, &effects)
            } catch {
                effects.append(.reply(ticket, .failure(error)))
            }
        case .wrote(let purposes, let result): wrote(purposes, result, now: now, &effects)
        case .answered(let ticket, let result):
            running -= 1
            let isCheck = checkWaiters.first == ticket
            let reply = result.map(\.wireBytes)
            effects += (isCheck ? checkWaiters : [ticket]).map { .reply($0, reply) }
            if isCheck { checkWaiters = [] }
            handleDamage(result.failure, &effects)
        case .copied(let kind, let result): copied(kind, result, now: now, &effects)
        case .pruned(let result):
            schedule.pruned(now: now)
            handleDamage(result.failure, &effects)
        case .checkpointed(let result):
            schedule.checkpointed(result, now: now)
            handleDamage(result.failure, &effects)
        case .counted(let result):
            schedule.counted()
            if case .success(let counts) = result {
                status.podcasts = counts.podcasts
                status.episodes = counts.episodes
            }
            handleDamage(result.failure, &effects)
        case .checked(nil): effects.append(.log(.info, "The whole database was read and is sound."))
        case .checked(let damage?):
            effects.append(.log(.error, "The check of the database has found: \(damage.details)"))
            let failure = Failure(code: StorageFailure.damaged, message: "The database is damaged: \(damage)")
            handleDamage(failure, &effects)
        case .rebuilt(let result):
            schedule.rebuilt()
            effects.append(
                .log(.warning, "The index of the full text search was damaged; it has been rebuilt: \(result)"))
        case .wake: lastWake = nil
        case .stopping: isStopping = true
        }
    }

    // MARK: Requests

    private mutating func handle(
        _ ticket: Ticket, _ payload: [UInt8], deadline: MonotonicTime?, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        if isStopping { throw Failure(.unavailable, "The database’s service is stopping.") }
        if let deadline, deadline < now.monotonic {
            throw Failure(.expired, "The time for this request was over before it began.")
        }
        guard let request = try? WirePersistenceRequest(wireBytes: payload) else {
            throw Failure(.malformed, "This isn’t a request to the database’s service.")
        }
        if case .commit? = request.command {
            // Owners commit what they have checked; a record may be long.
        } else if let failure = RequestLimits.refusal(origin: "", payload: payload, service: .persistence) {
            throw failure
        }
        switch request.command {
        case .load(let load): pending.append((.request(ticket), .load(load), payload.count))
        case .commit(let batch):
            switch intake.take(batch, ticket, incarnation: facts.incarnation) {
            case .write(let batch): pending.append((.request(ticket), .commit(batch), payload.count))
            case .wait: break
            case .reply(let result): effects.append(.reply(ticket, result))
            }
        case .backup:
            backupWaiters.append(ticket)
            schedule.wantsBackup = true
        case .answerAlert(let answer): answerAlert(answer, ticket, now: now, &effects)
        case .loadRecords, .findReply, .podcasts, .episodes, .episodesByID, .findEpisode, .findPodcast, .aliases,
            .listBackups:
            if let command = request.command { questions.append((ticket, command)) }
        case .check:
            checkWaiters.append(ticket)
            if checkWaiters.count == 1, let command = request.command { questions.append((ticket, command)) }
        case nil:
            throw Failure(.unknownCommand, "The database’s service doesn’t know this command.")
        }
    }

    private mutating func startQuestions(_ effects: inout [Effect]) {
        while running < Self.questionLimit, !questions.isEmpty {
            let (ticket, question) = questions.removeFirst()
            running += 1
            effects.append(.ask(ticket, question))
        }
    }

    // MARK: Writing

    /// Everything that waits goes into the next transaction, as soon as the last one is through.
    private mutating func startWriting(_ effects: inout [Effect]) {
        guard !isWriting, !pending.isEmpty else { return }
        var bytes = 0
        let count =
            pending.firstIndex { item in
                bytes += item.bytes
                return bytes > Self.transactionLimit
            } ?? pending.count
        let group = pending.prefix(max(1, count))
        pending.removeFirst(group.count)
        isWriting = true
        effects.append(.write(group.map(\.purpose), group.map(\.write)))
    }

    private mutating func wrote(
        _ purposes: [Purpose], _ result: StoreBatchResult, now: Moment, _ effects: inout [Effect]
    ) {
        isWriting = false
        schedule.wrote(pages: result.pages, now: now)
        if result.changed.snapshot { schedule.changed(now: now) }
        if result.changed.library { schedule.libraryChanged(now: now) }
        updateDiskFull(result, now: now, &effects)
        for (purpose, outcome) in zip(purposes, result.results) {
            switch purpose {
            case .request(let ticket):
                let reply = outcome.map(\.reply.wireBytes)
                effects.append(.reply(ticket, reply))
                effects += intake.settle(ticket, reply).map { .reply($0, reply) }
            case .alert(let id): alerts.answerCommitted(id, outcome.failure, &effects)
            case .probe: break
            }
        }
        handleDamage(result.damage, &effects)
        handleDamage(result.searchDamage, &effects)
    }

    /// The disk is full from the first refusal to the first transaction that succeeds completely.
    private mutating func updateDiskFull(_ result: StoreBatchResult, now: Moment, _ effects: inout [Effect]) {
        if let failure = result.diskFull {
            schedule.diskIsFull(now: now)
            guard !status.diskFull else { return }
            status.diskFull = true
            effects.append(.log(.error, failure.message))
            alerts.raise(PersistenceAlerts.diskFull(failure, now: now.wall), replacing: true, &effects)
        } else if status.diskFull, result.results.contains(where: { $0.failure == nil }) {
            status.diskFull = false
            effects.append(.log(.info, "The disk takes data again."))
            alerts.clear(code: FailureCode.diskFull.rawValue, &effects)
        }
    }

    /// Ends the service if the database is damaged: the next start looks for the newest good copy. A damaged index is
    /// rebuilt.
    private mutating func handleDamage(_ failure: Failure?, _ effects: inout [Effect]) {
        switch failure?.code {
        case StorageFailure.damaged:
            hasStopped = true
            effects += [.log(.error, failure?.message ?? ""), .suspect, .stop(failure)]
        case StorageFailure.searchDamaged: schedule.wantsRebuild = true
        default: break
        }
    }

    // MARK: Alerts

    private mutating func answerAlert(
        _ answer: WireAnswerAlert, _ ticket: Ticket, now: Moment, _ effects: inout [Effect]
    ) {
        switch alerts.answer(answer, ticket, at: now.wall, &effects) {
        case .replied: break
        case .write(let changes): pending.append((.alert(answer.alert), .own(changes), 0))
        case .ended: if answer.action == "retry" { schedule.wantsBackup = true }
        }
    }

    // MARK: Upkeep

    private mutating func copied(
        _ kind: CopyKind, _ result: Result<StoreCopy, Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        switch (kind, result) {
        case (.snapshot, .success(let copy)):
            schedule.snapshotDone(now: now)
            effects.append(.log(.debug, "A side snapshot was written: \(copy.path)"))
        case (.snapshot, .failure(let failure)):
            schedule.snapshotFailed(now: now)
            effects.append(.log(.warning, "No side snapshot was written: \(failure.message)"))
        case (.backup, .success(let copy)):
            schedule.backupDone(reaches: copy.reaches, now: now)
            status.lastBackup = copy.reaches.milliseconds
            var done = WirePersistenceReply()
            done.backup.path = copy.path
            done.backup.bytes = copy.bytes
            answerBackupWaiters(.success(done.wireBytes), &effects)
            alerts.clear(code: "backupFailed", &effects)
        case (.backup, .failure(let failure)):
            schedule.backupFailed(now: now)
            effects.append(.log(.warning, "No backup was made: \(failure.message)"))
            answerBackupWaiters(.failure(failure), &effects)
            alerts.raise(PersistenceAlerts.backupFailed(failure, now: now.wall), replacing: false, &effects)
        }
        handleDamage(result.failure, &effects)
    }

    private mutating func answerBackupWaiters(_ result: Result<[UInt8], Failure>, _ effects: inout [Effect]) {
        effects += backupWaiters.map { .reply($0, result) }
        backupWaiters = []
    }

    private mutating func upkeep(now: Moment, _ effects: inout [Effect]) {
        let isIdle = !isWriting && pending.isEmpty
        if status.diskFull, isIdle, !isStopping, schedule.isProbeDue(now: now) {
            pending.append((.probe, .probe, 0))
            return startWriting(&effects)
        }
        schedule.start(now: now, isIdle: isIdle, isStopping: isStopping, &effects)
    }

    private mutating func stopIfDone(_ effects: inout [Effect]) {
        guard isStopping, !hasStopped, !isWriting, pending.isEmpty, running == 0, questions.isEmpty, schedule.isQuiet
        else { return }
        hasStopped = true
        effects.append(.stop(nil))
    }
}
