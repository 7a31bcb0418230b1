import Logging
import NIOConcurrencyHelpers
import PodcastModel
public import ServiceLifecycle
import WireMessages

/// Where a service's shell reports what happened outside the machine.
public struct OwnerInputs<Input: Sendable>: Sendable {
    private let deliver: @Sendable (Input) -> Void

    /// Inputs that go to `deliver`.
    public init(_ deliver: @escaping @Sendable (Input) -> Void) {
        self.deliver = deliver
    }

    /// Hands an input to the machine. From any thread; in order; never blocks.
    public func send(_ input: Input) {
        deliver(input)
    }
}

/// Runs an `OwnerMachine` on the bus: one task, one loop, one poll thread.
public final class OwnerService<Machine: OwnerMachine>: Service {
    private enum Item: Sendable {
        case event(OwnerRuntime<Machine>.Event)
        case updates
        case pulse
    }

    private let machine: Machine
    private let context: ServiceContext
    private let performer: @Sendable (Machine.Action, OwnerInputs<Machine.Input>) -> Void
    private let inbox = Inbox<Item>()

    /// A service that runs `machine`.
    /// - Parameter perform: does what only the shell can do. It must not block: it starts tasks or threads, which
    ///   report through the inputs.
    public init(
        _ machine: Machine, context: ServiceContext,
        perform: @escaping @Sendable (Machine.Action, OwnerInputs<Machine.Input>) -> Void
    ) {
        self.machine = machine
        self.context = context
        performer = perform
    }

    /// Where the shell reports; also before `run()`.
    public var inputs: OwnerInputs<Machine.Input> {
        OwnerInputs { [inbox] in inbox.send(.event(.input($0))) }
    }

    /// Serves until graceful shutdown, which commits what the machine still wants to save, or until it is cancelled.
    /// - Throws: `fenced` when a newer process has taken over; why the stored records cannot be read.
    public func run() async throws {
        let inbox = inbox
        let feed = UpdateFeed(notify: { inbox.send(.updates) })
        let thread = BusThread(
            BusConfiguration(
                runDirectory: context.runDirectory, origin: context.name.text, observesStream: true,
                service: (context.name, context.generation), logger: context.logger), hooks: hooks())
        thread.send(.follow(feed))
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                // Without its thread the loop has nothing to wait for.
                defer { inbox.close() }
                try await thread.run()
            }
            let failure = await withTaskCancellationHandler {
                await withGracefulShutdownHandler {
                    await self.serve(thread, feed)
                } onGracefulShutdown: {
                    inbox.send(.event(.stopping))
                }
            } onCancel: {
                inbox.close()
            }
            await Self.leave(thread)
            inbox.close()
            thread.stop()
            try await group.waitForAll()
            if let failure { throw failure }
        }
    }

    private func hooks() -> BusHooks {
        let inbox = inbox
        var hooks = BusHooks()
        hooks.began = { inbox.send(.event(.began(epoch: $0))) }
        // The bus lets 256 requests be with a service; so many wait here at most.
        hooks.command = {
            inbox.send(.event(.command($0)))
            return true
        }
        hooks.rejected = { inbox.send(.event(.rejected($0, code: $1))) }
        hooks.fenced = { inbox.send(.event(.fenced)) }
        hooks.alarm = { inbox.send(.event(.alarm)) }
        hooks.pulse = { inbox.send(.pulse) }
        return hooks
    }

    /// The loop. Why it ended; nil as it was asked to.
    private func serve(_ thread: BusThread, _ feed: UpdateFeed) async -> Failure? {
        var runtime = OwnerRuntime(machine, generation: context.generation, seed: .random(in: .min ... .max))
        var state = LoopState()
        perform(runtime.handle(.start, now: SystemClocks.now()), thread, &state)
        while !state.isOver {
            let items = await inbox.take()
            if items.isEmpty { break }
            for item in items where !state.isOver {
                switch item {
                case .event(let event): perform(runtime.handle(event, now: SystemClocks.now()), thread, &state)
                case .updates:
                    for update in feed.takeAll() {
                        perform(runtime.handle(.update(update), now: SystemClocks.now()), thread, &state)
                    }
                case .pulse: context.notifyAlive()
                }
            }
            if runtime.deadline != state.alarm {
                state.alarm = runtime.deadline
                thread.send(.alarm(state.alarm))
            }
        }
        return state.failure
    }

    private struct LoopState {
        var alarm: MonotonicTime?
        var isReady = false
        var isOver = false
        var failure: Failure?
    }

    private func perform(
        _ effects: [OwnerRuntime<Machine>.Effect], _ thread: BusThread, _ state: inout LoopState
    ) {
        for effect in effects {
            switch effect {
            case .publish(let publications): thread.send(.publish(publications) { _ in })
            case .reply(let ticket, let id, let result): thread.send(.reply(ticket, id, result))
            case .ask(let service, let payload, let id, let limit, let mayBeRepeat, let purpose):
                let inbox = inbox
                let asking = RequestTracker.Asking(
                    id: id, service: service, payload: payload,
                    deadline: limit.map { SystemClocks.monotonic().advanced(by: $0) }, mayBeRepeat: mayBeRepeat)
                thread.send(.ask(asking) { inbox.send(.event(.answered(purpose, $0.map(\.payload)))) })
            case .ready:
                thread.send(.ready)
                if !state.isReady { context.notifyReady() }
                state.isReady = true
            case .perform(let action): performer(action, inputs)
            case .log(let level, let text): log(level, text)
            case .stop(let failure):
                state.isOver = true
                state.failure = failure
            }
        }
        // A time that has passed and been used must be set anew even if it is the same.
        if let alarm = state.alarm, alarm <= SystemClocks.monotonic() { state.alarm = nil }
    }

    private func log(_ level: LogLevel, _ text: String) {
        let logLevel: Logger.Level =
            switch level {
            case .debug: .debug
            case .info: .info
            case .warning: .warning
            case .error: .error
            }
        context.logger.log(level: logLevel, "\(text)")
    }

    private static func leave(_ thread: BusThread) async {
        let deadline = SystemClocks.monotonic().advanced(by: .milliseconds(500))
        await withCheckedContinuation { continuation in
            thread.send(.leave(deadline: deadline) { continuation.resume() })
        }
    }
}
