import OwnerKit
import PodcastModel
import WireMessages

/// The pending transactions of a service in order, and the replies that wait for them, as in `OwnerRuntime`.
struct SimulatedCommits<Step: Sendable> {
    /// A pending transaction, and the expected queues once it is durable.
    struct Waiting {
        fileprivate var number: UInt64
        var transaction: OwnerTransaction<Step>
        var models: QueueModels?
    }

    typealias Held = (id: RequestID, reply: [UInt8])

    private var waiting: [Waiting] = []
    private var pending: [UInt64] = []
    private var held: [UInt64: [Held]] = [:]
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { waiting.isEmpty }

    mutating func add(_ transaction: OwnerTransaction<Step>, _ models: QueueModels? = nil) {
        lastNumber += 1
        waiting.append(Waiting(number: lastNumber, transaction: transaction, models: models))
        pending.append(lastNumber)
    }

    /// Holds a reply that may depend on a change that isn’t durable yet.
    ///
    /// - Returns: whether the reply waits.
    mutating func hold(_ request: RequestID, _ reply: [UInt8]) -> Bool {
        guard let last = pending.last else { return false }
        held[last, default: []].append((request, reply))
        return true
    }

    /// Removes the first transaction, now durable, and returns it with the replies that waited for it.
    mutating func takeFirst() -> (Waiting, [Held]) {
        let first = waiting.removeFirst()
        return (first, settle(first.number))
    }

    /// Returns the replies that waited for this transaction, whose outcome is known.
    private mutating func settle(_ number: UInt64) -> [Held] {
        pending.removeAll { $0 == number }
        return held.removeValue(forKey: number) ?? []
    }

    /// Refuses all transactions: the first because the disk is full, later ones because they depend on it.
    mutating func refuseAll() -> [(transaction: OwnerTransaction<Step>, failure: Failure, held: [Held])] {
        defer { waiting = [] }
        return waiting.enumerated().map { index, waiting in
            let failure = index == 0 ? Failure(.diskFull, "The disk is full.") : SimulationChecks.follows
            return (waiting.transaction, failure, settle(waiting.number))
        }
    }
}

extension Array {
    /// Removes and returns the events of durable transactions.
    mutating func removeCommitted<Input, Query, Timer, Step>() -> [MachineEvent<Input, Query, Timer, Step>]
    where Element == MachineEvent<Input, Query, Timer, Step> {
        let committed = filter(\.isCommitted)
        removeAll(where: \.isCommitted)
        return committed
    }
}

extension MachineEvent {
    var isCommitted: Bool { if case .committed = self { true } else { false } }
}

extension SimulationChecks {
    /// The failure of a change that follows a refused one.
    static let follows = Failure(.busy, "A change before this one could not be saved.")
}
