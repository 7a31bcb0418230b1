package import BusKit
package import PodcastModel
package import WireMessages

/// The writes and publications for a change of a part of an owner’s state; a transaction combines several.
package struct OwnerChange: Sendable {
    package var changes: [WireChange]
    /// The publications to send once the writes are durable.
    package var publications: [Publication]

    package init(changes: [WireChange] = [], publications: [Publication] = []) {
        self.changes = changes
        self.publications = publications
    }

    package var isEmpty: Bool { changes.isEmpty }

    /// Appends a later change of the same step.
    package mutating func append(_ other: OwnerChange) {
        changes += other.changes
        publications += other.publications
    }
}

/// A step that is committed whole or not at all.
package struct OwnerTransaction<Step: Sendable>: Sendable {
    /// Its purpose, passed to `committed` and `refused`.
    package var step: Step
    /// The writes; without writes only the reply is stored.
    package var changes: [WireChange]
    /// The publications, which are sent in order once the changes are durable.
    package var publications: [Publication]
    /// The command that it answers, and the reply, which is stored with the changes.
    package var answer: (request: RequestID, reply: [UInt8])?
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

    package init(
        _ step: Step, _ change: OwnerChange, answering answer: (request: RequestID, reply: [UInt8])? = nil,
        onRefusal: RefusalAnswer = .failure
    ) {
        self.init(
            step, changes: change.changes, publications: change.publications, answering: answer, onRefusal: onRefusal)
    }
}

/// The reply to a command whose transaction is refused. A command that was answered before gets its first reply again.
package enum RefusalAnswer: Sendable, Hashable {
    /// A failure with the reason.
    case failure
    /// `notSaved` with the effect that remains: “Paused, but not saved: …”.
    case notSaved(String)
    /// A success: the reply reports only what is durable already.
    case success([UInt8])

    package func result(_ failure: Failure) -> Result<[UInt8], Failure> {
        switch self {
        case .failure: .failure(failure)
        case .notSaved(let fact): .failure(Failure(.notSaved, "\(fact), but not saved: \(failure.message)"))
        case .success(let reply): .success(reply)
        }
    }
}

/// Identifies a transaction within one process of its machine; ascending.
package struct TransactionID: Sendable, Hashable, Comparable {
    package let number: UInt64
    package init(_ number: UInt64) { self.number = number }
    package static func < (left: TransactionID, right: TransactionID) -> Bool { left.number < right.number }
}

package typealias NumberedTransaction = OwnerTransaction<TransactionID>

extension NumberedTransaction {
    package var id: TransactionID { step }
}

/// A request to another service.
package struct OwnerCall<Query: Sendable>: Sendable {
    /// Its purpose, passed to `answered`.
    package var query: Query
    package var service: ServiceName
    /// A Protobuf message: that service’s request.
    package var payload: [UInt8]
    /// The request’s ID, derived (`RequestID.derived`) if the same call may be repeated after a crash; nil means a new one.
    package var request: RequestID?
    /// The time limit; nil if the request is retried until it is answered.
    package var limit: Duration?
    /// Whether the ID may have been used before, so that the service must look it up in the database first.
    package var mayBeRepeat: Bool

    /// - Parameter mayBeRepeat: nil: true for a request with an explicit ID.
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

extension Result<[UInt8], Failure> {
    /// The reply of persistence; a malformed one is a failure.
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
