import OwnerKit
import PodcastModel
import WireMessages

/// The transactions of a service in order, and the replies that wait for them as in `OwnerRuntime`.
struct SimulatedCommits<Step: Sendable> {
    /// A transaction, and the queues as they are once it is durable.
    struct Waiting {
        fileprivate var number: UInt64
        var transaction: OwnerTransaction<Step>
        var models: QueueModels?
    }

    typealias Held = (id: RequestID, reply: [UInt8])

    private var waiting: [Waiting] = []
    private var unsettled: [UInt64] = []
    private var held: [UInt64: [Held]] = [:]
    private var lastNumber: UInt64 = 0

    var isEmpty: Bool { waiting.isEmpty }

    mutating func add(_ transaction: OwnerTransaction<Step>, _ models: QueueModels? = nil) {
        lastNumber += 1
        waiting.append(Waiting(number: lastNumber, transaction: transaction, models: models))
        unsettled.append(lastNumber)
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
        return (first, settle(first.number))
    }

    /// The outcome of a transaction is known: the answers that waited for it.
    private mutating func settle(_ number: UInt64) -> [Held] {
        unsettled.removeAll { $0 == number }
        return held.removeValue(forKey: number) ?? []
    }

    /// The disk is full: the first is refused for that, and all behind it because they build on it.
    mutating func refuseAll() -> [(transaction: OwnerTransaction<Step>, failure: Failure, held: [Held])] {
        defer { waiting = [] }
        return waiting.enumerated().map { index, waiting in
            let failure = index == 0 ? Failure(.diskFull, "The disk is full.") : SimulationChecks.follows
            return (waiting.transaction, failure, settle(waiting.number))
        }
    }
}

extension Array {
    /// Takes out what is known to be durable.
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
    /// Why a change behind one that was refused is refused too.
    static let follows = Failure(.busy, "A change before this one could not be saved.")
}
