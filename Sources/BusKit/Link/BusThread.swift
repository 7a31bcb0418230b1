import Logging
import NIOConcurrencyHelpers
import PodcastModel
import ServiceLifecycle
import ZeroMQ

/// A process’s poll thread. Commands sent before it starts are queued; commands sent after it ends fail.
package final class BusThread: Sendable {
    private enum State {
        case idle([BusCommand])
        case running(PollThread<BusLoop>)
        case ended
    }

    private let configuration: BusConfiguration
    private let makeHandlerLoop: @Sendable () -> (() -> [BusCommand]?)
    private let onEvent: @Sendable (BusEvent) -> Void
    private let state = NIOLockedValueBox(State.idle([]))
    private let stopping: AsyncStream<Void>
    private let stopper: AsyncStream<Void>.Continuation

    private static let isClosed = Failure(.unavailable, "The connection to the bus is closed.")

    /// Creates a thread that doesn’t run yet.
    ///
    /// - Parameters:
    ///   - makeHandlerLoop: creates the service’s handler on the thread. It is called at the end of every turn until it
    ///     returns nil, handles the events from `onEvent` and returns commands.
    ///   - onEvent: called with each bus event for a service.
    package init(
        _ configuration: BusConfiguration,
        makeHandlerLoop: @escaping @Sendable () -> (() -> [BusCommand]?) = { { nil } },
        onEvent: @escaping @Sendable (BusEvent) -> Void = { _ in }
    ) {
        self.configuration = configuration
        self.makeHandlerLoop = makeHandlerLoop
        self.onEvent = onEvent
        (stopping, stopper) = AsyncStream.makeStream()
    }

    package func send(_ command: BusCommand) {
        let failure: Failure? = state.withLockedValue { state in
            switch state {
            case .idle(let waiting):
                state = .idle(waiting + [command])
                return nil
            case .running(let thread): return Self.failure(thread.send(command))
            case .ended: return Self.isClosed
            }
        }
        if let failure { command.fail(failure) }
    }

    /// Runs until `stop()`, graceful shutdown or cancellation; then all sockets are closed and the thread has ended.
    package func run() async throws {
        let thread: PollThread<BusLoop>
        do {
            let (configuration, makeHandlerLoop, onEvent) = (configuration, makeHandlerLoop, onEvent)
            thread = try PollThread(name: "bus") {
                try BusLoop(configuration, handlerLoop: makeHandlerLoop(), onEvent: onEvent)
            }
            try await thread.started()
        } catch {
            end()
            throw Failure(.badConfiguration, "The bus in \(configuration.runDirectory) can’t be used: \(error).")
        }
        begin(thread)
        // If the thread fails, this task ends too, so that its caller gets the error at once.
        Task { [stopper] in
            _ = await thread.ended()
            stopper.finish()
        }
        let stopping = stopping
        await withTaskCancellationHandler {
            for await _ in stopping {}
        } onCancel: {
            stop()
        }
        let failure = await thread.shutdown()
        end()
        if let failure { throw failure }
    }

    package func stop() {
        stopper.finish()
    }

    private func begin(_ thread: PollThread<BusLoop>) {
        let refused = state.withLockedValue { state -> [BusCommand] in
            guard case .idle(let waiting) = state else { return [] }
            state = .running(thread)
            return waiting.filter { thread.send($0) != .accepted }
        }
        for command in refused { command.fail(Self.isClosed) }
    }

    private func end() {
        let waiting = state.withLockedValue { state -> [BusCommand] in
            defer { state = .ended }
            if case .idle(let waiting) = state { return waiting }
            return []
        }
        for command in waiting { command.fail(Self.isClosed) }
    }

    private static func failure(_ outcome: CommandOutcome) -> Failure? {
        switch outcome {
        case .accepted: nil
        case .full: Failure(.busy, "Too many commands are waiting for the bus’s thread.")
        case .closed: isClosed
        }
    }
}
