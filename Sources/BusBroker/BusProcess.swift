import BusKit
import Logging
import PodcastModel
import ServiceLifecycle
import UnixSignals

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The process `lockstep-bus`: finds its folders, serves, tells its supervisor, ends at SIGTERM or SIGINT.
public enum BusProcess {
    /// Serves until it is told to end.
    /// - Returns: the exit code after sysexits: 0 when it was asked to end, 75 when another bus serves or the disk is
    ///   full, 78 when its folders cannot be used, 70 when it failed.
    public static func run() async -> Int32 {
        ChildGuard.arm()
        let logger = Logger(label: "lockstep-bus") { StreamLogHandler.standardError(label: $0) }
        do {
            try await serve(logger)
            return 0
        } catch let failure as Failure {
            logger.error("\(failure.message)")
            return failure.known == .badConfiguration ? EX_CONFIG : EX_TEMPFAIL
        } catch {
            logger.error("The bus failed: \(error)")
            return EX_SOFTWARE
        }
    }

    private static func serve(_ logger: Logger) async throws {
        let home = try LockstepHome.current()
        try home.prepare()
        let notifier = ProcessNotifier()
        let bus = BusBroker(
            runDirectory: home.runDirectory, stateDirectory: home.stateDirectory, logger: logger,
            pulse: { notifier.watchdog() })
        try await bus.start()
        notifier.ready()
        let group = ServiceGroup(
            services: [bus], gracefulShutdownSignals: [.sigterm, .sigint], logger: logger)
        try await group.run()
        notifier.stopping()
    }
}
