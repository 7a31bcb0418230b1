package import BusKit
import OwnerKit
package import PodcastModel
import SwiftProtobuf
import WireMessages

/// Decides for the persistence service which writes share a transaction, how many queries run at once, when backups are
/// made and old replies removed, and its status and alerts. It performs no I/O.
package struct PersistenceMachine: Sendable {
    /// Identifies a request until it is answered.
    package struct Ticket: Sendable, Hashable {
        package var number: UInt64
        package init(_ number: UInt64) { self.number = number }
    }

    /// The purpose of a write.
    enum Purpose: Sendable {
        case request(Ticket)
        case alert(AlertAnswer)
        /// No one waits for the result.
        case maintenance
    }

    private let incarnation: String
    private var status = WirePersistenceStatus()
    private var published: WirePersistenceStatus?
    var schedule: MaintenanceSchedule
    var alerts = OwnerAlerts(.persistence)
    /// The alerts that are records; the others end with the process.
    var recordedAlerts: Set<String>
    var pendingAnswers = PendingAnswers<AlertAnswer>()
    private var pendingWrites: [(purpose: Purpose, write: StoreWrite, bytes: Int)] = []
    /// The purposes of the transaction in progress; empty if there is none.
    private var writing: [Purpose] = []
    private var intake = BatchIntake()
    private var questions: [(Ticket, WirePersistenceRequest.OneOf_Command)] = []
    private var runningQuestions = 0
    /// Those who wait for a backup that has not begun, and for the one that is in progress: a copy that was begun
    /// before a request may lack what was acknowledged before it.
    private var backupWaiters: [Ticket] = []
    private var runningBackupWaiters: [Ticket] = []
    /// The requests for a check of the database; it takes long, so one check answers all of them.
    private var checkWaiters: [Ticket] = []
    private var isStopping = false
    private var hasStopped = false
    private var lastWake: MonotonicTime?

    /// The maximum number of concurrent queries.
    static let questionLimit = 4
    /// The maximum size of a transaction, in bytes of the requests; a larger request gets its own transaction.
    static let transactionLimit = 4 << 20

    /// Creates a machine for a newly opened store.
    package init(_ facts: StoreFacts, now: Moment) {
        incarnation = facts.incarnation
        for record in facts.ownRecords {
            // An unreadable record is left in the database.
            _ = try? alerts.restore(
                StoredRecord(collection: record.collection, key: record.key, value: [UInt8](record.value)))
        }
        recordedAlerts = Set(alerts.active.keys)
        schedule = MaintenanceSchedule(
            copies: facts.needsBackup ? [] : facts.copies, needsCheck: facts.needsCheck,
            loggedPages: facts.loggedPages, now: now)
        status.incarnation = facts.incarnation
        status.schemaVersion = UInt32(Schema.version)
        status.podcasts = facts.podcasts
        status.episodes = facts.episodes
        status.lastBackup = facts.copies.first { $0.kind == .backup }?.at.milliseconds ?? 0
    }

    /// All events that are now retained on the stream under the service’s name.
    package func retained() -> [Publication] {
        [Publication(.put, .persistenceStatus, status.wireBytes)] + alerts.retained
    }

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        guard !hasStopped else { return [] }
        var effects: [Effect] = []
        handle(event, now: now, &effects)
        if hasStopped { return effects }
        startWriting(&effects)
        startQuestions(&effects)
        startMaintenance(now: now, &effects)
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
        case .wrote(let result): wrote(result, now: now, &effects)
        case .answered(let ticket, let result):
            runningQuestions -= 1
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
            if case .success(let counts) = result { (status.podcasts, status.episodes) = counts }
            handleDamage(result.failure, &effects)
        case .checked(.failure(let failure)):
            // The next check is due at the usual time; a read error of queries is reported by them.
            schedule.checked(now: now)
            effects.append(.log(.error, "The database could not be checked: \(failure.message)"))
        case .checked(.success(nil)):
            schedule.checked(now: now)
            enqueue(.checked, for: .maintenance)
            effects.append(.log(.info, "The database passed the integrity check."))
        case .checked(.success(let damage?)):
            effects.append(.log(.error, "The database check found damage: \(damage.details)"))
            let failure = Failure(code: StorageFailure.damaged, message: "The database is damaged: \(damage)")
            handleDamage(failure, &effects)
        case .rebuilt(let result):
            schedule.rebuilt()
            let outcome = result.failure.map { "could not be rebuilt: \($0.message)" } ?? "has been rebuilt."
            effects.append(.log(.warning, "The full-text search index was damaged; it \(outcome)"))
        case .wake: lastWake = nil
        case .stopping: isStopping = true
        }
    }

    // MARK: Requests

    private mutating func handle(
        _ ticket: Ticket, _ payload: [UInt8], deadline: MonotonicTime?, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        if isStopping { throw Failure(.unavailable, "The persistence service is stopping; try again.") }
        if let deadline, deadline < now.monotonic {
            throw Failure(.expired, "The request expired before it began.")
        }
        guard let request = try? WirePersistenceRequest(wireBytes: payload) else {
            throw Failure(.malformed, "The persistence service can’t decode the request.")
        }
        if case .commit? = request.command {
            // Owners validate what they commit; a record may be long.
        } else if let failure = RequestLimits.refusal(origin: "", payload: payload, service: .persistence) {
            throw failure
        }
        switch request.command {
        case .load(let load): enqueue(.load(load), for: .request(ticket), bytes: payload.count)
        case .commit(let batch):
            switch intake.accept(batch, ticket, incarnation: incarnation) {
            case .write(let batch): enqueue(.commit(batch), for: .request(ticket), bytes: payload.count)
            case .wait: break
            case .reply(let result): effects.append(.reply(ticket, result))
            }
        case .backup:
            backupWaiters.append(ticket)
            schedule.wantsBackup = true
        case .answerAlert(let answer): try answerAlert((ticket, answer), now: now, &effects)
        case .check(let check):
            checkWaiters.append(ticket)
            if checkWaiters.count == 1 { questions.append((ticket, .check(check))) }
        case let question?: questions.append((ticket, question))
        case nil: throw Failure(.unknownCommand, "This version of the persistence service doesn’t support the command.")
        }
    }

    private mutating func startQuestions(_ effects: inout [Effect]) {
        while runningQuestions < Self.questionLimit, !questions.isEmpty {
            let (ticket, question) = questions.removeFirst()
            runningQuestions += 1
            effects.append(.ask(ticket, question))
        }
    }

    // MARK: Writing

    mutating func enqueue(_ write: StoreWrite, for purpose: Purpose, bytes: Int = 0) {
        pendingWrites.append((purpose, write, bytes))
    }

    /// Begins the next transaction, with all waiting writes, as soon as the last one has ended.
    private mutating func startWriting(_ effects: inout [Effect]) {
        guard writing.isEmpty, !pendingWrites.isEmpty else { return }
        var bytes = 0
        let count =
            pendingWrites.firstIndex { item in
                bytes += item.bytes
                return bytes > Self.transactionLimit
            } ?? pendingWrites.count
        let group = pendingWrites.prefix(max(1, count))
        pendingWrites.removeFirst(group.count)
        writing = group.map(\.purpose)
        effects.append(.write(group.map(\.write)))
    }

    private mutating func wrote(_ result: StoreBatchResult, now: Moment, _ effects: inout [Effect]) {
        schedule.wrote(pages: result.pages, now: now)
        if result.changed.contains(.snapshot) { schedule.changed(now: now) }
        if result.changed.contains(.library) { schedule.libraryChanged(now: now) }
        updateDiskFull(result, now: now, &effects)
        let purposes = writing
        writing = []
        for (purpose, outcome) in zip(purposes, result.results) {
            switch purpose {
            case .request(let ticket):
                let reply = outcome.map(\.wireBytes)
                effects += ([ticket] + intake.answered(ticket, reply)).map { .reply($0, reply) }
            case .alert(let request): alertAnswered(request, outcome.failure, now: now, &effects)
            case .maintenance: break
            }
        }
        for failure in result.failures { handleDamage(failure, &effects) }
    }

    /// Updates the disk’s state: full from the first refusal until a transaction succeeds completely.
    private mutating func updateDiskFull(_ result: StoreBatchResult, now: Moment, _ effects: inout [Effect]) {
        if let failure = result.failures.first(where: { $0.known == .diskFull }) {
            schedule.diskIsFull(now: now)
            guard !status.diskFull else { return }
            status.diskFull = true
            effects.append(.log(.error, failure.message))
            raise(PersistenceAlerts.diskFull(failure, now: now.wall), &effects)
        } else if status.diskFull, result.results.contains(where: { $0.failure == nil }) {
            status.diskFull = false
            effects.append(.log(.info, "The disk has space again."))
            endAlerts(code: FailureCode.diskFull.rawValue, &effects)
        }
    }

    /// Ends the service if the database is damaged: the next start restores the newest good copy. A damaged index is
    /// rebuilt.
    private mutating func handleDamage(_ failure: Failure?, _ effects: inout [Effect]) {
        switch failure?.code {
        case StorageFailure.damaged where !hasStopped:
            hasStopped = true
            effects += [.log(.error, failure?.message ?? ""), .suspect, .stop(failure)]
        case StorageFailure.searchDamaged: schedule.wantsRebuild = true
        default: break
        }
    }

    // MARK: Maintenance

    private mutating func copied(
        _ kind: DatabaseCopy.Kind, _ result: Result<DatabaseCopy, Failure>, now: Moment, _ effects: inout [Effect]
    ) {
        switch (kind, result) {
        case (.snapshot, .success(let copy)):
            schedule.snapshotEnded(copy, now: now)
            effects.append(.log(.debug, "A side snapshot was written: \(copy.path)"))
        case (.snapshot, .failure(let failure)):
            schedule.snapshotEnded(nil, now: now)
            effects.append(.log(.warning, "No side snapshot was written: \(failure.message)"))
        case (.backup, .success(let copy)):
            schedule.backupEnded(copy, now: now)
            status.lastBackup = copy.at.milliseconds
            let done = WirePersistenceReply.with {
                $0.backup.path = copy.path
                $0.backup.bytes = copy.bytes
            }
            answerBackupWaiters(.success(done.wireBytes), &effects)
            endAlerts(code: PersistenceAlerts.backupFailed, &effects)
        case (.backup, .failure(let failure)):
            schedule.backupEnded(nil, now: now)
            effects.append(.log(.warning, "No backup was made: \(failure.message)"))
            answerBackupWaiters(.failure(failure), &effects)
            raise(PersistenceAlerts.backupFailed(failure, now: now.wall), &effects)
        }
        handleDamage(result.failure, &effects)
    }

    private mutating func answerBackupWaiters(_ result: Result<[UInt8], Failure>, _ effects: inout [Effect]) {
        effects += runningBackupWaiters.map { .reply($0, result) }
        runningBackupWaiters = []
    }

    private mutating func startMaintenance(now: Moment, _ effects: inout [Effect]) {
        let isIdle = writing.isEmpty && pendingWrites.isEmpty
        if status.diskFull, isIdle, !isStopping, schedule.isProbeDue(now: now) {
            enqueue(.probe, for: .maintenance)
            return startWriting(&effects)
        }
        let wasBackingUp = schedule.isBackingUp
        schedule.start(now: now, isIdle: isIdle, isStopping: isStopping, &effects)
        if schedule.isBackingUp, !wasBackingUp { swap(&backupWaiters, &runningBackupWaiters) }
    }

    private mutating func stopIfDone(_ effects: inout [Effect]) {
        guard isStopping, !hasStopped, writing.isEmpty, pendingWrites.isEmpty, runningQuestions == 0,
            questions.isEmpty, schedule.isQuiet
        else { return }
        hasStopped = true
        effects.append(.stop(nil))
    }
}
