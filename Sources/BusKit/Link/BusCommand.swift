package import Logging
package import PodcastModel
package import WireMessages

/// What the rest of the process wants of its poll thread. Completions are called once, on that thread, and do not block.
package enum BusCommand: Sendable {
    case ask(RequestTracker.Asking, @Sendable (Result<Answer, Failure>) -> Void)
    case cancel(RequestID)
    case follow(UpdateFeed)
    case unfollow(ObjectIdentifier)
    case wait(PositionWait, @Sendable (Result<Void, Failure>) -> Void)
    case publish([Publication], @Sendable (Result<StreamPosition, Failure>) -> Void)
    case reply(ReplyTicket, RequestID, Result<[UInt8], Failure>)
    case ready
    /// Calls back when everything is acknowledged, or at the deadline; then GOODBYE.
    case leave(deadline: MonotonicTime, @Sendable () -> Void)
    /// When `BusEvent.alarm` is due; nil: never.
    case alarm(MonotonicTime?)
    /// Something that is not the bus's, in its turn.
    case run(@Sendable () -> Void)
    /// Something waits for the resident: it looks at the end of every turn, and this makes one.
    case attend

    /// The thread is gone: whoever waits is told.
    func fail(_ failure: Failure) {
        switch self {
        case .ask(_, let completion): completion(.failure(failure))
        case .wait(_, let completion): completion(.failure(failure))
        case .publish(_, let completion): completion(.failure(failure))
        case .leave(_, let completion): completion()
        case .follow(let feed): feed.finish()
        default: break
        }
    }
}

/// Someone who waits until the stream has reached a place.
package struct PositionWait: Sendable {
    package var position: StreamPosition
    /// Whose effect it is; in a later epoch the wait ends when it is ready.
    package var owner: ServiceName?
    package var deadline: MonotonicTime

    /// A wait of these parts.
    package init(position: StreamPosition, owner: ServiceName?, deadline: MonotonicTime) {
        (self.position, self.owner, self.deadline) = (position, owner, deadline)
    }

    /// Whether a replica has reached the place.
    package func isOver(_ replica: Replica) -> Bool {
        let here = replica.position
        guard here.epoch != position.epoch else { return here.sequence >= position.sequence }
        return here.epoch > position.epoch && owner.map { replica.ready[$0] != nil } ?? true
    }
}

/// What a poll thread is for.
package struct BusConfiguration: Sendable {
    package var runDirectory: String
    /// Who asks, in words.
    package var origin: String
    /// What it keeps of the stream; nil: it does not follow it.
    package var observes: TopicSelection?
    /// The service that it connects, in one life.
    package var service: (name: ServiceName, generation: UInt32)?
    package var logger: Logger
    /// How requests are repeated.
    package var requests: RequestTracker.Limits

    /// A thread for these purposes.
    package init(
        runDirectory: String, origin: String, observes: TopicSelection?,
        service: (name: ServiceName, generation: UInt32)? = nil, logger: Logger,
        requests: RequestTracker.Limits = RequestTracker.Limits()
    ) {
        self.runDirectory = runDirectory
        self.origin = origin
        self.observes = observes
        self.service = service
        self.logger = logger
        self.requests = requests
    }
}
