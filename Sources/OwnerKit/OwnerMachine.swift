package import BusKit
package import PodcastModel
package import WireMessages

/// The pure part of a service that owns state: event and time in, effects out.
///
/// `OwnerService` runs it: it deduplicates requests, commits, publishes, replies, calls other services and keeps the
/// timers. The machine never waits: it applies a command at once (speculatively), says what to commit, and is told the
/// outcome later. Its `Query`, `Timer` and `Step` carry all that it must know then; it keeps no tables of its own.
package protocol OwnerMachine: Sendable {
    /// The reports of the service's own shell: of the engine, of a fetched feed …
    associatedtype Input: Sendable
    /// The actions of the service's own shell.
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

    /// Restores the stored records, in order of (collection, key). Called once, before anything else. By default each
    /// record goes to `restore(_:)`, one that can’t be read is logged, and `start` follows.
    mutating func restore(_ records: [StoredRecord], now: Moment) -> [Effect]

    /// Restores a record. An error is logged, and the other records follow.
    mutating func restore(_ record: StoredRecord, now: Moment) throws

    /// Begins; all records have been restored.
    mutating func start(now: Moment, _ effects: inout [Effect])

    /// The values that it retains on the stream now, as whole puts: published at the start of each epoch, before READY.
    func retained(now: Moment) -> [Publication]

    /// Its whole durable state as changes, for a database that has lost some of it (a backup was restored under it).
    func everything() -> [WireChange]

    /// The podcasts that it keeps anything for. At the start the library is asked whether they still exist.
    var knownPodcasts: Set<PodcastID> { get }

    mutating func handle(_ event: Event, now: Moment) -> [Effect]

    /// After `.stopping`: whether the shell has reported all that is to be saved. The process waits for it as long as for its
    /// last commits.
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

/// An event of an owner; within it `Event`.
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
    /// The database is another one, which lacks some records: the state in memory is being written to it again. The machine
    /// must fetch again what only the database had (a library's episodes).
    case databaseReplaced
    case timer(Timer)
    case input(Input)
    /// The process will stop: commit what must not be lost; it ends when the last commit is through.
    case stopping
}

/// An effect of an owner’s decision; within it `Effect`. Effects are performed in order.
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
    case perform(Action)
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

/// The level of a line of the log, by its name there.
package enum LogLevel: String, Sendable {
    case debug, info
    /// Something was wrong and has been dealt with.
    case warning
    /// Something is wrong.
    case error
}

/// One of an owner's records as persistence holds it.
package struct StoredRecord: Sendable, Hashable {
    package var collection: String
    package var key: String
    /// Protobuf, by collection.
    package var value: [UInt8]

    package init(collection: String, key: String, value: [UInt8]) {
        self.collection = collection
        self.key = key
        self.value = value
    }
}
