import OwnerKit
package import ProcessKit
import ServiceLifecycle

/// Runs the queue's machine in a process.
package struct QueueShell: ServiceLifecycle.Service {
    private let service: OwnerService<QueueMachine>

    /// A queue in the context of this process.
    package init(_ context: ServiceContext) {
        // It has no hardware: there is no action to perform.
        service = OwnerService(QueueMachine(), context: context) { _, _ in }
    }

    /// Serves until the process is asked to stop.
    package func run() async throws {
        try await service.run()
    }
}
