import OwnerKit
package import ProcessKit
import ServiceLifecycle

/// Runs the queue’s machine in a process.
package struct QueueShell: ServiceLifecycle.Service {
    private let service: OwnerService<QueueMachine>

    package init(_ context: ServiceContext) {
        // The machine has no actions.
        service = OwnerService(QueueMachine(), context: context) { _, _ in }
    }

    package func run() async throws {
        try await service.run()
    }
}
