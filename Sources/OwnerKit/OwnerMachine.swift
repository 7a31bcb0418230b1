package import BusKit
package import PodcastModel
package import WireMessages

/// The pure part of a service that owns state: it turns an event and the time into effects.
///
/// `OwnerService` runs it: it deduplicates requests, commits, publishes, replies, calls other services and keeps the
/// timers. The machine never waits: it applies a command at once (speculatively), returns the commit, and receives the
/// outcome later. Its `Query`, `Timer` and `Step` carry the context of the outcome; it keeps no tables of its own.
package protocol OwnerMachine: Sendable {
    /// The reports of the service’s own shell: engine reports, fetched feeds …
    associatedtype Input: Sendable
    /// The effects for the service’s own shell.
    associatedtype Action: Sendable
    /// The purpose of a call; it is returned with the answer.
    associatedtype Query: Sendable
    /// The machine’s timers. Setting an active timer reschedules it.
    associatedtype Timer: Sendable, Hashable
    /// The purpose of a transaction; it is returned with the outcome.
    associatedtype Step: Sendable = TransactionID

    typealias Event = MachineEvent<Input, Query, Timer, Step>
    typealias Effect = MachineEffect<Action, Query, Timer, Step>
    typealias Call = OwnerCall<Query>
    typealias Transaction = OwnerTransaction<Step>

    /// The name under which it registers and commits.
    static var owner: ServiceName { get }
    /// The prefixes of the topics that the machine observes.
    static var observes: [String] { get }
    /// Whether it receives `podcastForgotten`.
    static var followsPodcasts: Bool { get }

    /// Restores the stored records, in order of (collection, key). It is called once, before all other calls. By
    /// default each record is passed to `restore(_:)`, an unreadable one is logged, and `start` follows.
    mutating func restore(_ records: [StoredRecord], now: Moment) -> [Effect]

    /// Restores a record. An error is logged, and the other records are still restored.
    mutating func restore(_ record: StoredRecord, now: Moment) throws

    /// Starts after all records were restored.
    mutating func start(now: Moment, _ effects: inout [Effect])

    /// The values that it retains on the stream, as whole puts: published at the start of each epoch, before READY.
    func retained(now: Moment) -> [Publication]

    /// Its whole durable state as writes, for a database that has lost some of it (after a backup was restored).
    func everything() -> [WireChange]

    /// The podcasts that the machine has data of. At the start the library is queried for them.
    var knownPodcasts: Set<PodcastID> { get }

    mutating func handle(_ event: Event, now: Moment) -> [Effect]

    /// After `.stopping`: whether the shell has reported all that must be saved. The process waits for it within the
    /// time limit of its last commits.
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

/// An event that an owner’s machine handles. `OwnerMachine.Event` is its alias.
package enum MachineEvent<Input: Sendable, Query: Sendable, Timer: Sendable & Hashable, Step: Sendable>: Sendable {
    /// A request that hasn’t been answered. It must be answered once, by a transaction’s `answer` or `.reply`.
    case command(Command)
    /// The transaction is durable, and its publications are being sent.
    case committed(Step)
    /// The transaction will never be durable: roll it back, unless it reports a fact. All later ones are refused too
    /// and reported in order. The runtime then answers its command according to the transaction’s `onRefusal`.
    case refused(Step, Failure)
    /// The answer to a `.call`.
    case answered(Query, Result<[UInt8], Failure>)
    /// An event, or a retained value, under one of the prefixes in `observes`. After a resync every retained value is
    /// sent again, so handling one must be idempotent.
    case observed(StreamEvent)
    /// A podcast was forgotten: the library doesn’t have it any more.
    case podcastForgotten(PodcastID)
    /// The database was replaced and lacks some records: the state in memory is being written to it. The machine must
    /// fetch again what only the old database had (a library’s episodes).
    case databaseReplaced
    case timer(Timer)
    case input(Input)
    /// The process is stopping: commit all that must be saved; it ends after the last commit.
    case stopping
}

/// An effect of an owner’s machine; within the owner `Effect`. Effects are performed in order.
package enum MachineEffect<Action: Sendable, Query: Sendable, Timer: Sendable & Hashable, Step: Sendable>: Sendable {
    /// Commits, then publishes, then replies.
    case commit(OwnerTransaction<Step>)
    /// Publishes at once: facts that are true whether or not they can be saved, and events that aren’t saved.
    case publish([Publication])
    /// Answers a command that commits nothing, or refuses it. It is sent after all earlier publications.
    case reply(RequestID, Result<[UInt8], Failure>)
    /// Calls another service (downwards only: queue → playback → persistence). The call is retried with the same ID
    /// until it is answered or refused.
    case call(OwnerCall<Query>)
    /// Sets or reschedules a timer; nil cancels it.
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

/// The level of a log line, with its name in the log.
package enum LogLevel: String, Sendable {
    case debug, info
    /// An error that was handled.
    case warning
    /// An error that persists.
    case error
}

/// A record of an owner as persistence stores it.
package struct StoredRecord: Sendable, Hashable {
    package var collection: String
    package var key: String
    /// A Protobuf message; its type depends on the collection.
    package var value: [UInt8]

    package init(collection: String, key: String, value: [UInt8]) {
        self.collection = collection
        self.key = key
        self.value = value
    }
}
