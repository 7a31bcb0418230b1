import BusKit
package import Logging
import PodcastModel
public import ProcessKit
public import ServiceLifecycle
import WireMessages

/// Runs an `OwnerMachine` on the bus, on the thread that has the sockets.
public final class OwnerService<Machine: OwnerMachine>: Service {
    private let loop: ServiceLoop<OwnerHandler<Machine>>

    /// A service that runs `machine`.
    /// - Parameter perform: does what only the shell can do. It must not block: it starts tasks or threads, which
    ///   report through the inputs.
    public init(
        _ machine: Machine, context: ServiceContext,
        perform: @escaping @Sendable (Machine.Action, ServiceInputs<Machine.Input>) -> Void
    ) {
        let observes = Machine.observes.isEmpty ? nil : TopicSelection(prefixes: Machine.observes)
        loop = ServiceLoop(context, observes: observes) { inputs in
            OwnerHandler(machine, context: context, inputs: inputs.machine(), perform: perform)
        }
    }

    /// Where the shell reports; also before `run()`.
    public var inputs: ServiceInputs<Machine.Input> { loop.inputs.machine() }

    /// Serves until graceful shutdown, which commits what the machine still wants to save, or until it is cancelled.
    /// - Throws: `fenced` when a newer process has taken over; why the stored records cannot be read.
    public func run() async throws {
        try await loop.run()
    }
}

/// What reaches an owner from outside the bus.
enum OwnerInput<Machine: OwnerMachine>: Sendable {
    case machine(Machine.Input)
    case answered(OwnerRuntime<Machine>.Purpose, Result<[UInt8], Failure>)
}

extension ServiceInputs {
    fileprivate func machine<Machine: OwnerMachine>() -> ServiceInputs<Machine.Input>
    where Input == OwnerInput<Machine> {
        ServiceInputs<Machine.Input> { self.send(.machine($0)) }
    }
}

/// Carries the runtime's decisions out.
struct OwnerHandler<Machine: OwnerMachine>: ServiceHandler {
    private var runtime: OwnerRuntime<Machine>
    private let context: ServiceContext
    private let inputs: ServiceInputs<Machine.Input>
    private let performer: @Sendable (Machine.Action, ServiceInputs<Machine.Input>) -> Void
    private var isReady = false

    init(
        _ machine: Machine, context: ServiceContext, inputs: ServiceInputs<Machine.Input>,
        perform: @escaping @Sendable (Machine.Action, ServiceInputs<Machine.Input>) -> Void
    ) {
        runtime = OwnerRuntime(machine, generation: context.generation, seed: .random(in: .min ... .max))
        self.context = context
        self.inputs = inputs
        performer = perform
    }

    var deadline: MonotonicTime? { runtime.deadline }

    mutating func handle(
        _ event: ServiceEvent<OwnerInput<Machine>>, now: Moment
    ) -> [ServiceEffect<OwnerInput<Machine>>] {
        runtime.handle(Self.event(event), now: now).compactMap { effect(of: $0) }
    }

    mutating func finish(now: Moment) -> [ServiceEffect<OwnerInput<Machine>>] {
        runtime.finish(now: now).compactMap { effect(of: $0) }
    }

    private static func event(_ event: ServiceEvent<OwnerInput<Machine>>) -> OwnerRuntime<Machine>.Event {
        switch event {
        case .started: .start
        case .began(let epoch): .began(epoch: epoch)
        case .command(let command): .command(command)
        case .status(let service, let ready): .status(service, ready: ready)
        case .update(let update): .update(update)
        case .rejected(let publication, let code): .rejected(publication, code: code)
        case .fenced(let failure): .fenced(failure)
        case .alarm: .alarm
        case .input(.machine(let input)): .input(input)
        case .input(.answered(let purpose, let result)): .answered(purpose, result)
        case .stopping: .stopping
        }
    }

    /// What it wants of the bus or, in the same order, of the process.
    private mutating func effect(of effect: OwnerRuntime<Machine>.Effect) -> ServiceEffect<OwnerInput<Machine>>? {
        switch effect {
        case .publish(let publications): return .publish(publications)
        case .reply(let ticket, let id, let result): return .reply(ticket, id, result)
        case .ask(let service, let payload, let id, let limit, let mayBeRepeat, let purpose):
            let asking = RequestTracker.Asking(
                id: id, service: service, payload: payload,
                deadline: limit.map { SystemClocks.monotonic().advanced(by: $0) }, mayBeRepeat: mayBeRepeat)
            return .ask(asking) { .answered(purpose, $0) }
        case .ready:
            if !isReady { context.notifyReady() }
            isReady = true
            return .ready
        case .stop(let failure): return .stop(failure)
        case .perform(let action): return .run { [performer, inputs] in performer(action, inputs) }
        case .log(let level, let text): context.logger.log(level: level.level, "\(text)")
        }
        return nil
    }
}

extension LogLevel {
    /// The same, as the logger calls it.
    package var level: Logger.Level {
        switch self {
        case .debug: .debug
        case .info: .info
        case .warning: .warning
        case .error: .error
        }
    }
}
