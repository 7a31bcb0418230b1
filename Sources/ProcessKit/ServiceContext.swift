package import BusKit
package import Logging
package import PodcastModel

/// The environment in which a service starts.
package struct ServiceContext: Sendable {
    package var name: ServiceName
    /// The generation, which is larger than that of every earlier process of the same service.
    package var generation: UInt32
    package var home: LockstepHome
    package var logger: Logger
    /// The notifier of the process’s parent.
    package var notifier: ProcessNotifier
    package var environment: [String: String]
    /// Called when the service is ready for the first time; by default it notifies the parent.
    package var notifyReady: @Sendable () -> Void
    /// Called once a second from the service’s work loop, as long as the loop and the poll thread run.
    package var notifyAlive: @Sendable () -> Void

    package init(
        name: ServiceName, generation: UInt32, home: LockstepHome, logger: Logger,
        notifier: ProcessNotifier = ProcessNotifier(environment: [:]), environment: [String: String] = [:]
    ) {
        self.name = name
        self.generation = generation
        self.home = home
        self.logger = logger
        self.notifier = notifier
        self.environment = environment
        notifyReady = { notifier.ready() }
        notifyAlive = { notifier.watchdog() }
    }

    /// Creates the context of a service’s next process, whose generation is on disk when this returns. The bus has
    /// none: it uses epochs.
    package static func nextGeneration(
        of name: ServiceName, home: LockstepHome, logger: Logger,
        notifier: ProcessNotifier = ProcessNotifier(environment: [:]), environment: [String: String] = [:]
    ) throws(Failure) -> ServiceContext {
        let generation = name == .bus ? 0 : try generationFile(of: name, home).next(now: SystemClocks.wall())
        return ServiceContext(
            name: name, generation: generation, home: home, logger: logger, notifier: notifier,
            environment: environment)
    }

    /// Makes the generation of the service’s next process larger than `generation`.
    func recordGeneration(_ generation: UInt32) throws(Failure) {
        try Self.generationFile(of: name, home).record(generation)
    }

    private static func generationFile(of name: ServiceName, _ home: LockstepHome) -> GenerationFile {
        GenerationFile(path: home.stateFile("\(name.text).generation"))
    }
}
