import PodcastModel
import SwiftProtobuf
import WireMessages

/// Receives the owners’ batches before they are written: a repeated batch is answered like the first, and a whole
/// state that arrives in several parts is assembled.
///
/// Commits are stored under their IDs, so that repeating an applied one is harmless. A refusal isn’t stored, but a copy
/// of the batch that arrives after the owner has rolled its change back must not take effect.
struct BatchIntake: Sendable {
    typealias Ticket = PersistenceMachine.Ticket

    enum Decision: Sendable {
        case write(WireCommitBatch)
        /// The same batch is being written; this copy gets the same answer.
        case wait
        case reply(Result<[UInt8], Failure>)
    }

    /// The newest batch of an owner, and the parts of its state that have arrived.
    private struct Newest: Sendable {
        var generation: UInt32
        var sequence: UInt64
        var ticket: Ticket
        var repeated: [Ticket] = []
        var answer: Result<[UInt8], Failure>?
        var parts = 0
        var bytes = 0
        var changes: [WireChange] = []

        mutating func dropParts() { (parts, bytes, changes) = (0, 0, []) }
    }

    private var newest: [String: Newest] = [:]

    /// The maximum size of the parts of one owner’s state, in bytes of its requests.
    static let partsLimit = 256 << 20

    mutating func accept(_ batch: WireCommitBatch, _ ticket: Ticket, incarnation: String) -> Decision {
        guard batch.sequence > 0 else { return .write(batch) }
        var owner = Newest(generation: batch.generation, sequence: batch.sequence, ticket: ticket)
        if let known = newest[batch.owner] {
            // The store fences an older generation.
            guard batch.generation >= known.generation else { return .write(batch) }
            if batch.generation == known.generation {
                if batch.sequence < known.sequence {
                    return .reply(
                        .failure(Failure(.expired, "A later batch of \(batch.owner) was received before this one.")))
                }
                if batch.sequence == known.sequence {
                    if let answer = known.answer { return .reply(answer) }
                    newest[batch.owner]?.repeated.append(ticket)
                    return .wait
                }
                (owner.parts, owner.bytes, owner.changes) = (known.parts, known.bytes, known.changes)
            }
        }
        let decision = collect(batch, &owner, incarnation)
        if case .reply(let answer) = decision { owner.answer = answer }
        newest[batch.owner] = owner
        return decision
    }

    /// Records the answer to a batch that was written.
    /// - Returns: the requests with copies of the batch, which wait for the same answer.
    mutating func answered(_ ticket: Ticket, _ answer: Result<[UInt8], Failure>) -> [Ticket] {
        guard let name = newest.first(where: { $0.value.ticket == ticket })?.key else { return [] }
        newest[name]?.answer = answer
        defer { newest[name]?.repeated = [] }
        return newest[name]?.repeated ?? []
    }

    private func collect(_ batch: WireCommitBatch, _ owner: inout Newest, _ incarnation: String) -> Decision {
        guard let first = batch.commits.first, first.more || first.parts > 0 else {
            owner.dropParts()
            return .write(batch)
        }
        if first.parts == 0 { owner.dropParts() }
        let bytes = first.changes.reduce(0) { $0 + $1.wireBytes.count }
        guard Int(first.parts) == owner.parts, owner.bytes + bytes <= Self.partsLimit else {
            owner.dropParts()
            let failure = Failure(.revisionMismatch, "A part of the state of \(batch.owner) is missing.")
            return Self.reply(batch, .refused(failure, revision: 0), incarnation)
        }
        guard first.more else {
            var whole = batch
            whole.commits[0].changes = owner.changes + first.changes
            owner.dropParts()
            return .write(whole)
        }
        owner.parts += 1
        owner.bytes += bytes
        owner.changes += first.changes
        return Self.reply(batch, .with { $0.kind = .staged }, incarnation)
    }

    private static func reply(_ batch: WireCommitBatch, _ outcome: WireCommitOutcome, _ incarnation: String) -> Decision
    {
        let reply = WirePersistenceReply.with {
            $0.outcomes.incarnation = incarnation
            $0.outcomes.outcomes = batch.commits.map { _ in outcome }
        }
        return .reply(.success(reply.wireBytes))
    }
}
