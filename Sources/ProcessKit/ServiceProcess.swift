import BusKit
import CProcess
import LibC
import Logging
package import PodcastModel
package import ServiceLifecycle
import UnixSignals
import ZeroMQ

/// Starts and ends every service’s process.
package enum ServiceProcess {
    /// Runs a service as this process, until SIGTERM or SIGINT ends it gracefully or it fails.
    ///
    /// It binds itself to the supervisor, holds the service’s lock and records its generation. When the service fails
    /// the process exits: 78 for a configuration or a database that needs manual repair, 70 for anything else.
    ///
    /// - Parameter returnsMemoryEarly: whether large blocks of freed memory are returned to the system at once, for a
    ///   service that needs much memory for short times only. Repeated use of such blocks becomes slower.
    package static func run(
        _ name: ServiceName, returnsMemoryEarly: Bool = false,
        _ make: @Sendable (ServiceContext) throws -> some Service
    ) async {
        umask(0o077)
        signal(SIGPIPE, SIG_IGN)
        if returnsMemoryEarly { lockstep_limit_free_memory() }
        ChildGuard.install()
        #if DEBUG
        HangInjection.install()
        #endif
        let environment = ProcessEnvironment.current
        let level = environment["LOCKSTEP_LOG_LEVEL"].flatMap(Logger.Level.init(rawValue:)) ?? .info
        LoggingSystem.bootstrap { _ in JSONLogHandler(service: name.text, level: level) }
        let logger = Logger(label: name.text)
        do {
            try await serve(name, environment, logger, make)
        } catch {
            let failure = error as? Failure
            logger.critical(
                "the service ends: \(failure?.message ?? "\(error)")",
                metadata: ["code": "\(failure?.code ?? FailureCode.internalError.rawValue)"])
            exit(exitCode(of: failure))
        }
    }

    static func exitCode(of failure: Failure?) -> Int32 {
        switch failure?.known {
        case .badConfiguration, .newerDatabase: 78
        default: 70
        }
    }

    private static func serve(
        _ name: ServiceName, _ environment: [String: String], _ logger: Logger,
        _ make: @Sendable (ServiceContext) throws -> some Service
    ) async throws {
        let home = try LockstepHome.current()
        try home.prepare()
        do {
            _ = try FileDescriptorLimit.raise()
        } catch {
            logger.warning("the limit of descriptors can’t be raised", metadata: ["why": "\(error)"])
        }
        // The bus has a lock and an epoch of its own.
        let lock = name == .bus ? nil : try await takeLock(home.runFile("\(name.text).lock"))
        let notifier = ProcessNotifier(environment: environment)
        let service = try make(
            .nextGeneration(of: name, home: home, logger: logger, notifier: notifier, environment: environment))
        var configuration = ServiceGroupConfiguration(
            services: [.init(service: service, successTerminationBehavior: .gracefullyShutdownGroup)],
            gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        configuration.maximumGracefulShutdownDuration = .seconds(20)
        try await ServiceGroup(configuration: configuration).run()
        notifier.stopping()
        withExtendedLifetime(lock) {}
    }

    /// Retries, because the lock of a process that was just killed may still be held.
    private static func takeLock(_ path: String) async throws -> FileLock {
        let backoff = Backoff.constant(.milliseconds(50), retries: 20)
        var failures = 0
        while true {
            do {
                return try FileLock(path)
            } catch {
                failures += 1
                guard error.known == .alreadyRunning, backoff.allowsRetry(after: failures) else { throw error }
                try await Task.sleep(for: backoff.wait(after: failures))
            }
        }
    }
}
