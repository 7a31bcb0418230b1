package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// An owner’s machine with a simulated runtime and database, which respond at once or when a test releases them.
/// An `OwnerRig` adds the machine’s environment, such as a library, a player and a disk.
package final class OwnerHarness<Machine: OwnerMachine> {
    /// The pending items, in order.
    enum Item {
        case event(Machine.Event)
        case call(Machine.Call)
        case answer(Machine.Call)
        case reply(RequestID, Result<[UInt8], Failure>)
    }

    package var machine: Machine
    package var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))

    // State that survives the process.
    /// The stored records by collection and key.
    package var records: [String: [String: [UInt8]]] = [:]
    /// Whether transactions stay pending until they are settled or refused.
    package var holdsCommits = false
    /// The reason for which commits are refused.
    package var refusal: Failure?

    // Output of the machine.
    package var published: [Publication] = []
    /// The retained values on the stream.
    package private(set) var retained: [Topic: [UInt8]] = [:]
    package private(set) var replies: [RequestID: Result<[UInt8], Failure>] = [:]
    package var committed: [Machine.Transaction] = []
    package private(set) var logged: [(level: LogLevel, text: String)] = []

    // Pending work.
    /// The pending transactions, in order.
    package internal(set) var heldTransactions: [Machine.Transaction] = []
    /// The calls without an answer, in order.
    package internal(set) var heldCalls: [Machine.Call] = []
    package internal(set) var timers: [Machine.Timer: MonotonicTime] = [:]
    var inbox: [Item] = []
    var requests: UInt64 = 0
    /// The number of effects that were performed, over all processes.
    package internal(set) var performed = 0
    /// The number of effects after which the process is killed; nil means never.
    package var killAfter: Int?
    /// Whether the process was killed: nothing happens until the next start.
    package var isKilled = false
    let fail: (String) -> Void

    /// - Parameter fail: records a violation of the owner’s contract.
    package init(_ machine: Machine, fail: @escaping (String) -> Void) {
        self.machine = machine
        self.fail = fail
    }

    /// Enqueues an event, such as a report that results from an action.
    package func enqueue(_ event: Machine.Event) { inbox.append(.event(event)) }

    /// Applies the owner’s publications to `retained`.
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

    func reply(_ request: RequestID, _ result: Result<[UInt8], Failure>) {
        if replies.updateValue(result, forKey: request) != nil { fail("request \(request) was answered twice") }
    }

    func store(_ changes: [WireChange]) {
        for change in changes {
            switch change.change {
            case .put(let record)?: records[record.collection, default: [:]][record.key] = Array(record.value)
            case .delete(let key)?: records[key.collection]?[key.key] = nil
            case .deleteCollection(let collection)?: records[collection] = nil
            default: break
            }
        }
    }

    func committed(_ transaction: Machine.Transaction) {
        committed.append(transaction)
        store(transaction.changes)
        publish(transaction.publications)
        if let answer = transaction.answer { reply(answer.request, .success(answer.reply)) }
        inbox.append(.event(.committed(transaction.step)))
    }

    func refused(_ transaction: Machine.Transaction, _ failure: Failure) {
        inbox.append(.event(.refused(transaction.step, failure)))
        guard let request = transaction.answer?.request else { return }
        inbox.append(.reply(request, transaction.onRefusal.result(failure)))
    }

    func log(_ level: LogLevel, _ text: String) { logged.append((level, text)) }

    /// Starts a new process with the stored records; the previous process’s memory is lost.
    func restart(_ machine: Machine) -> [Machine.Effect] {
        (timers, inbox, heldTransactions, heldCalls, isKilled) = ([:], [], [], [], false)
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
