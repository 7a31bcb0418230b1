package import BusKit
package import OwnerKit
package import PodcastModel
package import SwiftProtobuf
package import WireMessages

/// What a test drives: an owner's harness with the world around it, and the verbs of its domain.
package protocol OwnerRig: AnyObject {
    associatedtype Machine: OwnerMachine
    associatedtype Request: SwiftProtobuf.Message
    associatedtype Reply: SwiftProtobuf.Message

    var owner: OwnerHarness<Machine> { get }
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
    /// The answers to the requests that are answered.
    package var replies: [RequestID: Result<Reply, Failure>] { owner.replies.mapValues(Self.read) }
    /// The alerts on the stream.
    package var alerts: [WireAlert] {
        retained.filter { $0.key.text.hasPrefix("stream/\(Machine.owner.text)/alert/") }
            .compactMap { try? WireAlert(wireBytes: $0.value) }
    }

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
        owner.replies[request].map(Self.read)
    }

    private static func read(_ reply: Result<[UInt8], Failure>) -> Result<Reply, Failure> {
        reply.flatMap { bytes in
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

    /// The transactions without an outcome get one, of which the owner hears when it runs.
    package func settleAll() {
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
        let milliseconds = Int64((duration / .milliseconds(1)).rounded())
        owner.now.wall = Timestamp(milliseconds: owner.now.wall.milliseconds + milliseconds)
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
        while !owner.isKilled {
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
        for effect in effects {
            guard owner.performed < owner.killAfter ?? .max else {
                owner.isKilled = true
                return
            }
            owner.performed += 1
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

extension Result where Success: SwiftProtobuf.Message, Failure == PodcastModel.Failure {
    package var failure: PodcastModel.Failure? { if case .failure(let failure) = self { failure } else { nil } }
    package var reply: Success? { try? get() }
}
