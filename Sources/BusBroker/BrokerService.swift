import BusKit
package import PodcastModel
package import ProcessKit
import ServiceLifecycle

/// The bus in its own process: it uses the fleet’s folders and notifies its supervisor of readiness and liveness.
package struct BrokerService: Service {
    package static let name = ServiceName.bus

    private let context: ServiceContext
    private let bus: BusBroker

    package init(_ context: ServiceContext) {
        self.context = context
        bus = BusBroker(
            runDirectory: context.home.runDirectory, stateDirectory: context.home.stateDirectory,
            logger: context.logger, pulse: context.notifyAlive)
    }

    /// Serves until graceful shutdown or cancellation.
    /// - Throws: the errors of `BusBroker.start()`, and the error that ended its thread.
    package func run() async throws {
        try await bus.start()
        context.notifyReady()
        try await bus.run()
    }
}
