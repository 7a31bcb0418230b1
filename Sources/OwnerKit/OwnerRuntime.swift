import BusKit
import Logging
import PodcastModel
import ProcessKit
import WireMessages

/// The decisions of an `OwnerService` around the owner’s own machine: requests, commits, the start of an epoch, timers.
/// It holds no socket, clock or task, so that a whole owner can be tested against a scripted database.
struct OwnerRuntime<Machine: OwnerMachine>: ServiceHandler {
    /// The purpose of a call; it is returned with the answer.
    enum Purpose: Sendable {
        case load
        case records
        case batch
        case lookUp(RequestID)
        case podcast(PodcastID)
        /// A call of the machine, and the pages so far if it looks up episodes.
        case call(Machine.Query, EpisodeLookup?)
    }

    /// The inputs from outside the bus.
    enum Input: Sendable {
        case machine(Machine.Input)
        case answered(Purpose, Result<[UInt8], Failure>)
    }

    typealias Event = ServiceEvent<Input>
    typealias Effect = ServiceEffect<Input>

    /// A transaction whose outcome is pending.
    struct PendingTransaction {
        var id: TransactionID
        var step: Machine.Step
        var onRefusal: RefusalAnswer
        /// Successful replies that may build on it; they are sent when it is durable.
        var repliesAwaitingCommit: [(id: RequestID, reply: [UInt8])] = []
    }

    enum Phase {
        case loading
        case serving
        case stopping(until: MonotonicTime)
        case stopped
    }

    /// The time limit of the last commits after SIGTERM.
    static var stopLimit: Duration { .milliseconds(2_500) }
    /// The wait before the whole state is written again to a database that has refused it.
    static var repairBackoff: Backoff { .constant(.seconds(5)) }

    var machine: Machine
    var requests = RequestDeduplicator()
    var pipeline: CommitPipeline
    let generation: UInt32
    private let performer: @Sendable (Machine.Action) -> Void
    var phase = Phase.loading
    var replica = Replica()
    var timers: [Machine.Timer: MonotonicTime] = [:]
    var forgottenPodcasts = ForgottenPodcasts()
    var loaded: (revision: UInt64, incarnation: String) = (0, "")
    var records: [StoredRecord] = []
    /// The transactions whose outcome is pending, in order.
    private var pendingTransactions: [PendingTransaction] = []
    private var lastTransaction: UInt64 = 0
    /// The time of the next attempt to write the whole state.
    var repairAt: MonotonicTime?
    /// The epoch in which the service is registered.
    var epoch: UInt64?
    /// Whether all retained values were put in this epoch.
    var hasPublishedRetained = false
    /// The topics of which the bus has refused a delta.
    var topicsToPutWhole: Set<Topic> = []
    var refusedPuts = RefusedPuts()
    /// The effects that follow a publication: performed before any other event is handled.
    private var afterPublish: [Machine.Effect] = []
    private var mayPublishFirst = false
    /// The last ready generation of persistence, and whether it has changed.
    var persistenceGeneration: UInt32?
    var persistenceHasRestarted = false
    /// The incarnation of the database whose records the machine has.
    var database: String?

    /// - Parameter perform: performs the shell’s actions, and must not block.
    init(
        _ machine: Machine, generation: UInt32, seed: UInt64, perform: @escaping @Sendable (Machine.Action) -> Void
    ) {
        self.machine = machine
        performer = perform
        self.generation = generation
        pipeline = CommitPipeline(owner: Machine.owner, generation: generation, seed: seed)
    }

    /// The time at which `timerFired` is due; nil means never.
    var deadline: MonotonicTime? {
        var next = [
            requests.deadline, timers.values.min(), repairAt, refusedPuts.retryAt, forgottenPodcasts.retryAt,
        ].compactMap { $0 }.min()
        if case .stopping(let until) = phase { next = next.map { min($0, until) } ?? until }
        return next
    }

    /// Handles an event. The publications of a command or an input are returned first and alone, and `finish` returns
    /// the rest, so that observers need not wait for a commit to be built.
    mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        var effects = finish(now: now)
        if case .stopped = phase { return effects }
        switch event {
        case .bus(.command), .input(.machine): mayPublishFirst = true
        default: mayPublishFirst = false
        }
        switch event {
        case .started: load(&effects)
        case .bus(.epochBegan(let epoch)):
            self.epoch = epoch
            hasPublishedRetained = false
            refusedPuts = RefusedPuts()
            deduplicate(.connectionLost, now, &effects)
        case .bus(.command(let command)): handle(command, now, &effects)
        case .bus(.update(let update)): handle(update, now, &effects)
        case .bus(.status(let service, let ready)): serviceStatusChanged(service, ready: ready)
        case .input(.answered(let purpose, let result)): handle(result, for: purpose, now, &effects)
        case .bus(.rejected(let publication, let code)): handleRejection(of: publication, code, now, &effects)
        case .bus(.timerFired): performDueWork(now, &effects)
        case .input(.machine(let input)): run(.input(input), now, &effects)
        case .stopping:
            guard case .serving = phase else {
                phase = .stopped
                return effects + [.stop(nil)]
            }
            phase = .stopping(until: now.monotonic.advanced(by: Self.stopLimit))
            run(.stopping, now, &effects)
        case .bus(.fenced(let failure)): stop(failure, &effects)
        case .bus(.heartbeat): break
        }
        if afterPublish.isEmpty { followUp(now, &effects) }
        return effects
    }

    mutating func finish(now: Moment) -> [Effect] {
        guard !afterPublish.isEmpty else { return [] }
        var effects: [Effect] = []
        mayPublishFirst = false
        let rest = afterPublish
        afterPublish = []
        for effect in rest { perform(effect, now, &effects) }
        followUp(now, &effects)
        return effects
    }

    private mutating func followUp(_ now: Moment, _ effects: inout [Effect]) {
        if pipeline.needsRepair, repairAt == nil { repairAt = now.monotonic.advanced(by: Self.repairBackoff.wait()) }
        probeIfRestarted(now, &effects)
        verifyNextPodcast(now, &effects)
        publishRetainedIfDue(now, &effects)
        putWholeIfDue(now, &effects)
        stopIfDone(now, &effects)
    }

    /// Waits until the pipeline is idle, so that no change is visible before it is durable.
    private mutating func publishRetainedIfDue(_ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase, epoch != nil, !hasPublishedRetained, pipeline.isIdle else { return }
        hasPublishedRetained = true
        topicsToPutWhole = []
        effects.append(.publish(machine.retained(now: now)))
        effects.append(.ready)
    }

    private mutating func stopIfDone(_ now: Moment, _ effects: inout [Effect]) {
        let isDone = pipeline.isIdle && machine.hasStopped
        guard case .stopping(let until) = phase, isDone || now.monotonic >= until else { return }
        if !pipeline.isIdle { effects.append(.log(.warning, "stopping with unsaved changes")) }
        stop(nil, &effects)
    }

    mutating func stop(_ failure: Failure?, _ effects: inout [Effect]) {
        phase = .stopped
        effects.append(.stop(failure))
    }
}

// MARK: - The machine

extension OwnerRuntime {
    mutating func run(_ event: Machine.Event, _ now: Moment, _ effects: inout [Effect]) {
        perform(machine.handle(event, now: now), now, &effects)
    }

    mutating func perform(_ wanted: [Machine.Effect], _ now: Moment, _ effects: inout [Effect]) {
        let publications = wanted.flatMap { effect -> [Publication] in
            if case .publish(let publications) = effect { publications } else { [] }
        }
        guard mayPublishFirst, hasPublishedRetained, afterPublish.isEmpty, !publications.isEmpty else {
            // Waiting effects are performed first.
            if !afterPublish.isEmpty { return afterPublish += wanted }
            for effect in wanted { perform(effect, now, &effects) }
            return
        }
        publish(publications, &effects)
        afterPublish = wanted.filter { if case .publish = $0 { false } else { true } }
    }

    private mutating func perform(_ effect: Machine.Effect, _ now: Moment, _ effects: inout [Effect]) {
        switch effect {
        case .commit(let transaction): commit(transaction, now, &effects)
        case .publish(let publications): publish(publications, &effects)
        case .reply(let id, let result): reply(id, result, now, &effects)
        case .call(let call):
            let request = OutgoingRequest(
                id: call.request ?? .random(), service: call.service, payload: call.payload,
                deadline: call.limit.map { now.monotonic.advanced(by: $0) }, mayBeRepeat: call.mayBeRepeat)
            let lookup = EpisodeLookup(service: call.service, payload: call.payload, limit: call.limit)
            effects.append(.ask(request) { .answered(.call(call.query, lookup), $0) })
        case .timer(let timer, let time): timers[timer] = time
        case .perform(let action): effects.append(.run { [performer] in performer(action) })
        case .log(let level, let text): effects.append(.log(level.level, text))
        }
    }

    /// Publishes if all retained values were put in this epoch; otherwise their first puts will include the changes.
    func publish(_ publications: [Publication], _ effects: inout [Effect]) {
        guard hasPublishedRetained, !publications.isEmpty else { return }
        effects.append(.publish(publications))
    }

    private mutating func performDueWork(_ now: Moment, _ effects: inout [Effect]) {
        deduplicate(.tick, now, &effects)
        if let repairAt, now.monotonic >= repairAt {
            self.repairAt = nil
            updatePipeline(.repair, now, &effects)
        }
        retryRefusedPuts(now, &effects)
        let due = timers.filter { $0.value <= now.monotonic }.sorted { $0.value < $1.value }
        // A timer that an earlier due timer has rescheduled or cancelled isn’t due.
        for (timer, time) in due where timers[timer] == time {
            timers[timer] = nil
            run(.timer(timer), now, &effects)
        }
    }

    /// Puts the whole values whose deltas the bus has refused, once all their changes are durable.
    private mutating func putWholeIfDue(_ now: Moment, _ effects: inout [Effect]) {
        guard !topicsToPutWhole.isEmpty, hasPublishedRetained, pipeline.isIdle else { return }
        publish(machine.retained(now: now).filter { topicsToPutWhole.contains($0.topic) }, &effects)
        topicsToPutWhole = []
    }
}

// MARK: - Requests

extension OwnerRuntime {
    private mutating func handle(_ command: IncomingCommand, _ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase else {
            let failure = Failure(.unavailable, "\(Machine.owner) is not ready.")
            return effects.append(.reply(command.ticket, command.id, .failure(failure)))
        }
        let refusal = RequestLimits.refusal(
            origin: command.command.origin, payload: command.payload, service: Machine.owner)
        if let refusal { return effects.append(.reply(command.ticket, command.id, .failure(refusal))) }
        deduplicate(.arrived(command), now, &effects)
    }

    mutating func deduplicate(_ event: RequestDeduplicator.Event, _ now: Moment, _ effects: inout [Effect]) {
        for effect in requests.handle(event, now: now.monotonic) {
            switch effect {
            case .start(let command): run(.command(command), now, &effects)
            case .answer(let ticket, let id, let result): effects.append(.reply(ticket, id, result))
            case .lookUp(let id):
                var request = WirePersistenceRequest()
                request.findReply.owner = Machine.owner.text
                request.findReply.requestID = id.data
                ask(request, .lookUp(id), until: now.monotonic.advanced(by: .seconds(5)), &effects)
            }
        }
    }

    /// Answers a request. A success without changes may build on a change that isn’t durable yet, and waits for it.
    private mutating func reply(
        _ id: RequestID, _ result: Result<[UInt8], Failure>, _ now: Moment, _ effects: inout [Effect]
    ) {
        guard case .success(let reply) = result, let last = pendingTransactions.indices.last else {
            return deduplicate(.answered(id, result), now, &effects)
        }
        pendingTransactions[last].repliesAwaitingCommit.append((id, reply))
        deduplicate(.committing(id), now, &effects)
    }

    func ask(
        _ request: WirePersistenceRequest, _ purpose: Purpose, until deadline: MonotonicTime? = nil,
        _ effects: inout [Effect]
    ) {
        let request = OutgoingRequest(
            id: .random(), service: .persistence, payload: request.wireBytes, deadline: deadline)
        effects.append(.ask(request) { .answered(purpose, $0) })
    }
}

// MARK: - Commits

extension OwnerRuntime {
    private mutating func commit(_ transaction: Machine.Transaction, _ now: Moment, _ effects: inout [Effect]) {
        if let answer = transaction.answer { deduplicate(.committing(answer.request), now, &effects) }
        lastTransaction += 1
        let id = TransactionID(lastTransaction)
        pendingTransactions.append(
            PendingTransaction(id: id, step: transaction.step, onRefusal: transaction.onRefusal))
        let numbered = NumberedTransaction(
            id, changes: transaction.changes, publications: transaction.publications, answering: transaction.answer)
        updatePipeline(.enqueue(numbered), now, &effects)
    }

    mutating func updatePipeline(_ event: CommitPipeline.Event, _ now: Moment, _ effects: inout [Effect]) {
        for effect in pipeline.handle(event) {
            switch effect {
            case .send(let batch):
                var request = WirePersistenceRequest()
                request.commit = batch
                ask(request, .batch, &effects)
            case .committed(let transaction): committed(transaction, now, &effects)
            case .refused(let transaction, let failure, let stored):
                refused(transaction, failure, stored: stored, now, &effects)
            case .fenced(let failure): stop(failure, &effects)
            case .collectEverything:
                effects.append(.log(.warning, "the database was replaced: the whole state is written to it"))
                updatePipeline(.everything(machine.everything()), now, &effects)
                // The machine is notified of each database once, however often the writes are retried.
                guard pipeline.incarnation != database else { continue }
                database = pipeline.incarnation
                run(.databaseReplaced, now, &effects)
            }
        }
    }

    private mutating func committed(_ transaction: NumberedTransaction, _ now: Moment, _ effects: inout [Effect]) {
        publish(transaction.publications, &effects)
        if let answer = transaction.answer {
            deduplicate(.answered(answer.request, .success(answer.reply)), now, &effects)
        }
        guard let pending = removePending(transaction.id) else { return }
        for held in pending.repliesAwaitingCommit {
            deduplicate(.answered(held.id, .success(held.reply)), now, &effects)
        }
        run(.committed(pending.step), now, &effects)
    }

    /// Rolls the machine back before the reply, so that clients then see the state without the refused change.
    private mutating func refused(
        _ transaction: NumberedTransaction, _ failure: Failure, stored: [UInt8]?, _ now: Moment,
        _ effects: inout [Effect]
    ) {
        guard let pending = removePending(transaction.id) else { return }
        for held in pending.repliesAwaitingCommit {
            let failure = Failure(.busy, "An earlier change couldn’t be saved; try this one again.")
            deduplicate(.answered(held.id, .failure(failure)), now, &effects)
        }
        run(.refused(pending.step, failure), now, &effects)
        forgottenPodcasts.reportAgain(machine.knownPodcasts, now: now.monotonic)
        guard let answer = transaction.answer else { return }
        let result = stored.map { .success($0) } ?? pending.onRefusal.result(failure)
        deduplicate(.answered(answer.request, result), now, &effects)
    }

    private mutating func removePending(_ id: TransactionID) -> PendingTransaction? {
        pendingTransactions.firstIndex { $0.id == id }.map { pendingTransactions.remove(at: $0) }
    }
}
