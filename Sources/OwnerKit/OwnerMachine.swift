package import BusKit
package import PodcastModel
package import WireMessages

// The owner of a part of the state (queue, playback, feeds) is a pure machine that conforms to `OwnerMachine`.
// `OwnerService` runs it: it deduplicates requests, commits, publishes, replies, calls other services and keeps the
// timers. The machine never waits: it applies a command at once (speculatively), says what to commit, and hears later
// whether it held.

/// The pure part of a service that owns state: event and time in, effects out.
package protocol OwnerMachine: Sendable {
    /// What only this service's own shell reports: the engine, a fetched feed …
    associatedtype Input: Sendable
    /// What only this service's own shell can do.
    associatedtype Action: Sendable

    /// The name that it registers and commits under.
    static var owner: ServiceName { get }
    /// Which topics of others it must see, by prefix; empty: none.
    static var observes: [String] { get }

    /// Takes over what persistence holds of this owner, in order of (collection, key). Called once, before anything
    /// else. A record that cannot be read must not prevent the others: report it (an alert, a log) and go on.
    mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<Action>]

    /// Everything that it retains on the stream now, whole puts only: published at the start of each epoch, before READY.
    func retained(now: Moment) -> [Publication]

    /// Its whole durable state as changes, for a database that has lost some of it (a backup was restored under it).
    func everything() -> [WireChange]

    mutating func handle(_ event: OwnerEvent<Input>, now: Moment) -> [OwnerEffect<Action>]

    /// After `.stopping`: whether the shell has reported all that is to be saved. The process waits for it, but not longer
    /// than for its last commits.
    var hasStopped: Bool { get }
}

extension OwnerMachine {
    package static var observes: [String] { [] }
    package var hasStopped: Bool { true }
}

/// What happens to an owner.
package enum OwnerEvent<Input: Sendable>: Sendable {
    /// A request that nobody has answered before. It must be answered once, by a transaction's `reply` or `.reply`.
    case command(Command)
    /// The transaction is durable, and what it publishes is on its way.
    case committed(TransactionID)
    /// The transaction is not durable and never will be: undo it, unless it reports a fact. All behind it are refused too
    /// and reported in order. Its command has not been answered yet (but for `duplicateRequest`: it has); a success that
    /// answers it now is told at once, so it must report only what is durable.
    case refused(TransactionID, Failure)
    /// The answer to a `.call`.
    case answered(CallID, Result<[UInt8], Failure>)
    /// An event, or a retained value, under one of the prefixes that it `observes`. After a resync every retained
    /// value comes again: handling one twice must change nothing.
    case observed(StreamEvent)
    /// The database is another one, which lacks some of what was stored: everything that is in memory is being written
    /// to it again. What only the database has (a library's episodes) must be fetched again.
    case databaseReplaced
    /// A timer that it set is due.
    case timer(TimerName)
    /// The service's own shell reports.
    case input(Input)
    /// The process will stop: commit what must not be lost; it ends when the last commit is through.
    case stopping
}

/// What an owner wants done. Effects are performed in order.
package enum OwnerEffect<Action: Sendable>: Sendable {
    /// Commit, then publish, then reply.
    case commit(Transaction)
    /// Publish now: facts that are true whether or not they can be saved, and events that need no saving.
    case publish([Publication])
    /// Answer a command that commits nothing, or refuse it. Sent after all that was published before it.
    case reply(RequestID, Result<[UInt8], Failure>)
    /// Ask another service (downwards only: queue → playback → persistence). Repeated with the same id until it is
    /// answered or refused.
    case call(Call)
    /// Set a timer, or move it; nil takes it back.
    case timer(TimerName, at: MonotonicTime?)
    /// Something only the shell can do.
    case perform(Action)
    /// A line for the log.
    case log(LogLevel, String)
}

/// How loud a line of the log is.
package enum LogLevel: Sendable, Hashable {
    /// Of interest to developers.
    case debug
    /// Of interest to users.
    case info
    /// Something was wrong and has been dealt with.
    case warning
    /// Something is wrong.
    case error
}

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

    /// Done in the same step, after it.
    package mutating func append(_ other: OwnerChange) {
        changes += other.changes
        publications += other.publications
    }
}

/// A step that is committed whole or not at all.
package struct Transaction: Sendable {
    /// The machine's name for it, in `committed` and `refused`.
    package var id: TransactionID
    /// What is written. Empty is allowed: then only the reply is stored.
    package var changes: [WireChange]
    /// What is published once it is durable, in order.
    package var publications: [Publication]
    /// The command that it answers, and the answer, which is stored with the effect.
    package var answer: (request: RequestID, reply: [UInt8])?

    package init(
        id: TransactionID, changes: [WireChange], publications: [Publication] = [],
        answering answer: (request: RequestID, reply: [UInt8])? = nil
    ) {
        self.id = id
        self.changes = changes
        self.publications = publications
        self.answer = answer
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

/// A request to another service.
package struct Call: Sendable, Hashable {
    /// The machine's name for it, in `answered`.
    package var id: CallID
    /// Whom to ask.
    package var service: ServiceName
    /// Protobuf: that service's request message.
    package var payload: [UInt8]
    /// The request's id, derived (`RequestID.derived`) where the same call may be made again after a crash; nil: any that
    /// no other request has.
    package var request: RequestID?
    /// When to give up; nil: never, it is repeated until it is answered.
    package var limit: Duration?

    package init(
        id: CallID, to service: ServiceName, payload: [UInt8], request: RequestID? = nil,
        limit: Duration? = .seconds(10)
    ) {
        self.id = id
        self.service = service
        self.payload = payload
        self.request = request
        self.limit = limit
    }
}

/// The machine's name for a call.
package struct CallID: Sendable, Hashable {
    package let text: String
    /// The call of this name.
    package init(_ text: String) { self.text = text }
}

/// The machine's name for a timer.
package struct TimerName: Sendable, Hashable {
    package let text: String
    /// The timer of this name.
    package init(_ text: String) { self.text = text }
}

/// One of an owner's records as persistence holds it.
package struct StoredRecord: Sendable, Hashable {
    /// A kind of record: `entry`, `session`, `alert` …
    package var collection: String
    /// Its name within the collection.
    package var key: String
    /// Protobuf, by collection.
    package var value: [UInt8]

    package init(collection: String, key: String, value: [UInt8]) {
        self.collection = collection
        self.key = key
        self.value = value
    }
}
