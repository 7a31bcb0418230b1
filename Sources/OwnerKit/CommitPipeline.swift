import FoundationEssentials
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Sends an owner’s transactions to the database in order: one batch in flight, and all that arrive meanwhile in the
/// next one. The caller sends each batch, and repeats the same bytes until they are answered.
package struct CommitPipeline: Sendable {
    package struct Limits: Sendable, Hashable {
        /// The maximum number of commits in a batch.
        package var batchCount = 256
        /// The maximum size of a batch in bytes; a larger commit is sent alone.
        package var batchBytes = 512 << 10
        /// The maximum number of waiting transactions.
        package var waitingCount = 1_024
        /// The number of waiting bytes above which further transactions are refused.
        package var waitingBytes = 16 << 20
        /// The maximum size of one message’s changes; a larger commit, or an owner’s whole state, is sent in parts.
        package var partBytes = 4 << 20
        package init() {}
    }

    package enum Event: Sendable {
        case loaded(revision: UInt64, incarnation: String)
        case enqueue(NumberedTransaction)
        case outcomes(WireCommitOutcomes)
        /// The batch in flight was refused as a whole; none of it took effect.
        case failed(Failure)
        /// The whole state, after `collectEverything`.
        case everything([WireChange])
        /// Persistence has restarted: its database must be identified.
        case probe
        case repair
    }

    package enum Effect: Sendable {
        case send(WireCommitBatch)
        case committed(NumberedTransaction)
        /// The transaction will never be durable. `stored` is the stored reply if its request was answered earlier.
        case refused(NumberedTransaction, Failure, stored: [UInt8]?)
        /// A newer process of the same service is registered, so this one must stop.
        case fenced(Failure)
        /// The database was replaced and needs the owner’s whole state at once.
        case collectEverything
    }

    private struct Item {
        var id: RequestID
        var changes: [WireChange]
        var size: Int
        var transaction: NumberedTransaction?
        var replacesEverything = false
        /// Whether another part follows, and the number of earlier parts.
        var more = false
        var parts = 0
        /// The ID of the item’s transaction. The last part keeps the whole transaction, to create the parts again.
        var partOf: TransactionID?
        /// The number of times that all its parts were sent.
        var attempts = 1
        /// Whether the item is sent in a message of its own.
        var isPart: Bool { more || parts > 0 }
    }

    /// The resends of a commit in parts, from the first part on: the database drops parts when it restarts.
    private static let resendBackoff = Backoff.constant(.zero, retries: 4)
    private static let answeredBefore = Failure(.busy, "The command was answered before.")

    private let owner: ServiceName
    private let generation: UInt32
    private let limits: Limits
    private let seed: UInt64
    private var counter: UInt64 = 0
    private(set) var incarnation: String?
    private var needsReplacement = false
    private var revision: UInt64 = 0
    private var sequence: UInt64 = 0
    private var queue: [Item] = []
    private var queuedBytes = 0
    private var batchInFlight: [Item]?

    /// - Parameter seed: makes the IDs of its commits differ from those of other processes of the owner.
    package init(owner: ServiceName, generation: UInt32, seed: UInt64, limits: Limits = Limits()) {
        self.owner = owner
        self.generation = generation
        self.seed = seed
        self.limits = limits
    }

    package var isIdle: Bool { batchInFlight == nil && queue.isEmpty }

    /// Whether the database was replaced and has refused the owner’s whole state, which it still lacks.
    package var needsRepair: Bool { needsReplacement && isIdle }

    package mutating func handle(_ event: Event) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .loaded(let revision, let incarnation):
            self.revision = revision
            self.incarnation = incarnation
        case .enqueue(let transaction): enqueue(transaction, &effects)
        case .outcomes(let outcomes): handle(outcomes, &effects)
        case .failed(let failure): failed(failure, &effects)
        case .everything(let changes): replace(changes)
        case .probe:
            guard incarnation != nil, isIdle else { break }
            send([], &effects)
        case .repair:
            if needsRepair { collectIfNeeded(&effects) }
        }
        // The owner handles a refusal before anything new is sent, and the whole state is sent first.
        let collects = effects.contains { if case .collectEverything = $0 { true } else { false } }
        if !collects { sendNext(&effects) }
        return effects
    }
}

// MARK: - Sending

extension CommitPipeline {
    private mutating func enqueue(_ transaction: NumberedTransaction, _ effects: inout [Effect]) {
        guard queue.count < limits.waitingCount, queuedBytes <= limits.waitingBytes else {
            let failure = Failure(.notSaved, "The database isn’t responding, and too many changes are waiting for it.")
            effects.append(.refused(transaction, failure, stored: nil))
            return
        }
        let items = items(of: transaction, id: nextID())
        queue += items
        queuedBytes += items.reduce(0) { $0 + $1.size }
        if needsReplacement, batchInFlight == nil { effects.append(.collectEverything) }
    }

    /// Creates one item for a transaction, or parts if it is too large for one message. The last part has its ID.
    private mutating func items(of transaction: NumberedTransaction, id: RequestID, attempts: Int = 1) -> [Item] {
        let size = Self.size(transaction)
        guard size > limits.partBytes, transaction.changes.count > 1 else {
            return [Item(id: id, changes: transaction.changes, size: size, transaction: transaction)]
        }
        var items = parts(of: transaction.changes)
        for index in items.indices {
            items[index].partOf = transaction.id
            items[index].attempts = attempts
        }
        let answer = transaction.answer?.reply.count ?? 0
        items[items.count - 1].id = id
        items[items.count - 1].size += answer
        items[items.count - 1].transaction = transaction
        return items
    }

    private mutating func parts(of changes: [WireChange]) -> [Item] {
        var parts: [Item] = []
        var part = Item(id: nextID(), changes: [], size: 64)
        for change in changes {
            let size = Self.size([change])
            if part.size + size > limits.partBytes, !part.changes.isEmpty {
                part.more = true
                parts.append(part)
                part = Item(id: nextID(), changes: [], size: 64, parts: parts.count)
            }
            part.changes.append(change)
            part.size += size
        }
        return parts + [part]
    }

    private mutating func replace(_ changes: [WireChange]) {
        var parts = parts(of: changes)
        // The database stages the parts and applies them all with the last one.
        parts[parts.count - 1].replacesEverything = true
        queue.insert(contentsOf: parts, at: 0)
        queuedBytes += parts.reduce(0) { $0 + $1.size }
        needsReplacement = false
    }

    private mutating func sendNext(_ effects: inout [Effect]) {
        guard batchInFlight == nil, incarnation != nil, !queue.isEmpty else { return }
        var count = 0
        var bytes = 0
        for item in queue {
            let fits = count < limits.batchCount && bytes + item.size <= limits.batchBytes && !item.isPart
            guard count == 0 || fits else { break }
            count += 1
            bytes += item.size
            if item.isPart { break }
        }
        let batch = Array(queue[..<count])
        queue.removeFirst(count)
        queuedBytes = max(0, queuedBytes - bytes)
        send(batch, &effects)
    }

    private mutating func send(_ items: [Item], _ effects: inout [Effect]) {
        var batch = WireCommitBatch()
        batch.owner = owner.text
        batch.generation = generation
        sequence += 1
        batch.sequence = sequence
        batch.commits = items.enumerated().map { index, item in
            var commit = WireCommit()
            commit.id = item.id.data
            commit.expectedRevision = revision + UInt64(index)
            commit.changes = item.changes
            commit.replacesEverything = item.replacesEverything
            commit.more = item.more
            commit.parts = UInt32(item.parts)
            if let answer = item.transaction?.answer {
                commit.requestID = answer.request.data
                commit.reply = Data(answer.reply)
            }
            return commit
        }
        batchInFlight = items
        effects.append(.send(batch))
    }

    private mutating func nextID() -> RequestID {
        counter += 1
        return RequestID(high: seed, low: counter)
    }

    private static func size(_ transaction: NumberedTransaction) -> Int {
        size(transaction.changes) + (transaction.answer?.reply.count ?? 0) + 64
    }

    /// The estimated size of changes in a message. Frequent kinds of change are estimated without encoding them.
    private static func size(_ changes: [WireChange]) -> Int {
        changes.reduce(0) { sum, change in
            switch change.change {
            case .put(let record):
                sum + record.value.count + record.collection.utf8.count + record.key.utf8.count
                    + record.episode.utf8.count + 56
            case .putEpisodeState(let state):
                sum + state.episode.utf8.count + state.reason.utf8.count + state.audioTag.utf8.count + 80
                    + 16 + state.unknownFields.data.count
            default: sum + change.wireBytes.count + 16
            }
        }
    }
}

// MARK: - Answers

extension CommitPipeline {
    private mutating func handle(_ outcomes: WireCommitOutcomes, _ effects: inout [Effect]) {
        guard let items = batchInFlight else { return }
        batchInFlight = nil
        let isAnother = outcomes.incarnation != incarnation
        incarnation = outcomes.incarnation
        if isAnother { needsReplacement = true }
        for (index, item) in items.enumerated() {
            guard outcomes.outcomes.indices.contains(index) else {
                let failure = Failure(.internalError, "The database’s answer doesn’t name this change.")
                return refuse(items[index...], failure, stored: nil, &effects)
            }
            let outcome = outcomes.outcomes[index]
            switch outcome.kind {
            case .committed, .repeated:
                revision = outcome.revision
                if let transaction = item.transaction { effects.append(.committed(transaction)) }
            case .staged: break
            default:
                return refused(items[index...], outcome, isAnother: isAnother, &effects)
            }
        }
        collectIfNeeded(&effects)
    }

    private mutating func refused(
        _ items: ArraySlice<Item>, _ outcome: WireCommitOutcome, isAnother: Bool, _ effects: inout [Effect]
    ) {
        let failure = outcome.failure.failure
        if failure.known == .revisionMismatch, let part = items.first, resendParts(part) {
            if isAnother { collectIfNeeded(&effects) }
            return
        }
        // A database that lacks a part doesn’t report the owner’s revision.
        if outcome.revision > 0 || items.first?.isPart != true { revision = outcome.revision }
        if outcome.kind == .duplicateRequest {
            return refuse(items, Self.answeredBefore, stored: [UInt8](outcome.reply), &effects)
        }
        if failure.known == .fenced {
            effects.append(.fenced(failure))
            return
        }
        if isAnother {
            // The database refused the batch because it lacks earlier changes, which are written first.
            let waiting = items.filter { $0.transaction != nil }
            queue.insert(contentsOf: waiting, at: 0)
            queuedBytes += waiting.reduce(0) { $0 + $1.size }
            return collectIfNeeded(&effects)
        }
        refuse(items, failure, stored: nil, &effects)
    }

    private mutating func failed(_ failure: Failure, _ effects: inout [Effect]) {
        guard let items = batchInFlight else { return }
        batchInFlight = nil
        if failure.known == .fenced {
            effects.append(.fenced(failure))
            return
        }
        refuse(items[...], failure, stored: nil, &effects)
    }

    /// Sends all parts of a transaction again, because the database lacks earlier parts. The ID stays the same, so
    /// that the transaction takes effect once.
    /// - Returns: false if the item isn’t a part of a transaction, or no resend is left.
    private mutating func resendParts(_ part: Item) -> Bool {
        guard let id = part.partOf, Self.resendBackoff.allowsRetry(after: part.attempts) else { return false }
        let waiting = queue.filter { $0.partOf == id }
        let last = waiting.last ?? part
        guard let transaction = last.transaction else { return false }
        queue.removeAll { $0.partOf == id }
        queuedBytes -= waiting.reduce(0) { $0 + $1.size }
        let items = items(of: transaction, id: last.id, attempts: part.attempts + 1)
        queue.insert(contentsOf: items, at: 0)
        queuedBytes += items.reduce(0) { $0 + $1.size }
        return true
    }

    /// Refuses the first of `items` with its failure, and all later items because they build on it.
    private mutating func refuse(
        _ items: ArraySlice<Item>, _ failure: Failure, stored: [UInt8]?, _ effects: inout [Effect]
    ) {
        if items.contains(where: { $0.transaction == nil && $0.partOf == nil }) { needsReplacement = true }
        let follows = Failure(.busy, "A change before this one could not be saved, so this one was rolled back too.")
        var first = true
        for item in items + queue {
            if let transaction = item.transaction {
                effects.append(.refused(transaction, first ? failure : follows, stored: first ? stored : nil))
            }
            first = first && item.transaction == nil
        }
        queue = []
        queuedBytes = 0
    }

    private func collectIfNeeded(_ effects: inout [Effect]) {
        if needsReplacement { effects.append(.collectEverything) }
    }
}
