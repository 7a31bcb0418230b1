import BusKit
package import Logging
import PodcastModel
package import ProcessKit
import ServiceLifecycle
import WireMessages

/// Runs an `OwnerMachine` on the bus, on the thread that owns the sockets.
package final class OwnerService<Machine: OwnerMachine>: Service {
    private let loop: ServiceLoop<OwnerRuntime<Machine>>

    /// - Parameter perform: performs the shell’s actions. It must not block, but start tasks or threads, which report
    ///   through the inputs.
    package init(
        _ machine: Machine, context: ServiceContext,
        perform: @escaping @Sendable (Machine.Action, ServiceInputs<Machine.Input>) -> Void
    ) {
        let prefixes = Machine.observes + (Machine.followsPodcasts ? [ForgottenPodcasts.prefix] : [])
        let observes = prefixes.isEmpty ? nil : TopicSelection(prefixes: prefixes)
        loop = ServiceLoop(context, observes: observes) { inputs in
            let inputs = inputs.machine()
            return OwnerRuntime(machine, generation: context.generation, seed: .random(in: .min ... .max)) {
                perform($0, inputs)
            }
        }
    }

    /// The inputs for the shell’s reports; usable before `run()`.
    package var inputs: ServiceInputs<Machine.Input> { loop.inputs.machine() }

    /// Serves until graceful shutdown, which commits the machine’s last changes, or until it is cancelled.
    /// - Throws: `fenced` if a newer process is registered, or the failure to read the stored records.
    package func run() async throws {
        try await loop.run()
    }
}

extension ServiceInputs {
    fileprivate func machine<Machine: OwnerMachine>() -> ServiceInputs<Machine.Input>
    where Input == OwnerRuntime<Machine>.Input {
        ServiceInputs<Machine.Input> { self.send(.machine($0)) }
    }
}

extension LogLevel {
    package var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .error }
}
