package import BusKit
package import OwnerKit
package import PodcastModel
package import SwiftProtobuf
package import WireMessages

/// An owner's machine with the runtime and the database around it, in memory: they obey at once, or as late as a test wants.
/// What else the machine needs (a library, a player, a disk) its `OwnerRig` adds.
package final class OwnerHarness<Machine: OwnerMachine> {
    /// What is still to happen, in order.
    enum Item {
        case event(Machine.Event)
        case call(Machine.Call)
        case answer(Machine.Call)
        case reply(RequestID, Result<[UInt8], Failure>)
    }

    package var machine: Machine
    package var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))

    // What outlives the process.
    /// The stored records by collection and key.
    package var records: [String: [String: [UInt8]]] = [:]
    /// Whether transactions have no outcome until they are settled or refused.
    package var holdsCommits = false
    /// The reason for which commits are refused.
    package var refusal: Failure?

    // What others see.
    package var published: [Publication] = []
    /// The values that the stream shows.
    package private(set) var retained: [Topic: [UInt8]] = [:]
    package private(set) var replies: [RequestID: Result<[UInt8], Failure>] = [:]
    package private(set) var committed: [Machine.Transaction] = []
    package private(set) var logged: [(level: LogLevel, text: String)] = []

    // What waits.
    /// The transactions without an outcome, in order.
    package fileprivate(set) var heldTransactions: [Machine.Transaction] = []
    /// The calls without an answer, in order.
    package fileprivate(set) var heldCalls: [Machine.Call] = []
    package fileprivate(set) var timers: [Machine.Timer: MonotonicTime] = [:]
    fileprivate var inbox: [Item] = []
    fileprivate var requests: UInt64 = 0
    fileprivate let fail: (String) -> Void

    /// - Parameter fail: records what an owner must never do.
    package init(_ machine: Machine, fail: @escaping (String) -> Void) {
        self.machine = machine
        self.fail = fail
    }

    /// What the owner publishes, or puts at the start of an epoch.
    package func publish(_ publications: [Publication]) {
        for publication in publications {
            if !publication.topic.isPublishable(by: Machine.owner, kind: publication.kind) {
                fail("\(Machine.owner) published \(publication.kind) of \(publication.topic)")
            }
            switch publication.kind {
            case .put: retained[publication.topic] = publication.payload
            case .delete: retained[publication.topic] = nil
            default: break
            }
        }
        published += publications
    }

    fileprivate func reply(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        if replies.updateValue(result, forKey: request) != nil { fail("request \(request) was answered twice") }
    }

    fileprivate func store(_ changes: [WireChange]) {
        for change in changes {
            switch change.change {
            case .put(let record)?: records[record.collection, default: [:]][record.key] = Array(record.value)
            case .delete(let key)?: records[key.collection]?[key.key] = nil
            case .deleteCollection(let collection)?: records[collection] = nil
            default: break
            }
        }
    }

    fileprivate func committed(_ transaction: Machine.Transaction) {
        committed.append(transaction)
        store(transaction.changes)
        publish(transaction.publications)
        if let answer = transaction.answer { reply(answer.request, .success(answer.reply)) }
        inbox.append(.event(.committed(transaction.step)))
    }

    fileprivate func refused(_ transaction: Machine.Transaction, _ failure: Failure) {
        inbox.append(.event(.refused(transaction.step, failure)))
        guard let request = transaction.answer?.request else { return }
        let answer: Result<[UInt8], Failure> =
            switch transaction.onRefusal {
            case .failure: .failure(failure)
            case .notSaved(let fact): .failure(Failure(.notSaved, "\(fact), but not saved: \(failure.message)"))
            case .success(let reply): .success(reply)
            }
        inbox.append(.reply(request, answer))
    }

    fileprivate func log(_ level: LogLevel, _ text: String) { logged.append((level, text)) }

    /// Begins a new life of the process; what the old one had in memory is gone.
    fileprivate func restart(_ machine: Machine) -> [Machine.Effect] {
        (timers, inbox, heldTransactions, heldCalls) = ([:], [], [], [])
        self.machine = machine
        let stored = records.keys.sorted().flatMap { collection in
            (records[collection] ?? [:]).sorted { $0.key < $1.key }
                .map { StoredRecord(collection: collection, key: $0.key, value: $0.value) }
        }
        let effects = self.machine.restore(stored, now: now)
        retained = [:]
        publish(self.machine.retained(now: now))
        return effects
    }
}

/// What a test drives: an owner's harness with the world around it, and the verbs of its domain.
package protocol OwnerRig: AnyObject {
    associatedtype Machine: OwnerMachine
    associatedtype Request: SwiftProtobuf.Message
    associatedtype Reply: SwiftProtobuf.Message

    var owner: OwnerHarness<Machine> { get }
    /// Whether the process still runs: nothing more is done once it doesn’t.
    var isRunning: Bool { get }
    /// What the shell has reported since it was asked last.
    func reported() -> [Machine.Input]
    /// Whether a call has no answer yet.
    func holds(_ call: Machine.Call) -> Bool
    func answer(_ call: Machine.Call) -> Result<[UInt8], Failure>
    func perform(_ action: Machine.Action)
    /// Applies the committed changes that are no records.
    func apply(_ changes: [WireChange])
}

extension OwnerRig {
    package var isRunning: Bool { true }
    package func reported() -> [Machine.Input] { [] }
    package func holds(_ call: Machine.Call) -> Bool { false }
    package func apply(_ changes: [WireChange]) {}

    package var now: Moment {
        get { owner.now }
        set { owner.now = newValue }
    }
    package var holdsCommits: Bool {
        get { owner.holdsCommits }
        set { owner.holdsCommits = newValue }
    }
    package var refusal: Failure? {
        get { owner.refusal }
        set { owner.refusal = newValue }
    }
    package var published: [Publication] {
        get { owner.published }
        set { owner.published = newValue }
    }
    package var machine: Machine { owner.machine }
    package var records: [String: [String: [UInt8]]] { owner.records }
    package var retained: [Topic: [UInt8]] { owner.retained }

    // MARK: Events

    /// A new life of the process.
    package func restart(_ machine: Machine) {
        perform(owner.restart(machine))
        run()
    }

    /// Has something happen that others report, and all that follows from it.
    package func handle(_ event: Machine.Event) {
        owner.inbox.append(.event(event))
        run()
    }

    package func report(_ input: Machine.Input) { handle(.input(input)) }

    /// The origin sequence is 0 of what the bus publishes for a service.
    package func observe(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = [], originSequence: UInt64 = 1) {
        let header = BusHeader(kind, generation: 1, epoch: 1, sequence: 1, originSequence: originSequence)
        handle(.observed(StreamEvent(topic: topic, header: header, payload: payload)))
    }

    /// Sends a command and gives the answer; nil while it is not answered.
    @discardableResult
    package func send(id: RequestID? = nil, _ fill: (inout Request) -> Void) -> Result<Reply, Failure>? {
        var request = Request()
        fill(&request)
        return send(id: id, payload: request.wireBytes)
    }

    /// Sends a command’s bytes.
    @discardableResult
    package func send(id: RequestID? = nil, payload: [UInt8]) -> Result<Reply, Failure>? {
        owner.requests += 1
        let id = id ?? RequestID(high: 7, low: owner.requests)
        handle(.command(Command(id: id, origin: "test", payload: payload)))
        return reply(to: id)
    }

    /// The answer to a request; nil while it is not answered.
    package func reply(to request: RequestID) -> Result<Reply, Failure>? {
        owner.replies[request]?.flatMap { bytes in
            Result { try Reply(wireBytes: bytes) }.mapError { Failure(.malformed, "\($0)") }
        }
    }

    // MARK: The database

    /// The oldest transaction without an outcome becomes durable, or is refused.
    package func settle() {
        guard !owner.heldTransactions.isEmpty else { return }
        conclude(owner.heldTransactions.removeFirst())
        run()
    }

    /// All transactions without an outcome, and those that come, get one.
    package func releaseCommits() {
        owner.holdsCommits = false
        settleAll()
        run()
    }

    /// The first transactions without an outcome are refused; all unless a number is given.
    package func refuse(
        _ failure: Failure = Failure(.diskFull, "The disk is full."), first count: Int = .max
    ) {
        let refused = owner.heldTransactions.prefix(count)
        owner.heldTransactions.removeFirst(refused.count)
        for transaction in refused { owner.refused(transaction, failure) }
        run()
    }

    private func settleAll() {
        while !owner.heldTransactions.isEmpty { conclude(owner.heldTransactions.removeFirst()) }
    }

    private func conclude(_ transaction: Machine.Transaction) {
        if let refusal { return owner.refused(transaction, refusal) }
        apply(transaction.changes)
        owner.committed(transaction)
    }

    // MARK: Calls

    /// The first calls that were held are answered now; all unless a number is given.
    package func releaseCalls(first count: Int = .max) {
        owner.inbox += takeCalls(count).map { .answer($0) }
        run()
    }

    /// The first calls that were held get this answer; all unless a number is given.
    package func releaseCalls(as result: Result<[UInt8], Failure>, first count: Int = .max) {
        owner.inbox += takeCalls(count).map { .event(.answered($0.query, result)) }
        run()
    }

    private func takeCalls(_ count: Int) -> ArraySlice<Machine.Call> {
        let calls = owner.heldCalls.prefix(count)
        owner.heldCalls.removeFirst(calls.count)
        return calls
    }

    // MARK: Time

    /// Moves the clocks, and nothing else.
    package func turn(_ duration: Duration) {
        owner.now.monotonic = owner.now.monotonic.advanced(by: duration)
        owner.now.wall = Timestamp(milliseconds: owner.now.wall.milliseconds + Int64(duration / .milliseconds(1)))
    }

    /// Lets time pass, and the timers with it.
    package func advance(by duration: Duration) {
        turn(duration)
        fireDueTimers()
    }

    package func fireDueTimers() {
        while let due = owner.timers.filter({ $0.value <= owner.now.monotonic }).min(by: { $0.value < $1.value }) {
            owner.timers[due.key] = nil
            handle(.timer(due.key))
        }
    }

    /// All timers that are set become due.
    package func fireTimers() {
        let due = owner.timers.sorted { $0.value < $1.value }.map(\.key)
        owner.timers = [:]
        owner.inbox += due.map { .event(.timer($0)) }
        run()
    }

    // MARK: The runtime

    /// Does all that is to be done now.
    package func run() {
        while isRunning {
            owner.inbox += reported().map { .event(.input($0)) }
            guard !owner.inbox.isEmpty else { return }
            switch owner.inbox.removeFirst() {
            case .event(let event): perform(owner.machine.handle(event, now: owner.now))
            case .reply(let request, let result): owner.reply(request, result)
            case .call(let call) where holds(call): owner.heldCalls.append(call)
            case .call(let call), .answer(let call):
                owner.inbox.append(.event(.answered(call.query, answer(call))))
            }
        }
    }

    private func perform(_ effects: [Machine.Effect]) {
        for effect in effects where isRunning {
            switch effect {
            case .commit(let transaction):
                owner.heldTransactions.append(transaction)
                if !owner.holdsCommits { settleAll() }
            case .publish(let publications): owner.publish(publications)
            case .reply(let request, let result): owner.reply(request, result)
            case .call(let call): owner.inbox.append(.call(call))
            case .timer(let timer, let time): owner.timers[timer] = time
            case .perform(let action): perform(action)
            case .log(let level, let text): owner.log(level, text)
            }
        }
    }
}
