import BusKit
import Logging
import PodcastModel
import ProcessKit
import WireMessages

/// What an `OwnerService` decides: requests, commits, the epoch's beginning, timers, around an owner's own machine.
///
/// It holds no socket, clock or task either: so a whole owner can be tested against a scripted database.
struct OwnerRuntime<Machine: OwnerMachine>: ServiceHandler {
    /// What an answer answers.
    enum Purpose: Sendable {
        case load
        case records
        case batch
        case lookUp(RequestID)
        case podcast(PodcastID)
        case call(Machine.Query)
    }

    /// What reaches it from outside the bus.
    enum Input: Sendable {
        case machine(Machine.Input)
        case answered(Purpose, Result<[UInt8], Failure>)
    }

    typealias Event = ServiceEvent<Input>
    typealias Effect = ServiceEffect<Input>

    /// A transaction without an outcome.
    struct PendingTransaction {
        var id: TransactionID
        var step: Machine.Step
        var onRefusal: RefusalAnswer
        /// Successes that are told when it is durable, because they may build on it.
        var heldReplies: [(id: RequestID, reply: [UInt8])] = []
    }

    enum Phase {
        case loading
        case serving
        case stopping(until: MonotonicTime)
        case stopped
    }

    /// How long the last commits may take after SIGTERM.
    static var stopLimit: Duration { .milliseconds(2_500) }
    /// Between two tries to write everything.
    static var repairRetry: Backoff { .constant(.seconds(5)) }

    var machine: Machine
    var ledger = RequestLedger()
    var pipeline: CommitPipeline
    let generation: UInt32
    private let performer: @Sendable (Machine.Action) -> Void
    var phase = Phase.loading
    var replica = Replica()
    var timers: [Machine.Timer: MonotonicTime] = [:]
    var forgottenPodcasts = ForgottenPodcasts()
    var loaded: (revision: UInt64, incarnation: String) = (0, "")
    var records: [StoredRecord] = []
    /// The transactions without an outcome, in order.
    var pendingTransactions: [PendingTransaction] = []
    private var lastTransaction: UInt64 = 0
    /// The request whose transaction has just been refused, while the machine decides what to answer.
    private var refusing: RequestID?
    /// When to try again to write everything to a database that lacks it.
    var repairAt: MonotonicTime?
    /// The epoch in which the bus has accepted it.
    var epoch: UInt64?
    var isAnnounced = false
    /// Topics of which the bus has refused a delta.
    var toPutWhole: Set<Topic> = []
    var refusedPuts = RefusedPuts()
    /// What is left of a step whose publications have gone out: done before anything else happens.
    private var deferred: [Machine.Effect] = []
    private var mayDefer = false
    /// The life of persistence that was ready last, and whether it is another one than before.
    var persistenceGeneration: UInt32?
    var persistenceHasRestarted = false
    /// The incarnation of the database that the machine knows of.
    var database: String?

    /// - Parameter perform: does what only the shell can do, and must not block.
    init(
        _ machine: Machine, generation: UInt32, seed: UInt64, perform: @escaping @Sendable (Machine.Action) -> Void
    ) {
        self.machine = machine
        performer = perform
        self.generation = generation
        pipeline = CommitPipeline(owner: Machine.owner, generation: generation, seed: seed)
    }

    /// When `alarm` is due; nil: never.
    var deadline: MonotonicTime? {
        var next = [
            ledger.deadline, timers.values.min(), repairAt, refusedPuts.retryAt, forgottenPodcasts.retryAt,
        ].compactMap { $0 }.min()
        if case .stopping(let until) = phase { next = next.map { min($0, until) } ?? until }
        return next
    }

    /// Decides. What a command or an input publishes comes first and alone: `finish` gives the rest, so that observers need
    /// not wait for a commit to be built.
    mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        var effects = finish(now: now)
        if case .stopped = phase { return effects }
        switch event {
        case .bus(.command), .input(.machine): mayDefer = true
        default: mayDefer = false
        }
        switch event {
        case .started: load(&effects)
        case .bus(.began(let epoch)):
            self.epoch = epoch
            isAnnounced = false
            refusedPuts = RefusedPuts()
            note(ledger.handle(.connectionLost, now: now.monotonic), now, &effects)
        case .bus(.command(let command)): arrived(command, now, &effects)
        case .bus(.update(let update)): observed(update, now, &effects)
        case .bus(.status(let service, let ready)): stands(service, ready: ready)
        case .input(.answered(let purpose, let result)): answered(purpose, result, now, &effects)
        case .bus(.rejected(let publication, let code)): rejected(publication, code, now, &effects)
        case .bus(.alarm): alarm(now, &effects)
        case .input(.machine(let input)): run(.input(input), now, &effects)
        case .stopping:
            guard case .serving = phase else {
                phase = .stopped
                return effects + [.stop(nil)]
            }
            phase = .stopping(until: now.monotonic.advanced(by: Self.stopLimit))
            run(.stopping, now, &effects)
        case .bus(.fenced(let failure)): fenced(failure, &effects)
        case .bus(.pulse): break
        }
        if deferred.isEmpty { settle(now, &effects) }
        return effects
    }

    /// Does what is left of the last event; empty if nothing is.
    mutating func finish(now: Moment) -> [Effect] {
        guard !deferred.isEmpty else { return [] }
        var effects: [Effect] = []
        mayDefer = false
        let rest = deferred
        deferred = []
        for effect in rest { perform(effect, now, &effects) }
        settle(now, &effects)
        return effects
    }

    /// What may be due after any event.
    private mutating func settle(_ now: Moment, _ effects: inout [Effect]) {
        if pipeline.needsRepair, repairAt == nil { repairAt = now.monotonic.advanced(by: Self.repairRetry.wait()) }
        probeIfRestarted(now, &effects)
        verifyNextPodcast(now, &effects)
        announceIfDue(now, &effects)
        putWholeIfDue(now, &effects)
        stopIfDone(now, &effects)
    }

    /// What it retains may hold changes whose fate is not known; nobody sees them before they are durable.
    private mutating func announceIfDue(_ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase, epoch != nil, !isAnnounced, pipeline.isIdle else { return }
        isAnnounced = true
        toPutWhole = []
        effects.append(.publish(machine.retained(now: now)))
        effects.append(.ready)
    }

    private mutating func stopIfDone(_ now: Moment, _ effects: inout [Effect]) {
        let isDone = pipeline.isIdle && machine.hasStopped
        guard case .stopping(let until) = phase, isDone || now.monotonic >= until else { return }
        if !pipeline.isIdle { effects.append(.log(.warning, "stopping with changes that are not saved")) }
        phase = .stopped
        effects.append(.stop(nil))
    }

    mutating func fenced(_ failure: Failure, _ effects: inout [Effect]) {
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
        guard mayDefer, isAnnounced, deferred.isEmpty, !publications.isEmpty else {
            // Behind what is deferred, in order.
            if !deferred.isEmpty { return deferred += wanted }
            for effect in wanted { perform(effect, now, &effects) }
            return
        }
        publish(publications, &effects)
        deferred = wanted.filter { if case .publish = $0 { false } else { true } }
    }

    private mutating func perform(_ effect: Machine.Effect, _ now: Moment, _ effects: inout [Effect]) {
        switch effect {
        case .commit(let transaction): commit(transaction, now, &effects)
        case .publish(let publications): publish(publications, &effects)
        case .reply(let id, let result): reply(id, result, now, &effects)
        case .call(let call):
            let asking = RequestTracker.Asking(
                id: call.request ?? .random(), service: call.service, payload: call.payload,
                deadline: call.limit.map { now.monotonic.advanced(by: $0) }, mayBeRepeat: call.mayBeRepeat)
            effects.append(.ask(asking) { .answered(.call(call.query), $0) })
        case .timer(let name, let time): timers[name] = time
        case .perform(let action): effects.append(.run { [performer] in performer(action) })
        case .log(let level, let text): effects.append(.log(level.level, text))
        }
    }

    private mutating func commit(_ transaction: Machine.Transaction, _ now: Moment, _ effects: inout [Effect]) {
        if let answer = transaction.answer {
            note(ledger.handle(.committing(answer.request), now: now.monotonic), now, &effects)
        }
        lastTransaction += 1
        let id = TransactionID(lastTransaction)
        pendingTransactions.append(
            PendingTransaction(id: id, step: transaction.step, onRefusal: transaction.onRefusal))
        let numbered = Transaction(
            id, changes: transaction.changes, publications: transaction.publications, answering: transaction.answer)
        note(pipeline.handle(.enqueue(numbered)), now, &effects)
    }

    /// A success that changes nothing may owe that to a change that is not durable yet: it is told when that is. What is
    /// told in spite of a refusal was decided before the changes that came later.
    private mutating func reply(
        _ id: RequestID, _ result: Result<[UInt8], Failure>, _ now: Moment, _ effects: inout [Effect]
    ) {
        if case .success(let reply) = result, id != refusing, let last = pendingTransactions.indices.last {
            pendingTransactions[last].heldReplies.append((id, reply))
            note(ledger.handle(.committing(id), now: now.monotonic), now, &effects)
        } else {
            note(ledger.handle(.answered(id, result), now: now.monotonic), now, &effects)
        }
    }

    /// The outcome of a transaction is known, and with it that of the replies that waited for it.
    private mutating func settle(
        _ id: TransactionID, isDurable: Bool, _ now: Moment, _ effects: inout [Effect]
    ) -> PendingTransaction? {
        guard let index = pendingTransactions.firstIndex(where: { $0.id == id }) else { return nil }
        let pending = pendingTransactions.remove(at: index)
        for held in pending.heldReplies {
            let result: Result<[UInt8], Failure> =
                isDurable
                ? .success(held.reply)
                : .failure(Failure(.busy, "An earlier change couldn’t be saved; try this one again."))
            note(ledger.handle(.answered(held.id, result), now: now.monotonic), now, &effects)
        }
        return pending
    }

    private mutating func committed(_ transaction: Transaction, _ now: Moment, _ effects: inout [Effect]) {
        publish(transaction.publications, &effects)
        if let answer = transaction.answer {
            note(ledger.handle(.answered(answer.request, .success(answer.reply)), now: now.monotonic), now, &effects)
        }
        guard let pending = settle(transaction.id, isDurable: true, now, &effects) else { return }
        run(.committed(pending.step), now, &effects)
    }

    /// The machine rolls back first, so that whoever is answered sees the state without what was refused.
    private mutating func refused(
        _ transaction: Transaction, _ failure: Failure, stored: [UInt8]?, _ now: Moment, _ effects: inout [Effect]
    ) {
        if let stored, let answer = transaction.answer {
            note(ledger.handle(.answered(answer.request, .success(stored)), now: now.monotonic), now, &effects)
        }
        guard let pending = settle(transaction.id, isDurable: false, now, &effects) else { return }
        refusing = transaction.answer?.request
        run(.refused(pending.step, failure), now, &effects)
        refusing = nil
        forgottenPodcasts.reportAgain(machine.knownPodcasts, now: now.monotonic)
        guard let answer = transaction.answer else { return }
        let result = pending.onRefusal.result(failure)
        note(ledger.handle(.answered(answer.request, result), now: now.monotonic), now, &effects)
    }

    /// What is published before the owner is ready in this epoch is part of what it puts then.
    func publish(_ publications: [Publication], _ effects: inout [Effect]) {
        guard isAnnounced, !publications.isEmpty else { return }
        effects.append(.publish(publications))
    }

    private mutating func alarm(_ now: Moment, _ effects: inout [Effect]) {
        note(ledger.handle(.tick, now: now.monotonic), now, &effects)
        if let repairAt, now.monotonic >= repairAt {
            self.repairAt = nil
            note(pipeline.handle(.repair), now, &effects)
        }
        retryRefusedPuts(now, &effects)
        let due = timers.filter { $0.value <= now.monotonic }.sorted { $0.value < $1.value }
        // A timer that an earlier one of these moves or takes back is not due any more.
        for (name, time) in due where timers[name] == time {
            timers[name] = nil
            run(.timer(name), now, &effects)
        }
    }

    /// What was refused as a delta is put whole, once all that it shows is durable.
    private mutating func putWholeIfDue(_ now: Moment, _ effects: inout [Effect]) {
        guard !toPutWhole.isEmpty, isAnnounced, pipeline.isIdle else { return }
        publish(machine.retained(now: now).filter { toPutWhole.contains($0.topic) }, &effects)
        toPutWhole = []
    }

    // MARK: - Requests and commits

    private mutating func arrived(_ command: IncomingCommand, _ now: Moment, _ effects: inout [Effect]) {
        guard case .serving = phase else {
            let failure = Failure(.unavailable, "\(Machine.owner) is not ready.")
            effects.append(.reply(command.ticket, command.id, .failure(failure)))
            return
        }
        let refusal = RequestLimits.refusal(
            origin: command.command.origin, payload: command.payload, service: Machine.owner)
        if let refusal {
            effects.append(.reply(command.ticket, command.id, .failure(refusal)))
            return
        }
        note(ledger.handle(.arrived(command), now: now.monotonic), now, &effects)
    }

    mutating func note(_ wanted: [RequestLedger.Effect], _ now: Moment, _ effects: inout [Effect]) {
        for effect in wanted {
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

    mutating func note(_ wanted: [CommitPipeline.Effect], _ now: Moment, _ effects: inout [Effect]) {
        for effect in wanted {
            switch effect {
            case .send(let batch):
                var request = WirePersistenceRequest()
                request.commit = batch
                ask(request, .batch, &effects)
            case .committed(let transaction): committed(transaction, now, &effects)
            case .refused(let transaction, let failure, let stored):
                refused(transaction, failure, stored: stored, now, &effects)
            case .fenced(let failure): fenced(failure, &effects)
            case .collectEverything:
                effects.append(.log(.warning, "the database is another one: everything is written to it again"))
                note(pipeline.handle(.everything(machine.everything())), now, &effects)
                // Said once for each, however often the writing has to be tried.
                guard pipeline.incarnation != database else { continue }
                database = pipeline.incarnation
                run(.databaseReplaced, now, &effects)
            }
        }
    }

    func ask(
        _ request: WirePersistenceRequest, _ purpose: Purpose, until deadline: MonotonicTime? = nil,
        _ effects: inout [Effect]
    ) {
        let asking = RequestTracker.Asking(
            id: .random(), service: .persistence, payload: request.wireBytes, deadline: deadline)
        effects.append(.ask(asking) { .answered(purpose, $0) })
    }
}
