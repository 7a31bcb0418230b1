package import BusKit
package import Logging
import NIOConcurrencyHelpers
package import PodcastModel
import ServiceLifecycle
package import WireMessages

/// A service’s connection to the bus, without an owner’s commits: it registers, publishes and receives commands.
package final class ServiceHost: Sendable {
    private enum Signal: Sendable {
        case began
        case pulse
        case fenced(Failure)
        case refused(IncomingCommand)
    }

    private struct State {
        var isReady = false
        var isStopping = false
    }

    /// The requests in order, for one consumer, which answers each with `reply`; beyond 256 they are answered `busy`.
    package let commands: AsyncStream<IncomingCommand>
    /// A client that shares the host’s thread and sockets.
    package let client: BusClient

    private let thread: BusThread
    private let signals: AsyncStream<Signal>
    private let signal: AsyncStream<Signal>.Continuation
    private let commandInput: AsyncStream<IncomingCommand>.Continuation
    private let state = NIOLockedValueBox(State())

    /// Creates the host of `name` with `generation`, on the bus in `runDirectory`.
    package init(
        name: ServiceName, generation: UInt32, runDirectory: String, logger: Logger, observesStream: Bool = false
    ) {
        (commands, commandInput) = AsyncStream.makeStream(bufferingPolicy: .bufferingOldest(256))
        (signals, signal) = AsyncStream.makeStream()
        let signal = signal
        let commandInput = commandInput
        thread = BusThread(
            BusConfiguration(
                runDirectory: runDirectory, origin: name.text, observes: observesStream ? .all : nil,
                service: (name, generation), logger: logger),
            onEvent: { event in
                switch event {
                case .epochBegan: signal.yield(.began)
                case .heartbeat: signal.yield(.pulse)
                case .fenced(let failure): signal.yield(.fenced(failure))
                case .command(let command):
                    guard case .enqueued = commandInput.yield(command) else {
                        signal.yield(.refused(command))
                        return
                    }
                case .status, .update, .rejected, .timerFired: break
                }
            })
        client = BusClient(sharing: thread)
    }

    /// Serves the connection until it is cancelled, shut down gracefully or fenced.
    /// - Parameters:
    ///   - pulse: called once a second from this loop while the poll thread runs too: for the watchdog.
    ///   - retained: returns all retained values, which are put at the start of each epoch, before READY.
    /// - Throws: `fenced` if a newer process of the service has taken over.
    package func run(
        pulse: @Sendable () -> Void = {}, retained: @Sendable () async -> [Publication]
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { self.signal.finish() }
                try await self.thread.run()
            }
            try await withTaskCancellationHandler {
                try await withGracefulShutdownHandler {
                    do {
                        try await self.serve(pulse, retained)
                    } catch {
                        self.thread.stop()
                        throw error
                    }
                } onGracefulShutdown: {
                    self.signal.finish()
                }
            } onCancel: {
                self.signal.finish()
            }
            await self.leave()
            self.thread.stop()
            self.commandInput.finish()
            try await group.waitForAll()
        }
    }

    private func serve(_ pulse: () -> Void, _ retained: () async -> [Publication]) async throws {
        for await signal in signals {
            switch signal {
            case .pulse: pulse()
            case .fenced(let failure): throw failure
            case .refused(let command):
                reply(command, .failure(Failure(.busy, "Too many requests wait for the service.")))
            case .began:
                guard state.withLockedValue({ $0.isReady }) else { continue }
                let puts = await retained()
                thread.send(.publish(puts) { _ in })
                thread.send(.ready)
            }
        }
    }

    /// Ends `run`: earlier publishes and replies are still sent, then the bus is notified that the service is down.
    package func shutdown() {
        signal.finish()
    }

    private func leave() async {
        let deadline = SystemClocks.monotonic().advanced(by: .seconds(1))
        await withCheckedContinuation { continuation in
            thread.send(.leave(deadline: deadline) { continuation.resume() })
        }
    }

    /// Puts the retained values and sends READY, now and in each later epoch.
    package func ready() {
        let isFirst = state.withLockedValue { state in
            defer { state.isReady = true }
            return !state.isReady
        }
        if isFirst { signal.yield(.began) }
    }

    /// Publishes in order.
    /// - Returns: the position of the last publication, once the bus has acknowledged all.
    /// - Throws: `unavailable` or `lostInFlight` if the bus is down (retained values are put again when it is up,
    ///   others are lost); the bus’s code if it refuses.
    @discardableResult
    package func publish(_ publications: [Publication]) async throws(Failure) -> StreamPosition {
        let result: Result<StreamPosition, Failure> = await withCheckedContinuation { continuation in
            thread.send(.publish(publications) { continuation.resume(returning: $0) })
        }
        return try result.get()
    }

    /// Replies to a command, after everything that was published before, stamped with that stream position. A reply to
    /// a bus that has ended is dropped: the client repeats the request.
    package func reply(_ command: IncomingCommand, _ result: Result<[UInt8], Failure>) {
        thread.send(.reply(command.ticket, command.id, result))
    }
}
