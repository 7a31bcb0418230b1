package import BusKit
package import PodcastModel
package import WireMessages

/// What a part of an owner's state has to have written and published for a change of its own; the owner makes a
/// transaction of several.
package struct OwnerChange: Sendable {
    /// For the database.
    package var changes: [WireChange]
    /// For the stream, once that is durable.
    package var publications: [Publication]

    /// A change; without anything, none.
    package init(changes: [WireChange] = [], publications: [Publication] = []) {
        self.changes = changes
        self.publications = publications
    }

    /// Whether nothing is different in the database.
    package var isEmpty: Bool { changes.isEmpty }

    /// Adds what is done in the same step, after it.
    package mutating func append(_ other: OwnerChange) {
        changes += other.changes
        publications += other.publications
    }
}

/// A step that is committed whole or not at all.
package struct OwnerTransaction<Step: Sendable>: Sendable {
    /// Its purpose, in `committed` and `refused`.
    package var step: Step
    /// What is written. Empty is allowed: then only the reply is stored.
    package var changes: [WireChange]
    /// What is published once it is durable, in order.
    package var publications: [Publication]
    /// The command that it answers, and the answer, which is stored with the effect.
    package var answer: (request: RequestID, reply: [UInt8])?
    /// What the command is answered with if this is refused.
    package var onRefusal: RefusalAnswer

    package init(
        _ step: Step, changes: [WireChange] = [], publications: [Publication] = [],
        answering answer: (request: RequestID, reply: [UInt8])? = nil, onRefusal: RefusalAnswer = .failure
    ) {
        self.step = step
        self.changes = changes
        self.publications = publications
        self.answer = answer
        self.onRefusal = onRefusal
    }

    /// A transaction that does a change of the owner's state.
    package init(
        _ step: Step, _ change: OwnerChange, answering answer: (request: RequestID, reply: [UInt8])? = nil,
        onRefusal: RefusalAnswer = .failure
    ) {
        self.init(
            step, changes: change.changes, publications: change.publications, answering: answer, onRefusal: onRefusal)
    }
}

/// How a command is answered whose transaction is refused. One that was answered before gets its first answer again.
package enum RefusalAnswer: Sendable, Hashable {
    /// With the reason.
    case failure
    /// With `notSaved` and what has been done all the same: "Paused, but not saved: …".
    case notSaved(String)
    /// As if it had been saved: what the reply reports is durable already.
    case success([UInt8])

    /// The answer to a command whose transaction was refused for this reason.
    package func result(_ failure: Failure) -> Result<[UInt8], Failure> {
        switch self {
        case .failure: .failure(failure)
        case .notSaved(let fact): .failure(Failure(.notSaved, "\(fact), but not saved: \(failure.message)"))
        case .success(let reply): .success(reply)
        }
    }
}

/// Names a transaction within one life of its machine; ascending.
package struct TransactionID: Sendable, Hashable, Comparable {
    package let number: UInt64
    /// The transaction of this number.
    package init(_ number: UInt64) { self.number = number }
    /// Orders by number.
    package static func < (left: TransactionID, right: TransactionID) -> Bool { left.number < right.number }
}

/// A transaction that is named by its number.
package typealias NumberedTransaction = OwnerTransaction<TransactionID>

extension NumberedTransaction {
    /// The number that names it.
    package var id: TransactionID { step }
}

/// A request to another service.
package struct OwnerCall<Query: Sendable>: Sendable {
    /// Its purpose, in `answered`.
    package var query: Query
    /// The service that is asked.
    package var service: ServiceName
    /// Protobuf: that service's request message.
    package var payload: [UInt8]
    /// The request's id, derived (`RequestID.derived`) where the same call may be made again after a crash; nil: any that
    /// no other request has.
    package var request: RequestID?
    /// When to give up; nil: never, it is repeated until it is answered.
    package var limit: Duration?
    /// Whether the id may have been used before, so that the service must look it up first, for which it needs the database.
    package var mayBeRepeat: Bool

    /// - Parameter mayBeRepeat: if it is nil, every request with an id of its own may be one.
    package init(
        _ query: Query, to service: ServiceName, payload: [UInt8], request: RequestID? = nil,
        limit: Duration? = .seconds(10), mayBeRepeat: Bool? = nil
    ) {
        self.query = query
        self.service = service
        self.payload = payload
        self.request = request
        self.limit = limit
        self.mayBeRepeat = mayBeRepeat ?? (request != nil)
    }
}

extension OwnerCall: Equatable where Query: Equatable {}
extension OwnerCall: Hashable where Query: Hashable {}

extension Result<[UInt8], Failure> {
    /// The answer of persistence; one that cannot be read is a failure.
    package var persistenceReply: Result<WirePersistenceReply, Failure> {
        flatMap { payload in
            do {
                return .success(try WirePersistenceReply(wireBytes: payload))
            } catch {
                return .failure(Failure(.malformed, "The database’s answer can’t be read: \(error)"))
            }
        }
    }
}
