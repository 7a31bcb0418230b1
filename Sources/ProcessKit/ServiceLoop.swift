package import BusKit
package import Logging
import NIOConcurrencyHelpers
package import PodcastModel
import ServiceLifecycle
package import WireMessages

/// An event of a service, on the bus or in its own shell.
package enum ServiceEvent<Input: Sendable>: Sendable {
    /// The handler’s first event.
    case started
    /// Any bus event but `heartbeat`, which the loop handles.
    case bus(BusEvent)
    /// A report of the service’s own shell.
    case input(Input)
    /// The process must end: finish the work, then return `stop`.
    case stopping
}

/// An effect of a service’s decision. Effects are performed in order.
package enum ServiceEffect<Input: Sendable>: Sendable {
    /// Publishes. Without a bus the publications are dropped; after `epochBegan` retained values must be put again.
    case publish([Publication])
    /// Answers a request, after all earlier publications.
    case reply(ReplyTicket, RequestID, Result<[UInt8], Failure>)
    /// Sends a request to another service; the closure turns the answer into an input.
    case ask(OutgoingRequest, @Sendable (Result<[UInt8], Failure>) -> Input)
    /// Runs a closure of the process, in order with the other effects.
    case run(@Sendable () -> Void)
    /// Writes a line to the log.
    case log(Logger.Level, String)
    /// Reports to the bus, and the first time to the parent, that all retained values are published (READY).
    case ready
    /// Ends the service: nil if that was requested, otherwise the reason.
    case stop(Failure?)
}

/// Handles a service’s events on the thread that owns its sockets, so that a request needs no change of threads.
///
/// It must not block: long work runs elsewhere and reports through the inputs.
package protocol ServiceHandler: SendableMetatype {
    /// The reports of the service’s own shell.
    associatedtype Input: Sendable

    /// The time at which `BusEvent.timerFired` is due; nil means never. It is read after each turn.
    var deadline: MonotonicTime? { get }

    /// Handles an event.
    mutating func handle(_ event: ServiceEvent<Input>, now: Moment) -> [ServiceEffect<Input>]

    /// Returns the effects that `handle` has deferred.
    mutating func finish(now: Moment) -> [ServiceEffect<Input>]
}

extension ServiceHandler {
    package mutating func finish(now: Moment) -> [ServiceEffect<Input>] { [] }
}

/// Delivers the reports of a service’s shell to its handler.
package struct ServiceInputs<Input: Sendable>: Sendable {
    private let deliver: @Sendable (Input) -> Void

    package init(_ deliver: @escaping @Sendable (Input) -> Void) { self.deliver = deliver }

    /// Sends an input to the handler. Callable from any thread; keeps the order; never blocks.
    package func send(_ input: Input) { deliver(input) }
}

/// A service’s connection to the bus and its handler, on one thread.
package final class ServiceLoop<Handler: ServiceHandler>: Service {
    private let context: ServiceContext
    private let inbox: EventMailbox<Handler.Input>
    private let thread: BusThread
    private let ended: AsyncStream<Failure?>
    private let end: AsyncStream<Failure?>.Continuation

    /// - Parameters:
    ///   - observes: the topics whose updates the handler receives; nil if there is none.
    ///   - makeHandler: called once, on the service’s thread.
    package init(
        _ context: ServiceContext, observes: TopicSelection?,
        makeHandler: @escaping @Sendable (ServiceInputs<Handler.Input>) -> Handler
    ) {
        let inbox = EventMailbox<Handler.Input>()
        let (ended, end) = AsyncStream<Failure?>.makeStream()
        let thread = BusThread(
            BusConfiguration(
                runDirectory: context.home.runDirectory, origin: context.name.text, observes: observes,
                service: (context.name, context.generation), logger: context.logger),
            makeHandlerLoop: {
                let inputs = ServiceInputs { inbox.send(.input($0)) }
                var loop = HandlerLoop(handler: makeHandler(inputs), context: context, inbox: inbox, end: end)
                return { loop.turn() }
            },
            onEvent: { event in
                // The bus allows 256 requests in flight to a service, which bounds the requests here.
                if case .heartbeat = event { context.notifyAlive() } else { inbox.enqueue(.bus(event)) }
            })
        inbox.onArrival { [weak thread] in thread?.send(.wakeHandler) }
        inbox.enqueue(.started)
        self.context = context
        self.inbox = inbox
        self.thread = thread
        self.ended = ended
        self.end = end
    }

    /// The inputs of the shell; usable before `run()`.
    package var inputs: ServiceInputs<Handler.Input> { ServiceInputs { [inbox] in inbox.send(.input($0)) } }

    /// Serves until graceful shutdown, when the handler stops, or until it is cancelled. It may be called once.
    /// - Throws: the handler’s failure; `badConfiguration` if the bus’s sockets can’t be opened.
    package func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                defer { self.end.finish() }
                try await self.thread.run()
            }
            let failure = await withTaskCancellationHandler {
                await withGracefulShutdownHandler {
                    await self.waitForStop()
                } onGracefulShutdown: {
                    self.inbox.send(.stopping)
                }
            } onCancel: {
                self.end.finish()
            }
            inbox.close()
            await leave()
            thread.stop()
            try await group.waitForAll()
            guard let failure else { return }
            // Otherwise the next process is fenced, too, if its clock is behind the registered generation.
            try context.recordGeneration(failure.fencingGeneration)
            throw failure
        }
    }

    /// Waits until the handler stops; returns the failure that stopped it.
    private func waitForStop() async -> Failure? {
        for await failure in ended { return failure }
        return nil
    }

    private func leave() async {
        let deadline = SystemClocks.monotonic().advanced(by: .milliseconds(500))
        await withCheckedContinuation { continuation in
            thread.send(.leave(deadline: deadline) { continuation.resume() })
        }
    }

    private struct HandlerLoop {
        var handler: Handler
        let context: ServiceContext
        let inbox: EventMailbox<Handler.Input>
        let end: AsyncStream<Failure?>.Continuation
        var isReady = false
        var isOver = false

        /// Handles the events that have arrived.
        /// - Returns: the commands for the bus; nil if nothing has arrived.
        mutating func turn() -> [BusCommand]? {
            guard !isOver else { return nil }
            // The publications of the last turn were sent.
            let rest = handler.finish(now: SystemClocks.now())
            let events = inbox.removeAll()
            guard !events.isEmpty || !rest.isEmpty else { return nil }
            var commands: [BusCommand] = []
            for effect in rest { perform(effect, &commands) }
            for event in events where !isOver {
                for effect in handler.handle(event, now: SystemClocks.now()) { perform(effect, &commands) }
            }
            commands.append(.alarm(isOver ? nil : handler.deadline))
            return commands
        }

        private mutating func perform(_ effect: ServiceEffect<Handler.Input>, _ commands: inout [BusCommand]) {
            switch effect {
            case .publish(let publications): commands.append(.publish(publications) { _ in })
            case .reply(let ticket, let id, let result): commands.append(.reply(ticket, id, result))
            case .ask(let request, let input):
                commands.append(.ask(request) { [inbox] in inbox.enqueue(.input(input($0.map(\.payload)))) })
            case .run(let body): commands.append(.run(body))
            case .log(let level, let text): context.logger.log(level: level, "\(text)")
            case .ready:
                if !isReady { context.notifyReady() }
                isReady = true
                commands.append(.ready)
            case .stop(let failure):
                isOver = true
                end.yield(failure)
                end.finish()
            }
        }
    }
}

/// The events for a handler in order. Adding one never blocks; each producer has its own bound.
private final class EventMailbox<Input: Sendable>: Sendable {
    private struct State {
        var waiting: [ServiceEvent<Input>] = []
        var wake: @Sendable () -> Void = {}
        var isClosed = false
    }

    private let state = NIOLockedValueBox(State())

    /// Sets the closure that wakes the handler’s thread.
    func onArrival(_ wake: @escaping @Sendable () -> Void) { state.withLockedValue { $0.wake = wake } }

    /// Adds an event from the handler’s own thread, which handles it at the end of its turn.
    func enqueue(_ event: ServiceEvent<Input>) { _ = add(event) }

    /// Adds an event from another thread, and wakes the handler’s.
    func send(_ event: ServiceEvent<Input>) { add(event)?() }

    /// - Returns: the closure that wakes the thread; nil if the thread needn’t be woken.
    private func add(_ event: ServiceEvent<Input>) -> (@Sendable () -> Void)? {
        state.withLockedValue { state in
            guard !state.isClosed else { return nil }
            state.waiting.append(event)
            return state.waiting.count == 1 ? state.wake : nil
        }
    }

    func removeAll() -> [ServiceEvent<Input>] {
        state.withLockedValue { state in
            guard !state.waiting.isEmpty else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
    }

    /// Stops accepting and returning events.
    func close() {
        state.withLockedValue { state in
            state.isClosed = true
            state.waiting = []
        }
    }
}
