import BusKit
package import PodcastModel
package import ProcessKit
import ServiceLifecycle

/// The bus as a process runs it: in the fleet's folders, telling its supervisor when it serves and that it lives.
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
    /// - Throws: what `BusBroker.start()` throws, and the error that ended its thread.
    package func run() async throws {
        try await bus.start()
        context.notifyReady()
        try await bus.run()
    }
}
