package import BusBroker
package import BusKit
import LibC
package import Logging
import NIOConcurrencyHelpers
package import PodcastModel
package import ProcessKit
package import ServiceLifecycle
import WireMessages

/// A home for one test, which is removed with it.
package final class TemporaryHome: Sendable {
    private let folder: TemporaryFolder
    /// The path of the home’s folder.
    package var path: String { folder.path }
    /// The fleet’s folders below it, which exist.
    package let home: LockstepHome

    /// Removes the folder before the home is deinitialised.
    package func remove() { folder.remove() }

    /// Creates a new, empty home.
    package init() throws {
        folder = try TemporaryFolder()
        home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": folder.path], userID: geteuid(), workingDirectory: "/"
        ) { _ in false }
        try home.prepare()
    }
}

/// A bus in this process, in a temporary home, that a test may stop and start again.
package final class TestFleet: Sendable {
    /// The fleet’s folders.
    package let home: LockstepHome
    /// The logger, which logs nothing below `critical`.
    package let logger: Logger

    private let temporary: TemporaryHome
    private let limits: BrokerLimits
    private let bus = NIOLockedValueBox<BusBroker?>(nil)

    /// Creates a fleet without a running bus.
    package init(limits: BrokerLimits = BrokerLimits()) throws {
        temporary = try TemporaryHome()
        home = temporary.home
        self.limits = limits
        var logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        self.logger = logger
    }

    /// Runs `body` with a bus, which is stopped afterwards.
    package static func with<Result: Sendable>(
        _ body: (TestFleet) async throws -> Result
    ) async throws -> Result {
        let fleet = try TestFleet()
        // A cancelled task may still hold the fleet when the process of the tests exits.
        defer { fleet.temporary.remove() }
        try await fleet.startBus()
        do {
            let result = try await body(fleet)
            await fleet.stopBus()
            return result
        } catch {
            await fleet.stopBus()
            throw error
        }
    }

    /// Starts the bus; a later one has a larger epoch.
    package func startBus() async throws {
        let broker = BusBroker(
            runDirectory: home.runDirectory, stateDirectory: home.stateDirectory, limits: limits, logger: logger)
        try await broker.start()
        bus.withLockedValue { $0 = broker }
    }

    /// Stops the bus; does nothing if there is none.
    package func stopBus() async {
        let broker = bus.withLockedValue { bus in
            defer { bus = nil }
            return bus
        }
        await broker?.shutdown()
    }

    /// Stops the bus and starts a new one without its state.
    package func restartBus() async throws {
        await stopBus()
        try await startBus()
    }

    /// Returns a service’s context with `generation`.
    package func context(_ name: ServiceName, generation: UInt32 = 1) -> ServiceContext {
        ServiceContext(name: name, generation: generation, home: home, logger: logger)
    }

    /// Runs `body` with a client of the bus.
    package func withClient<Result: Sendable>(
        observes: TopicSelection? = .all, _ body: @Sendable (BusClient) async throws -> Result
    ) async throws -> Result {
        try await BusClient.with(
            runDirectory: home.runDirectory, origin: "test", observes: observes, logger: logger, body)
    }

    /// Runs services for the duration of `body`; then shuts them down gracefully.
    package func withServices<Result: Sendable>(
        _ services: [any Service], _ body: @Sendable () async throws -> Result
    ) async throws -> Result {
        let group = ServiceGroup(
            configuration: ServiceGroupConfiguration(
                services: services.map {
                    .init(service: $0, successTerminationBehavior: .ignore, failureTerminationBehavior: .ignore)
                }, logger: logger))
        return try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            let result: Result
            do {
                result = try await body()
            } catch {
                await group.triggerGracefulShutdown()
                try? await tasks.waitForAll()
                throw error
            }
            await group.triggerGracefulShutdown()
            try await tasks.waitForAll()
            return result
        }
    }
}
