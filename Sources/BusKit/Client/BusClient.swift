package import Logging
package import PodcastModel
import ServiceLifecycle
package import SwiftProtobuf
package import WireMessages

/// A program’s connection to the bus: it observes the stream and sends requests to services.
///
/// `run()` runs the connection. Other calls may be made earlier and wait for it, and a lost connection is
/// re-established automatically.
package final class BusClient: Service {
    private let thread: BusThread

    /// Creates a client of the bus whose sockets are in `runDirectory`.
    /// - Parameters:
    ///   - origin: the requesting program’s name for histories: `cli`, `mini` …
    ///   - observes: the topics to observe; nil if the client only sends requests and doesn’t follow the stream.
    package init(runDirectory: String, origin: String, observes: TopicSelection?, logger: Logger) {
        thread = BusThread(
            BusConfiguration(runDirectory: runDirectory, origin: origin, observes: observes, logger: logger))
    }

    /// Creates a client on a service’s poll thread, which the service runs.
    package init(sharing thread: BusThread) {
        self.thread = thread
    }

    /// Runs the connection until cancellation, graceful shutdown, or a call of `shutdown()`.
    /// - Throws: a `Failure` with `badConfiguration` if the run directory is unusable.
    package func run() async throws {
        try await withGracefulShutdownHandler {
            try await thread.run()
        } onGracefulShutdown: {
            self.thread.stop()
        }
    }

    /// Ends `run()`. Unanswered requests fail with `unavailable`; streams end.
    package func shutdown() async {
        thread.stop()
    }

    /// Subscribes one consumer to the stream: `.snapshot` first (after `.connection` while there is none yet), then
    /// every event in order, each once. A consumer that falls further behind than the bus’s ring gets `.snapshot` again
    /// in place of the missed events.
    package func subscribe() -> FeedSubscription { FeedSubscription(thread: thread, feed: UpdateBuffer()) }

    /// Sends a request to a service, and repeats it under its ID until it is answered, refused or past its deadline.
    /// - Parameters:
    ///   - reachLimit: the limit for attempts that don’t reach the service; nil if there is none.
    ///   - mayBeRepeat: whether the ID may have been used before, by an earlier process of this program.
    /// - Throws: the service’s refusal; `unavailable` or `busy` if every attempt was refused; `outcomeUnknown` if it is
    ///   unknown whether the request took effect.
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

    /// Sends a request message and decodes the reply message.
    /// - Throws: also `malformed` for a reply that isn’t a `Reply`.
    package func ask<Reply: SwiftProtobuf.Message>(
        _ service: ServiceName, _ message: some SwiftProtobuf.Message, reply: Reply.Type, id: RequestID = .random(),
        within limit: Duration? = .seconds(10), reaching reachLimit: Duration? = nil, mayBeRepeat: Bool = false
    ) async throws(Failure) -> (reply: Reply, position: StreamPosition?) {
        let answer = try await request(
            service, message.wireBytes, id: id, within: limit, reaching: reachLimit, mayBeRepeat: mayBeRepeat)
        do {
            return (try Reply(wireBytes: answer.payload), answer.position)
        } catch {
            throw Failure(.malformed, "The answer of \(service) can’t be decoded.")
        }
    }

    /// Returns when the stream has reached `position`, so that the caller’s change is in the replica. In a later epoch
    /// it returns when `owner`, which has put everything again, is ready.
    /// - Throws: `unavailable` when the time limit is reached.
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

/// A consumer’s update feed, which the poll thread drops when the subscription is released.
package final class FeedSubscription: Sendable {
    package let feed: UpdateBuffer
    private let thread: BusThread

    init(thread: BusThread, feed: UpdateBuffer) {
        self.thread = thread
        self.feed = feed
        thread.send(.follow(feed))
    }

    deinit {
        thread.send(.unfollow(ObjectIdentifier(feed)))
    }
}
