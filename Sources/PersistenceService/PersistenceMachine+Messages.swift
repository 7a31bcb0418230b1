package import BusKit
package import FleetHome
package import OwnerKit
package import PodcastModel
package import WireMessages

/// The state of a store after it is opened.
package struct StoreFacts: Sendable {
    /// The identity of the database; it changes when a copy is restored.
    package var incarnation: String
    /// The service’s own records: alerts and their answers.
    package var ownRecords: [WireRecord] = []
    /// The existing copies, newest first.
    package var copies: [DatabaseCopy] = []
    package var podcasts: UInt64 = 0
    package var episodes: UInt64 = 0
    /// Whether the whole database must be read soon: it is large, so that only a part was read at the start, and it
    /// wasn’t closed or the last check is old.
    package var needsCheck = false
    /// Whether a backup is made regardless of the last one’s age, because it replaces copies with passwords.
    package var needsBackup = false
    /// The number of pages that the write-ahead log may contain.
    package var loggedPages = 0
}

extension PersistenceMachine {
    package enum Event: Sendable {
        case started
        /// A request arrived, with its payload and the deadline after which it must not begin.
        case request(Ticket, [UInt8], deadline: MonotonicTime?)
        case wrote(StoreBatchResult)
        case answered(Ticket, Result<WirePersistenceReply, Failure>)
        case copied(DatabaseCopy.Kind, Result<DatabaseCopy, Failure>)
        /// The number of rows that were removed.
        case pruned(Result<Int, Failure>)
        case counted(Result<(podcasts: UInt64, episodes: UInt64), Failure>)
        /// The number of pages that the log still holds.
        case checkpointed(Result<Int, Failure>)
        /// The whole database was read; nil if it isn’t damaged.
        case checked(Result<DatabaseDamage?, Failure>)
        case rebuilt(Result<Void, Failure>)
        case wake
        case stopping
    }

    /// An effect. Each of the first eight reports an event when it is done.
    package enum Effect: Sendable {
        /// Write in one transaction; one such effect at a time.
        case write([StoreWrite])
        /// Answer a query, concurrently with others.
        case ask(Ticket, WirePersistenceRequest.OneOf_Command)
        case copy(DatabaseCopy.Kind)
        /// Remove commit IDs and stored replies from before this time.
        case prune(before: Timestamp)
        /// Copy the log into the database; nothing else is written meanwhile.
        case checkpoint
        /// Count podcasts and episodes.
        case count
        /// Read the whole database.
        case check
        /// Rebuild the search index.
        case rebuild
        /// Make the next start read the whole database.
        case suspect
        case reply(Ticket, Result<[UInt8], Failure>)
        case publish([Publication])
        /// Send `wake` at this time, which replaces the one of an earlier effect.
        case wake(at: MonotonicTime)
        case log(LogLevel, String)
        /// End the service; it is restarted if there is a failure.
        case stop(Failure?)
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
