import BusKit
import Foundation
import LockstepClient
import PodcastModel
import Testing
import WireMessages

/// Tests the supervisor’s alerts on the stream, with real programs.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SupervisorAlertTests {
    private struct AlertLine: Decodable {
        var id: String
        var code: String
        var owner: String
        var severity: String
        var actions: [String]
    }

    private static func alerts(_ fleet: ProcessFleet) async throws -> [AlertLine] {
        try await fleet.decode([AlertLine].self, from: "alerts")
    }

    /// While another process holds its lock, the service can’t start; once that is released, `retry` starts it.
    @Test func `a service that doesn’t start has an alert until it is ready again`() async throws {
        try await ProcessFleet.with { fleet in
            try await FleetObserver.with(1, of: fleet) { observers in
                let observer = observers[0]
                try await observer.untilReady()
                let supervisor = try #require(fleet.pid("supervisor"))
                kill(supervisor, SIGSTOP)
                fleet.signal("feeds", SIGKILL)
                var lock: FileLock?
                let limit = ContinuousClock.now + .seconds(60)
                while lock == nil, ContinuousClock.now < limit {
                    lock = try? FileLock(fleet.home.runFile("feeds.lock"))
                }
                kill(supervisor, SIGCONT)
                try #require(lock != nil)
                try await observer.until("an alert") { !$0.alerts.isEmpty }
                let alert = try #require(try await Self.alerts(fleet).first)
                #expect(alert.code == "serviceFailed" && alert.owner == "supervisor" && alert.severity == "error")
                #expect(alert.actions == ["retry", "dismiss"])
                let doctor = try await fleet.lockstep(["doctor"])
                #expect(doctor.status == 69 && doctor.output.contains("feeds"))

                lock = nil
                try await fleet.succeed("alerts", "answer", alert.id, "retry")
                try await observer.until("the service and no alert") { view in
                    view.alerts.isEmpty && view.services[.feeds]?.state == .ready
                }
                #expect(try await Self.alerts(fleet).isEmpty)
            }
        }
    }
}
