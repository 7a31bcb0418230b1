package import Logging
package import PodcastModel
import ServiceLifecycle
package import SwiftProtobuf
package import WireMessages

/// A program's connection to the bus: it observes the stream and asks services.
///
/// `run()` holds the connection; everything else may be called before, and waits for it. A lost bus is joined again by
/// itself, for as long as `run()` runs.
package final class BusClient: Service {
    private let thread: BusThread

    /// A client of the bus whose sockets are in `runDirectory`.
    /// - Parameters:
    ///   - origin: who asks, in words, for histories: `cli`, `mini` …
    ///   - observes: what it keeps of the stream; nil: it only asks, and doesn't follow it.
    package init(runDirectory: String, origin: String, observes: TopicSelection?, logger: Logger) {
        thread = BusThread(
            BusConfiguration(runDirectory: runDirectory, origin: origin, observes: observes, logger: logger))
    }

    /// A client on the thread of a service, which runs it.
    package init(sharing thread: BusThread) {
        self.thread = thread
    }

    /// Holds the connection until it is cancelled, shut down gracefully, or `shutdown()` is called.
    /// - Throws: a `Failure` with `badConfiguration` if the run directory cannot be one.
    package func run() async throws {
        try await withGracefulShutdownHandler {
            try await thread.run()
        } onGracefulShutdown: {
            self.thread.stop()
        }
    }

    /// Ends `run()`. What is unanswered fails with `unavailable`; streams end.
    package func shutdown() async {
        thread.stop()
    }

    /// The stream from now on, for one consumer: `.snapshot` first (after `.connection` while there is none yet), then every
    /// event in order, each once. A consumer that is further behind than the bus’s ring reaches gets `.snapshot` again in
    /// place of what it missed.
    package func subscribe() -> FeedSubscription { FeedSubscription(thread: thread, feed: UpdateFeed()) }

    /// Asks a service, repeating the request under its id until it is answered, refused, or the time is over.
    /// - Parameters:
    ///   - reachLimit: how long it is tried while no attempt has reached the service; nil: as long as any.
    ///   - mayBeRepeat: whether the id may have been used before, by another life of this program.
    /// - Throws: the service's refusal; `unavailable`, `busy` if every try was refused; `outcomeUnknown` if it is not
    ///   known whether it took effect.
    package func request(
        _ service: ServiceName, _ payload: [UInt8], id: RequestID = .random(), within limit: Duration? = .seconds(10),
        reaching reachLimit: Duration? = nil, mayBeRepeat: Bool = false
    ) async throws(Failure) -> Answer {
        let now = SystemClocks.monotonic()
        let request = OutgoingRequest(
            id: id, service: service, payload: payload, deadline: limit.map(now.advanced(by:)),
            reachDeadline: reachLimit.map(now.advanced(by:)), mayBeRepeat: mayBeRepeat)
        let result: Result<Answer, Failure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                thread.send(.ask(request) { continuation.resume(returning: $0) })
                if Task.isCancelled { thread.send(.cancel(id)) }
            }
        } onCancel: {
            thread.send(.cancel(id))
        }
        return try result.get()
    }

    /// Sends a request as a message and reads the reply as one.
    /// - Throws: also `malformed` for an answer that is no `Reply`.
    package func ask<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ message: some SwiftProtobuf.Message, reply: Reply.Type, id: RequestID = .random(),
        within limit: Duration? = .seconds(10), reaching reachLimit: Duration? = nil, mayBeRepeat: Bool = false
    ) async throws(Failure) -> (reply: Reply, position: StreamPosition?) {
        let answer = try await request(
            service, message.wireBytes, id: id, within: limit, reaching: reachLimit, mayBeRepeat: mayBeRepeat)
        do {
            return (try Reply(wireBytes: answer.payload), answer.position)
        } catch {
            throw Failure(.malformed, "The answer of \(service) cannot be read.")
        }
    }

    /// Returns when the stream has reached `position`, so that one's own change is in the replica. In a later epoch it
    /// returns when `owner`, who has put everything again, is ready.
    /// - Throws: `unavailable` when the time is over.
    package func wait(
        for position: StreamPosition, of owner: ServiceName? = nil, within limit: Duration
    ) async throws(Failure) {
        let wait = PositionWait(
            position: position, owner: owner, deadline: SystemClocks.monotonic().advanced(by: limit))
        let result: Result<Void, Failure> = await withCheckedContinuation { continuation in
            thread.send(.wait(wait) { continuation.resume(returning: $0) })
        }
        try result.get()
    }
}

/// A consumer’s feed, which it lets go of with this.
package final class FeedSubscription: Sendable {
    package let feed: UpdateFeed
    private let thread: BusThread

    init(thread: BusThread, feed: UpdateFeed) {
        self.thread = thread
        self.feed = feed
        thread.send(.follow(feed))
    }

    deinit {
        thread.send(.unfollow(ObjectIdentifier(feed)))
    }
}
