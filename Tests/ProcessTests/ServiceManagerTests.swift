import CProcess
import Foundation
import Testing

/// Tests the supervisor’s messages on systemd’s socket (`deploy/lockstep.service`, `Type=notify`).
@Suite(.serialized, .timeLimit(.minutes(5))) struct ServiceManagerTests {
    /// Collects datagrams until one contains `line`, and returns their lines and senders.
    private func lines(_ socket: Int32, until line: String) throws -> [(line: Substring, sender: Int32)] {
        var received: [(Substring, Int32)] = []
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let limit = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < limit {
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 1_000) > 0 else { continue }
            var sender: pid_t = 0
            let count = lockstep_receive_notification(socket, &buffer, buffer.count, &sender)
            guard count > 0 else { continue }
            received += String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map { ($0, sender) }
            if received.contains(where: { $0.0 == line }) { return received }
        }
        Issue.record("\(line) was not received, but \(received.map(\.0))")
        return received
    }

    @Test func `a service manager that reads late still receives STOPPING=1`() async throws {
        try await ProcessFleet.with(isUp: false) { fleet in
            let path = fleet.root + "/notify"
            let socket = lockstep_notification_socket(path)
            try #require(socket >= 0)
            defer { close(socket) }
            let process = Process()
            // `ExecStart` of the unit runs the same command.
            process.executableURL = URL(fileURLWithPath: ProcessFleet.binaries + "/lockstep")
            process.arguments = ["up"]
            process.environment = fleet.environment.merging(
                ["NOTIFY_SOCKET": path, "WATCHDOG_USEC": "30000000"]) { _, new in new }
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = FileHandle.nullDevice
            process.standardError = FileHandle.nullDevice
            let ended = AsyncStream<Void>.makeStream()
            process.terminationHandler = { _ in ended.continuation.finish() }
            try process.run()
            let pid = process.processIdentifier

            let start = try lines(socket, until: "READY=1")
            // NotifyAccess=main: only the main process’s messages count; services send theirs to the supervisor.
            #expect(start.allSatisfy { $0.sender == pid })
            #expect(try await fleet.services().values.allSatisfy { $0.state == "ready" })
            let first = ContinuousClock.now
            _ = try lines(socket, until: "WATCHDOG=1")
            _ = try lines(socket, until: "WATCHDOG=1")
            #expect(ContinuousClock.now - first < .seconds(15), "half of WatchdogSec at the most")

            kill(pid, SIGTERM)
            // The kernel queues only a few datagrams; heartbeats must not displace messages that are sent once.
            for await _ in ended.stream {}
            let end = try lines(socket, until: "STOPPING=1")
            #expect(end.allSatisfy { $0.sender == pid })
            #expect(process.terminationStatus == 0 && process.terminationReason == .exit)
            #expect(fleet.processes.isEmpty)
        }
    }
}
