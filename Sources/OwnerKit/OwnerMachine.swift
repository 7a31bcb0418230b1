package import BusKit
package import PodcastModel
package import WireMessages

// The owner of a part of the state (queue, playback, feeds) is a pure machine that conforms to `OwnerMachine`.
// `OwnerService` runs it: it deduplicates requests, commits, publishes, replies, calls other services and keeps the
// timers. The machine never waits: it applies a command at once (speculatively), says what to commit, and is told the
// outcome later.

/// The pure part of a service that owns state: event and time in, effects out.
///
/// What it names itself (questions, timers, transactions) is typed: it declares `Query`, `Timer` and `Step` as nested
/// types that carry all it must know when the answer, the moment or the outcome comes. It keeps no tables of its own.
package protocol OwnerMachine: Sendable {
    /// What only this service's own shell reports: the engine, a fetched feed …
    associatedtype Input: Sendable
    /// What only this service's own shell can do.
    associatedtype Action: Sendable
    /// The purpose of a call: it comes back with the answer.
    associatedtype Query: Sendable
    /// Its timers. Setting one that is set moves it.
    associatedtype Timer: Sendable, Hashable
    /// The purpose of a transaction: it comes back with the outcome.
    associatedtype Step: Sendable = TransactionID

    typealias Event = MachineEvent<Input, Query, Timer, Step>
    typealias Effect = MachineEffect<Action, Query, Timer, Step>
    typealias Call = OwnerCall<Query>
    typealias Transaction = OwnerTransaction<Step>

    /// The name that it registers and commits under.
    static var owner: ServiceName { get }
    /// The prefixes of the topics that it observes.
    static var observes: [String] { get }
    /// Whether it is told of podcasts that have been forgotten (`podcastForgotten`).
    static var followsPodcasts: Bool { get }

    /// Takes over what persistence holds of this owner, in order of (collection, key). Called once, before anything
    /// else. By default each record goes to `restore(_:)`, one that cannot be read is logged, and `start` follows.
    mutating func restore(_ records: [StoredRecord], now: Moment) -> [Effect]

    /// Takes a stored record over. What it throws is logged, and the other records follow.
    mutating func restore(_ record: StoredRecord, now: Moment) throws

    /// Begins, with all records restored.
    mutating func start(now: Moment, _ effects: inout [Effect])

    /// Everything that it retains on the stream now, whole puts only: published at the start of each epoch, before READY.
    func retained(now: Moment) -> [Publication]

    /// Its whole durable state as changes, for a database that has lost some of it (a backup was restored under it).
    func everything() -> [WireChange]

    /// The podcasts that it keeps anything for. At the start the library is asked whether they still exist.
    var knownPodcasts: Set<PodcastID> { get }

    mutating func handle(_ event: Event, now: Moment) -> [Effect]

    /// After `.stopping`: whether the shell has reported all that is to be saved. The process waits for it, but not longer
    /// than for its last commits.
    var hasStopped: Bool { get }
}

extension OwnerMachine {
    package static var observes: [String] { [] }
    package static var followsPodcasts: Bool { false }
    package var knownPodcasts: Set<PodcastID> { [] }
    package var hasStopped: Bool { true }

    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [Effect] {
        var effects: [Effect] = []
        for record in records {
            do {
                try restore(record, now: now)
            } catch {
                effects.append(.log(.error, "record \(record.collection)/\(record.key) is unreadable: \(error)"))
            }
        }
        start(now: now, &effects)
        return effects
    }

    package mutating func restore(_ record: StoredRecord, now: Moment) throws {}

    package mutating func start(now: Moment, _ effects: inout [Effect]) {}
}

/// What happens to an owner; within it `Event`.
package enum MachineEvent<Input: Sendable, Query: Sendable, Timer: Sendable & Hashable, Step: Sendable>: Sendable {
    /// A request that nobody has answered before. It must be answered once, by a transaction's `answer` or `.reply`.
    case command(Command)
    /// The transaction is durable, and what it publishes is on its way.
    case committed(Step)
    /// The transaction is not durable and never will be: roll it back, unless it reports a fact. All behind it are refused
    /// too and reported in order. The runtime answers its command afterwards, as the transaction's `onRefusal` says.
    case refused(Step, Failure)
    /// The answer to a `.call`.
    case answered(Query, Result<[UInt8], Failure>)
    /// An event, or a retained value, under one of the prefixes that it `observes`. After a resync every retained
    /// value comes again: handling one twice must change nothing.
    case observed(StreamEvent)
    /// A podcast has been forgotten, and the library does not have it any more.
    case podcastForgotten(PodcastID)
    /// The database is another one, which lacks some of what was stored: everything that is in memory is being written
    /// to it again. What only the database has (a library's episodes) must be fetched again.
    case databaseReplaced
    /// A timer that it set is due.
    case timer(Timer)
    /// The service's own shell reports.
    case input(Input)
    /// The process will stop: commit what must not be lost; it ends when the last commit is through.
    case stopping
}

/// What an owner wants done; within it `Effect`. Effects are performed in order.
package enum MachineEffect<Action: Sendable, Query: Sendable, Timer: Sendable & Hashable, Step: Sendable>: Sendable {
    /// Commit, then publish, then reply.
    case commit(OwnerTransaction<Step>)
    /// Publish now: facts that are true whether or not they can be saved, and events that need no saving.
    case publish([Publication])
    /// Answer a command that commits nothing, or refuse it. Sent after all that was published before it.
    case reply(RequestID, Result<[UInt8], Failure>)
    /// Ask another service (downwards only: queue → playback → persistence). Repeated with the same id until it is
    /// answered or refused.
    case call(OwnerCall<Query>)
    /// Set a timer, or move it; nil cancels it.
    case timer(Timer, at: MonotonicTime?)
    /// Something only the shell can do.
    case perform(Action)
    /// A line for the log.
    case log(LogLevel, String)

    /// Sends a query to persistence.
    package static func ask(
        _ query: Query, limit: Duration? = .seconds(10), _ fill: (inout WirePersistenceRequest) -> Void
    ) -> Self {
        var request = WirePersistenceRequest()
        fill(&request)
        return .call(OwnerCall(query, to: .persistence, payload: request.wireBytes, limit: limit))
    }
}

/// The level of a line of the log.
package enum LogLevel: Sendable, Hashable {
    /// The line is of interest to developers.
    case debug
    /// The line is of interest to users.
    case info
    /// Something was wrong and has been dealt with.
    case warning
    /// Something is wrong.
    case error
}

/// One of an owner's records as persistence holds it.
package struct StoredRecord: Sendable, Hashable {
    /// A kind of record: `entry`, `session`, `alert` …
    package var collection: String
    /// The name of the record within its collection.
    package var key: String
    /// Protobuf, by collection.
    package var value: [UInt8]

    package init(collection: String, key: String, value: [UInt8]) {
        self.collection = collection
        self.key = key
        self.value = value
    }
}
