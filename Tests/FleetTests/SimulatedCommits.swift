import OwnerKit
import PodcastModel
import WireMessages

/// What a service has handed to the database, in order, and the answers that wait for it: what surrounds its machine
/// keeps them back as `OwnerRuntime` does.
struct SimulatedCommits {
    /// A transaction, and the queues as they are once it is durable.
    struct Waiting {
        var transaction: Transaction
        var models: QueueModels?
    }

    typealias Held = (id: RequestID, reply: [UInt8])

    /// Why a change behind one that was refused is refused too.
    static let follows = Failure(.busy, "A change before this one could not be saved.")

    private var waiting: [Waiting] = []
    private var unsettled: [TransactionID] = []
    private var held: [TransactionID: [Held]] = [:]

    var isEmpty: Bool { waiting.isEmpty }

    mutating func add(_ transaction: Transaction, _ models: QueueModels? = nil) {
        waiting.append(Waiting(transaction: transaction, models: models))
        unsettled.append(transaction.id)
    }

    /// A success may owe itself to a change that is not durable yet: then it waits for that.
    ///
    /// - Returns: whether it waits.
    mutating func hold(_ request: RequestID, _ reply: [UInt8]) -> Bool {
        guard let last = unsettled.last else { return false }
        held[last, default: []].append((request, reply))
        return true
    }

    /// The first is durable; with it the answers that waited for it.
    mutating func takeFirst() -> (Waiting, [Held]) {
        let first = waiting.removeFirst()
        return (first, settle(first.transaction.id))
    }

    /// The fate of a transaction is known: the answers that waited for it.
    mutating func settle(_ id: TransactionID) -> [Held] {
        unsettled.removeAll { $0 == id }
        return held.removeValue(forKey: id) ?? []
    }

    /// The disk is full: the first is refused for that, and all behind it because they build on it.
    mutating func refuseAll() -> [(TransactionID, Failure)] {
        defer { waiting = [] }
        return waiting.enumerated().map { index, waiting in
            (waiting.transaction.id, index == 0 ? Failure(.diskFull, "The disk is full.") : Self.follows)
        }
    }
}

extension Array {
    /// Takes out what is known to be durable.
    mutating func removeCommitted<Input>() -> [OwnerEvent<Input>] where Element == OwnerEvent<Input> {
        let committed = filter(\.isCommitted)
        removeAll(where: \.isCommitted)
        return committed
    }
}

extension MachineEvent {
    var isCommitted: Bool { if case .committed = self { true } else { false } }
}
