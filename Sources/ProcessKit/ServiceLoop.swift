package import BusKit
package import Logging
import NIOConcurrencyHelpers
package import PodcastModel
import ServiceLifecycle
package import WireMessages

/// An event of a service, on the bus or in its own shell.
package enum ServiceEvent<Input: Sendable>: Sendable {
    /// The first event.
    case started
    /// Any but `heartbeat`, which stays with the loop.
    case bus(BusEvent)
    /// A report of the service’s own shell.
    case input(Input)
    /// The process is to end: finish, then `stop`.
    case stopping
}

/// An effect of a service’s decision. Effects are performed in order.
package enum ServiceEffect<Input: Sendable>: Sendable {
    /// Publish; without a bus it is dropped, and what is retained must be put again after the next `epochBegan`.
    case publish([Publication])
    /// Answer a request, behind everything that was published before.
    case reply(ReplyTicket, RequestID, Result<[UInt8], Failure>)
    /// Ask another service; the answer comes as the input that the closure makes of it.
    case ask(OutgoingRequest, @Sendable (Result<[UInt8], Failure>) -> Input)
    /// Do something of the process’s own, in its turn.
    case run(@Sendable () -> Void)
    /// A line for the log.
    case log(Logger.Level, String)
    /// READY to the bus, and the first time to whoever started the process: what it retains has been published.
    case ready
    /// The service is over: nil as it was asked to, else why.
    case stop(Failure?)
}

/// Handles a service’s events on the thread that has its sockets, so that a request costs no change of thread.
///
/// It must not block: what takes time runs elsewhere and reports through the inputs.
package protocol ServiceHandler: SendableMetatype {
    /// The reports of the service’s own shell.
    associatedtype Input: Sendable

    /// When `BusEvent.timerFired` is due; nil: never. Read after each turn.
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

    /// Hands an input to the handler. From any thread; in order; never blocks.
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
    ///   - observes: the topics of which the handler gets `update`; nil: none.
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
                // The bus lets 256 requests be with a service: no more wait here.
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

    /// Serves until graceful shutdown, when the handler stops, or until it is cancelled. Once.
    /// - Throws: what the handler stopped with; `badConfiguration` when the bus’s sockets cannot be opened.
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
            // Otherwise the next process is fenced too while its clock is behind the registered generation.
            try context.recordGeneration(failure.fencingGeneration)
            throw failure
        }
    }

    /// Waits until the handler stops; the failure that stopped it.
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

        /// Handles what has arrived.
        /// - Returns: the commands for the bus; nil if nothing has arrived.
        mutating func turn() -> [BusCommand]? {
            guard !isOver else { return nil }
            // The publications of the last turn have been sent.
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

    /// Adds an event from the handler’s own thread, which takes it at the end of its turn.
    func enqueue(_ event: ServiceEvent<Input>) { _ = add(event) }

    /// Adds an event from elsewhere, and wakes the thread.
    func send(_ event: ServiceEvent<Input>) { add(event)?() }

    /// - Returns: the closure that wakes the thread, if it may not know that something waits.
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

    /// Nothing more is accepted or handed out.
    func close() {
        state.withLockedValue { state in
            state.isClosed = true
            state.waiting = []
        }
    }
}
