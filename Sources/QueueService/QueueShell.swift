import OwnerKit
package import ProcessKit
import ServiceLifecycle

/// Runs the queue’s machine in a process.
package struct QueueShell: ServiceLifecycle.Service {
    private let service: OwnerService<QueueMachine>

    package init(_ context: ServiceContext) {
        // The queue has no hardware, so there is no action to perform.
        service = OwnerService(QueueMachine(), context: context) { _, _ in }
    }

    package func run() async throws {
        try await service.run()
    }
}
