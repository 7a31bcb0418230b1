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

    /// For whom something is written.
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
    var board: AlertBoard
    var schedule: UpkeepSchedule
    private var pending: [(purpose: Purpose, write: StoreWrite, bytes: Int)] = []
    private var isWriting = false
    private var intake = BatchIntake()
    private var questions: [(Ticket, WirePersistenceRequest.OneOf_Command)] = []
    private var running = 0
    private var backupWaiters: [Ticket] = []
    /// Who wants to know whether the database is sound: reading it takes its time, so the first asks for all.
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
        board = AlertBoard(facts.ownRecords)
        schedule = UpkeepSchedule(
            lastBackup: facts.needsBackup ? nil : facts.lastBackup, needsCheck: facts.needsCheck,
            loggedPages: facts.loggedPages, now: now)
        status.incarnation = facts.incarnation
        status.schemaVersion = UInt32(Schema.version)
        status.podcasts = facts.podcasts
        status.episodes = facts.episodes
        status.lastBackup = facts.lastBackup?.milliseconds ?? 0
    }

    /// Everything that stands on the stream under its name now.
    package func retained() -> [Publication] {
        [Publication(.put, .persistenceStatus, status.wireBytes)] + board.publications
    }

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        guard !hasStopped else { return [] }
        var effects = decide(event, now: now)
        if hasStopped { return effects }
        effects += startWriting()
        effects += startQuestions()
        effects += upkeep(now: now)
        if status != published {
            published = status
            effects.append(.publish([Publication(.put, .persistenceStatus, status.wireBytes)]))
        }
        effects += stopIfDone()
        let wake = schedule.nextWake(now: now, isDiskFull: status.diskFull)
        if wake != lastWake {
            lastWake = wake
            effects.append(.wake(at: wake))
        }
        return effects
    }

    private mutating func decide(_ event: Event, now: Moment) -> [Effect] {
        switch event {
        case .started:
            return []
        case .request(let ticket, let payload, let deadline):
            return take(ticket, payload, deadline: deadline, now: now)
        case .wrote(let purposes, let result):
            return wrote(purposes, result, now: now)
        case .answered(let ticket, let result):
            running -= 1
            let reply = result.map(\.wireBytes)
            guard checkWaiters.first == ticket else { return [.reply(ticket, reply)] + concerns(result.failure) }
            defer { checkWaiters = [] }
            return checkWaiters.map { .reply($0, reply) } + concerns(result.failure)
        case .copied(let kind, let result):
            return copied(kind, result, now: now)
        case .pruned(let result):
            schedule.pruned(now: now)
            return concerns(result.failure)
        case .checkpointed(let result):
            schedule.checkpointed(result, now: now)
            return concerns(result.failure)
        case .counted(let result):
            schedule.counted()
            if case .success(let counts) = result {
                status.podcasts = counts.podcasts
                status.episodes = counts.episodes
            }
            return concerns(result.failure)
        case .checked(let damage):
            guard let damage else { return [.log(.info, "The whole database was read and is sound.")] }
            return [.log(.error, "The check of the database has found: \(damage.details)")]
                + concerns(Failure(code: StorageFailure.damaged, message: "The database is damaged: \(damage)"))
        case .rebuilt(let result):
            schedule.rebuilt()
            return [.log(.warning, "The index of the full text search was damaged; it has been rebuilt: \(result)")]
        case .wake:
            lastWake = nil
            return []
        case .stopping:
            isStopping = true
            return []
        }
    }

    // MARK: Requests

    private mutating func take(
        _ ticket: Ticket, _ payload: [UInt8], deadline: MonotonicTime?, now: Moment
    ) -> [Effect] {
        if isStopping { return refuse(ticket, Failure(.unavailable, "The database’s service is stopping.")) }
        if let deadline, deadline < now.monotonic {
            return refuse(ticket, Failure(.expired, "The time for this request was over before it began."))
        }
        guard let request = try? WirePersistenceRequest(wireBytes: payload) else {
            return refuse(ticket, Failure(.malformed, "This isn’t a request to the database’s service."))
        }
        if case .commit? = request.command {
            // Owners commit what they have checked; a record may be long.
        } else if let failure = RequestLimits.refusal(origin: "", payload: payload, service: .persistence) {
            return refuse(ticket, failure)
        }
        switch request.command {
        case .load(let load):
            pending.append((.request(ticket), .load(load), payload.count))
        case .commit(let batch):
            switch intake.take(batch, ticket, incarnation: facts.incarnation) {
            case .write(let batch): pending.append((.request(ticket), .commit(batch), payload.count))
            case .wait: break
            case .reply(let result): return [.reply(ticket, result)]
            }
        case .backup:
            backupWaiters.append(ticket)
            schedule.wantsBackup = true
        case .answerAlert(let answer):
            return answerAlert(answer, ticket, now: now)
        case .loadRecords, .findReply, .podcasts, .episodes, .episodesByID, .findEpisode, .findPodcast, .aliases,
            .listBackups:
            if let command = request.command { questions.append((ticket, command)) }
        case .check:
            checkWaiters.append(ticket)
            if checkWaiters.count == 1, let command = request.command { questions.append((ticket, command)) }
        case nil:
            return refuse(ticket, Failure(.unknownCommand, "The database’s service doesn’t know this command."))
        }
        return []
    }

    private func refuse(_ ticket: Ticket, _ failure: Failure) -> [Effect] { [.reply(ticket, .failure(failure))] }

    private mutating func startQuestions() -> [Effect] {
        var effects: [Effect] = []
        while running < Self.questionLimit, !questions.isEmpty {
            let (ticket, question) = questions.removeFirst()
            running += 1
            effects.append(.ask(ticket, question))
        }
        return effects
    }

    // MARK: Writing

    /// Everything that waits goes into the next transaction, as soon as the last one is through.
    private mutating func startWriting() -> [Effect] {
        guard !isWriting, !pending.isEmpty else { return [] }
        var bytes = 0
        let count =
            pending.firstIndex { item in
                bytes += item.bytes
                return bytes > Self.transactionLimit
            } ?? pending.count
        let group = pending.prefix(max(1, count))
        pending.removeFirst(group.count)
        isWriting = true
        return [.write(group.map(\.purpose), group.map(\.write))]
    }

    private mutating func wrote(_ purposes: [Purpose], _ result: StoreBatchResult, now: Moment) -> [Effect] {
        isWriting = false
        schedule.wrote(pages: result.pages, now: now)
        if result.changed.snapshot { schedule.changed(now: now) }
        if result.changed.library { schedule.libraryChanged(now: now) }
        var effects = noteDisk(result, now: now)
        for (purpose, outcome) in zip(purposes, result.results) {
            switch purpose {
            case .request(let ticket):
                let reply = outcome.map(\.reply.wireBytes)
                effects.append(.reply(ticket, reply))
                effects += intake.settle(ticket, reply).map { .reply($0, reply) }
            case .alert(let id):
                effects += board.settle(id, outcome.failure)
            case .probe:
                break
            }
        }
        return effects + concerns(result.damage) + concerns(result.searchDamage)
    }

    /// The disk is full from the first refusal to the first transaction that succeeds whole.
    private mutating func noteDisk(_ result: StoreBatchResult, now: Moment) -> [Effect] {
        if let failure = result.diskFull {
            schedule.diskIsFull(now: now)
            guard !status.diskFull else { return [] }
            status.diskFull = true
            return [.log(.error, failure.message)]
                + board.raise(PersistenceAlerts.diskFull(failure, now: now.wall), replacing: true)
        }
        guard status.diskFull, result.results.contains(where: { $0.failure == nil }) else { return [] }
        status.diskFull = false
        return [.log(.info, "The disk takes data again.")] + board.clear(code: FailureCode.diskFull.rawValue)
    }

    /// Damage ends the service: the next start looks for the newest good copy. A damaged index is made anew.
    private mutating func concerns(_ failure: Failure?) -> [Effect] {
        switch failure?.code {
        case StorageFailure.damaged:
            hasStopped = true
            return [.log(.error, failure?.message ?? ""), .suspect, .stop(failure)]
        case StorageFailure.searchDamaged:
            schedule.wantsRebuild = true
            return []
        default:
            return []
        }
    }

    // MARK: Alerts

    private mutating func answerAlert(_ answer: WireAnswerAlert, _ ticket: Ticket, now: Moment) -> [Effect] {
        switch board.answer(answer, ticket, at: now.wall) {
        case .replied(let effects):
            return effects
        case .write(let changes):
            pending.append((.alert(answer.alert), .own(changes), 0))
            return []
        case .volatile(let effects):
            if answer.action == "retry" { schedule.wantsBackup = true }
            return effects
        }
    }

    // MARK: Upkeep

    private mutating func copied(
        _ kind: CopyKind, _ result: Result<StoreCopy, Failure>, now: Moment
    ) -> [Effect] {
        switch (kind, result) {
        case (.snapshot, .success(let copy)):
            schedule.snapshotDone(now: now)
            return [.log(.debug, "A side snapshot was written: \(copy.path)")]
        case (.snapshot, .failure(let failure)):
            schedule.snapshotFailed(now: now)
            return [.log(.warning, "No side snapshot was written: \(failure.message)")] + concerns(failure)
        case (.backup, .success(let copy)):
            schedule.backupDone(reaches: copy.reaches, now: now)
            status.lastBackup = copy.reaches.milliseconds
            var done = WirePersistenceReply()
            done.backup.path = copy.path
            done.backup.bytes = copy.bytes
            return answerBackupWaiters(.success(done.wireBytes)) + board.clear(code: "backupFailed")
        case (.backup, .failure(let failure)):
            schedule.backupFailed(now: now)
            let alert = PersistenceAlerts.backupFailed(failure, now: now.wall)
            return [.log(.warning, "No backup was made: \(failure.message)")]
                + answerBackupWaiters(.failure(failure)) + board.raise(alert, replacing: false) + concerns(failure)
        }
    }

    private mutating func answerBackupWaiters(_ result: Result<[UInt8], Failure>) -> [Effect] {
        defer { backupWaiters = [] }
        return backupWaiters.map { .reply($0, result) }
    }

    private mutating func upkeep(now: Moment) -> [Effect] {
        let isIdle = !isWriting && pending.isEmpty
        if status.diskFull, isIdle, !isStopping, schedule.isProbeDue(now: now) {
            pending.append((.probe, .probe, 0))
            return startWriting()
        }
        return schedule.start(now: now, isIdle: isIdle, isStopping: isStopping)
    }

    private mutating func stopIfDone() -> [Effect] {
        guard isStopping, !hasStopped, !isWriting, pending.isEmpty, running == 0, questions.isEmpty, schedule.isQuiet
        else { return [] }
        hasStopped = true
        return [.stop(nil)]
    }
}
