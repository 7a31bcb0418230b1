package import BusKit
package import OwnerKit
package import PodcastModel
package import SwiftProtobuf
package import WireMessages

/// An owner’s harness with a simulated environment and typed commands, for the tests of one service.
package protocol OwnerRig: AnyObject {
    associatedtype Machine: OwnerMachine
    associatedtype Request: SwiftProtobuf.Message
    associatedtype Reply: SwiftProtobuf.Message

    var owner: OwnerHarness<Machine> { get }
    /// Returns the shell’s reports since the last call.
    func reported() -> [Machine.Input]
    /// Whether the answer to a call is withheld until the test releases it.
    func holds(_ call: Machine.Call) -> Bool
    func answer(_ call: Machine.Call) -> Result<[UInt8], Failure>
    func perform(_ action: Machine.Action)
    /// Applies the committed changes other than records.
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
    package var records: [String: [String: [UInt8]]] {
        get { owner.records }
        set { owner.records = newValue }
    }
    package var retained: [Topic: [UInt8]] { owner.retained }
    /// The replies to requests so far.
    package var replies: [RequestID: Result<Reply, Failure>] { owner.replies.mapValues(Self.read) }
    /// The alerts on the stream.
    package var alerts: [WireAlert] {
        retained.filter { $0.key.text.hasPrefix("stream/\(Machine.owner.text)/alert/") }
            .compactMap { try? WireAlert(wireBytes: $0.value) }
    }

    // MARK: Events

    /// Starts a new process.
    package func restart(_ machine: Machine) {
        perform(owner.restart(machine))
        run()
    }

    /// Handles an event and all events that it causes.
    package func handle(_ event: Machine.Event) {
        owner.inbox.append(.event(event))
        run()
    }

    package func report(_ input: Machine.Input) { handle(.input(input)) }

    /// Events that the bus publishes on behalf of a service have the origin sequence 0.
    package func observe(_ kind: MessageKind, _ topic: Topic, _ payload: [UInt8] = [], originSequence: UInt64 = 1) {
        let header = BusHeader(kind, generation: 1, epoch: 1, sequence: 1, originSequence: originSequence)
        handle(.observed(StreamEvent(topic: topic, header: header, payload: payload)))
    }

    /// Sends a command and returns the reply; nil while there is none.
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

    /// The reply to a request; nil while there is none.
    package func reply(to request: RequestID) -> Result<Reply, Failure>? {
        owner.replies[request].map(Self.read)
    }

    private static func read(_ reply: Result<[UInt8], Failure>) -> Result<Reply, Failure> {
        reply.flatMap { bytes in
            Result { try Reply(wireBytes: bytes) }.mapError { Failure(.malformed, "\($0)") }
        }
    }

    // MARK: The database

    /// Commits or refuses the oldest pending transaction.
    package func settle() {
        guard !owner.heldTransactions.isEmpty else { return }
        conclude(owner.heldTransactions.removeFirst())
        run()
    }

    /// Settles all pending transactions, and from now on later ones at once.
    package func releaseCommits() {
        owner.holdsCommits = false
        settleAll()
        run()
    }

    /// Refuses the first pending transactions; all by default.
    package func refuse(
        _ failure: Failure = Failure(.diskFull, "The disk is full."), first count: Int = .max
    ) {
        let refused = owner.heldTransactions.prefix(count)
        owner.heldTransactions.removeFirst(refused.count)
        for transaction in refused { owner.refused(transaction, failure) }
        run()
    }

    /// Settles all pending transactions; the owner gets the outcomes when it runs.
    package func settleAll() {
        while !owner.heldTransactions.isEmpty { conclude(owner.heldTransactions.removeFirst()) }
    }

    private func conclude(_ transaction: Machine.Transaction) {
        if let refusal { return owner.refused(transaction, refusal) }
        apply(transaction.changes)
        owner.committed(transaction)
    }

    // MARK: Calls

    /// Answers the first held calls; all by default.
    package func releaseCalls(first count: Int = .max) {
        owner.inbox += takeCalls(count).map { .answer($0) }
        run()
    }

    /// Answers the first held calls with `result`; all by default.
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

    /// Advances the clocks without firing timers.
    package func advanceClocks(by duration: Duration) {
        owner.now.monotonic = owner.now.monotonic.advanced(by: duration)
        let milliseconds = Int64((duration / .milliseconds(1)).rounded())
        owner.now.wall = Timestamp(milliseconds: owner.now.wall.milliseconds + milliseconds)
    }

    /// Advances the clocks and fires the due timers.
    package func advance(by duration: Duration) {
        advanceClocks(by: duration)
        fireDueTimers()
    }

    package func fireDueTimers() {
        while let due = owner.timers.filter({ $0.value <= owner.now.monotonic }).min(by: { $0.value < $1.value }) {
            owner.timers[due.key] = nil
            handle(.timer(due.key))
        }
    }

    /// Fires all timers.
    package func fireTimers() {
        let due = owner.timers.sorted { $0.value < $1.value }.map(\.key)
        owner.timers = [:]
        owner.inbox += due.map { .event(.timer($0)) }
        run()
    }

    // MARK: The runtime

    /// Processes all pending items.
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
