package import Logging
package import PodcastModel
package import WireMessages

/// A command to the process’s poll thread. Completions are called once, on that thread, and must not block.
package enum BusCommand: Sendable {
    case ask(OutgoingRequest, @Sendable (Result<Answer, Failure>) -> Void)
    case cancel(RequestID)
    case follow(UpdateBuffer)
    case unfollow(ObjectIdentifier)
    case wait(PositionWait, @Sendable (Result<Void, Failure>) -> Void)
    case publish([Publication], @Sendable (Result<StreamPosition, Failure>) -> Void)
    case reply(ReplyTicket, RequestID, Result<[UInt8], Failure>)
    case ready
    /// Completes when every publish is acknowledged, or at the deadline; then GOODBYE is sent.
    case leave(deadline: MonotonicTime, @Sendable () -> Void)
    /// Sets the time at which `BusEvent.timerFired` is due; nil means never.
    case alarm(MonotonicTime?)
    case run(@Sendable () -> Void)
    /// Wakes the service’s handler, which reads its inputs at the end of every turn.
    case wakeHandler

    /// Calls the command’s completion with a failure, because the thread has ended.
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

/// A wait until the stream has reached a position.
package struct PositionWait: Sendable {
    package var position: StreamPosition
    /// The service whose effect is awaited; in a later epoch the wait ends when the service is ready.
    package var owner: ServiceName?
    package var deadline: MonotonicTime

    package func isOver(_ replica: Replica) -> Bool {
        let here = replica.position
        guard here.epoch != position.epoch else { return here.sequence >= position.sequence }
        return here.epoch > position.epoch && owner.map { replica.ready[$0] != nil } ?? true
    }
}

package struct BusConfiguration: Sendable {
    package var runDirectory: String
    /// The name of the program that sends the requests.
    package var origin: String
    /// The topics of the stream to observe; nil if the program doesn’t follow the stream.
    package var observes: TopicSelection?
    /// The service that the process connects, and its generation; nil for a client.
    package var service: (name: ServiceName, generation: UInt32)?
    package var logger: Logger
    package var requests: RequestRetrier.Limits

    package init(
        runDirectory: String, origin: String, observes: TopicSelection?,
        service: (name: ServiceName, generation: UInt32)? = nil, logger: Logger,
        requests: RequestRetrier.Limits = RequestRetrier.Limits()
    ) {
        self.runDirectory = runDirectory
        self.origin = origin
        self.observes = observes
        self.service = service
        self.logger = logger
        self.requests = requests
    }
}
