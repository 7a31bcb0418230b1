import BusKit
import CConnectionGuard
import LibC
package import Logging
import NIOConcurrencyHelpers
package import PodcastModel
import ProcessKit
import ServiceLifecycle
import ZeroMQ

/// A running bus with three sockets, a lock and an epoch in a directory.
///
/// `start()` returns when it serves, and `shutdown()` when its thread, sockets and lock are released. As a `Service` it
/// runs until graceful shutdown or until its thread fails.
package final class BusBroker: Service {
    private let runDirectory: String
    private let stateDirectory: String
    private let limits: BrokerLimits
    private let logger: Logger
    private let pulse: @Sendable () -> Void
    private let wallClock: @Sendable () -> Timestamp
    private let running = NIOLockedValueBox<Running?>(nil)

    /// A bus between `start()` and `shutdown()`.
    private struct Running: Sendable {
        let epoch: UInt64
        let thread: PollThread<BrokerShell>
        let endpoints: BusEndpoints
        let lock: FileLock
    }

    /// - Parameters:
    ///   - runDirectory: the folder of the sockets and the lock; created with mode 0700 if missing.
    ///   - stateDirectory: the folder of the epoch’s file; created likewise.
    ///   - wallClock: the clock for the epoch.
    ///   - pulse: called on the bus’s thread about once a second while it works.
    package init(
        runDirectory: String, stateDirectory: String, limits: BrokerLimits = BrokerLimits(), logger: Logger,
        wallClock: @escaping @Sendable () -> Timestamp = { SystemClocks.wall() },
        pulse: @escaping @Sendable () -> Void = {}
    ) {
        self.runDirectory = runDirectory
        self.stateDirectory = stateDirectory
        self.limits = limits
        self.logger = logger
        self.wallClock = wallClock
        self.pulse = pulse
    }

    /// The epoch of this run; nil before `start()` and after `shutdown()`.
    package var epoch: UInt64? { running.withLockedValue { $0?.epoch } }

    /// Locks the run directory, writes the epoch and binds the sockets. Returns when peers are served.
    /// - Throws: a `Failure`: `alreadyRunning`, `badConfiguration`, `diskFull`.
    package func start() async throws {
        let endpoints: BusEndpoints
        do { endpoints = try BusEndpoints(runDirectory: runDirectory) } catch {
            throw Failure(.badConfiguration, "The bus can’t use \(runDirectory): \(error).")
        }
        try LockstepHome.createFolder(runDirectory)
        try LockstepHome.createFolder(stateDirectory)
        let lock = try FileLock(runDirectory + "/bus.lock")
        let epoch = try EpochFile(path: stateDirectory + "/bus.epoch").next(now: wallClock())
        if let error = Self.prepareDescriptors() { logger.warning("\(error)") }
        let thread = try PollThread(name: "lockstep-bus") { [limits, logger, pulse] in
            BrokerShell(endpoints: endpoints, epoch: epoch, limits: limits, logger: logger, pulse: pulse)
        }
        do { try await thread.started() } catch {
            await thread.shutdown()
            throw Failure(.badConfiguration, "The bus can’t serve in \(runDirectory): \(error).")
        }
        running.withLockedValue { $0 = Running(epoch: epoch, thread: thread, endpoints: endpoints, lock: lock) }
        logger.info("The bus serves epoch \(epoch) in \(runDirectory).")
    }

    /// Ends the thread, closes the sockets and releases the lock. A second call does nothing.
    package func shutdown() async {
        let ended = running.withLockedValue { running in
            defer { running = nil }
            return running
        }
        guard let ended else { return }
        await ended.thread.shutdown()
        // The sockets’ files are removed while the lock is held.
        withExtendedLifetime(ended.lock) {
            for endpoint in ended.endpoints.all { try? endpoint.removeStaleFile() }
        }
    }

    /// Starts if necessary, and serves until graceful shutdown or cancellation.
    /// - Throws: the errors of `start()`, and the error that ended the thread.
    package func run() async throws {
        if epoch == nil { try await start() }
        guard let thread = running.withLockedValue({ $0?.thread }) else { return }
        let failure = await withGracefulShutdownHandler {
            await withTaskCancellationHandler {
                await thread.ended()
            } onCancel: {
                thread.requestShutdown()
            }
        } onGracefulShutdown: {
            thread.requestShutdown()
        }
        await shutdown()
        if let failure { throw failure }
    }

    private static func prepareDescriptors() -> String? {
        do throws(ZeroMQError) {
            let limit = try FileDescriptorLimit.raise()
            _ = lockstep_guard_start(Int32(DescriptorWatch.reserve(of: limit)), ChildGuard.supervisor() ?? 0)
            return nil
        } catch {
            return "can’t raise the limit of open files: \(error)"
        }
    }
}
