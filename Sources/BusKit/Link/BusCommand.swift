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
    /// When `BusHooks.alarm` is to be called; nil: never.
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

    func isOver(_ replica: Replica) -> Bool {
        let here = replica.position
        guard here.epoch != position.epoch else { return here.sequence >= position.sequence }
        return here.epoch > position.epoch && owner.map { replica.ready[$0] != nil } ?? true
    }
}

/// What the poll thread tells a service; called on it, and must not block.
package struct BusHooks: Sendable {
    /// The bus has accepted the service in this epoch.
    package var began: @Sendable (UInt64) -> Void = { _ in }
    /// A request; false: too many wait.
    package var command: @Sendable (IncomingCommand) -> Bool = { _ in false }
    /// The stream went on.
    package var update: @Sendable (ReplicaUpdate) -> Void = { _ in }
    /// Another service is ready, in this generation, or not: nil.
    package var status: @Sendable (ServiceName, UInt32?) -> Void = { _, _ in }
    /// The bus refused a publication.
    package var rejected: @Sendable (Publication, String) -> Void = { _, _ in }
    /// A younger process has taken over.
    package var fenced: @Sendable (Failure) -> Void = { _ in }
    /// The time of `BusCommand.alarm` has come.
    package var alarm: @Sendable () -> Void = {}
    /// Once a second, as long as the thread turns.
    package var pulse: @Sendable () -> Void = {}
    /// Makes what lives on the thread: called at the end of every turn, again and again until it gives nil, it handles what
    /// the other hooks have told and says what is to be done.
    package var makeResident: @Sendable () -> (() -> [BusCommand]?) = { { nil } }

    /// Hooks that do nothing.
    package init() {}
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
