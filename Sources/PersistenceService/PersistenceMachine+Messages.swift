package import BusKit
package import OwnerKit
package import PodcastModel
package import WireMessages

/// The state of a store when it has been opened.
package struct StoreFacts: Sendable {
    /// The identity of the database: another one after a copy was restored.
    package var incarnation: String
    /// The service's own records: alerts and their answers.
    package var ownRecords: [WireRecord] = []
    /// When the last whole backup was made.
    package var lastBackup: Timestamp?
    /// The number of podcasts.
    package var podcasts: UInt64 = 0
    /// The number of episodes.
    package var episodes: UInt64 = 0
    /// Whether only a part of the database was read at the start, as it is large.
    package var needsCheck = false
    /// Whether a backup is to be made however new the last one is, as it replaces copies with passwords.
    package var needsBackup = false
    /// The pages that the write-ahead log may hold.
    package var loggedPages = 0

    /// A store of this incarnation.
    package init(incarnation: String) {
        self.incarnation = incarnation
    }
}

extension PersistenceMachine {
    package enum CopyKind: Sendable, Hashable {
        /// The whole database.
        case backup
        /// A side snapshot.
        case snapshot
    }

    package enum Event: Sendable {
        /// The service begins.
        case started
        /// A request arrived; its payload, and the moment after which nobody waits for the answer.
        case request(Ticket, [UInt8], deadline: MonotonicTime?)
        /// A transaction is through.
        case wrote([Purpose], StoreBatchResult)
        /// A question is answered.
        case answered(Ticket, Result<WirePersistenceReply, Failure>)
        /// A copy is made, or not.
        case copied(CopyKind, Result<StoreCopy, Failure>)
        /// Old replies are forgotten.
        case pruned(Result<Int, Failure>)
        /// Podcasts and episodes are counted.
        case counted(Result<Counts, Failure>)
        /// A checkpoint is over: how many pages the log still holds.
        case checkpointed(Result<Int, Failure>)
        /// The whole database was read: what is wrong with it, or nil.
        case checked(DatabaseDamage?)
        /// The search index was made anew.
        case rebuilt(Result<Bool, Failure>)
        /// The moment that it asked for has come.
        case wake
        /// The process will stop.
        case stopping
    }

    /// Podcasts and episodes.
    package struct Counts: Sendable, Hashable {
        /// The number of podcasts.
        package var podcasts: UInt64
        /// The number of episodes.
        package var episodes: UInt64

        package init(podcasts: UInt64, episodes: UInt64) {
            self.podcasts = podcasts
            self.episodes = episodes
        }
    }

    /// An effect. Each of the first six is followed by its event.
    package enum Effect: Sendable {
        /// Write in one transaction; one such effect at a time.
        case write([Purpose], [StoreWrite])
        /// Answer a question, beside others.
        case ask(Ticket, WirePersistenceRequest.OneOf_Command)
        /// Make a copy.
        case copy(CopyKind)
        /// Forget replies from before this moment.
        case prune(before: Timestamp)
        /// Copy the log into the database; nothing else is written meanwhile.
        case checkpoint
        /// Count podcasts and episodes.
        case count
        /// Read the whole database.
        case check
        /// Make the search index anew.
        case rebuild
        /// Have the next start read the whole database.
        case suspect
        /// Answer a request.
        case reply(Ticket, Result<[UInt8], Failure>)
        case publish([Publication])
        /// Send `wake` at this moment, instead of any earlier wish.
        case wake(at: MonotonicTime)
        /// Say something to the log.
        case log(LogLevel, String)
        /// End the service; with a failure so that it is started again.
        case stop(Failure?)
    }
}

extension StoreWritten {
    /// The reply to the request.
    var reply: WirePersistenceReply {
        var reply = WirePersistenceReply()
        switch self {
        case .loaded(let loaded): reply.loaded = loaded
        case .outcomes(let outcomes): reply.outcomes = outcomes
        case .done: break
        }
        return reply
    }
}

extension Result {
    /// Why it is none.
    var failure: Failure? {
        if case .failure(let failure) = self { return failure }
        return nil
    }
}
