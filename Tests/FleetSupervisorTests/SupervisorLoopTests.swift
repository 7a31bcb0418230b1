import BusKit
import LibC
import PodcastModel
import SupervisorControl
import Testing

@testable import FleetSupervisor

/// Tests a real supervisor with real processes, one fleet at a time.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SupervisorLoopTests {
    let fleet: FakeFleet

    init() throws { fleet = try FakeFleet() }

    /// Runs the body with a running fleet, and removes its files and processes afterwards.
    private func withFleet(_ configuration: SupervisorConfiguration? = nil, _ body: () throws -> Void) throws {
        defer { fleet.end() }
        try fleet.start(configuration)
        try body()
    }

    @Test func `the fleet starts and stops`() throws {
        try withFleet {
            try fleet.client.ready()
            let reports = try fleet.client.ps()
            #expect(
                reports.map(\.name) == ["bus", "persistence", "playback", "queue", "feeds", "downloads", "supervisor"])
            #expect(reports.allSatisfy { $0.state == "ready" && $0.pid != nil && ($0.pss ?? 0) > 0 })
            let pids = reports.dropLast().compactMap(\.pid)
            try fleet.client.down()
            #expect(pids.allSatisfy { kill($0, 0) != 0 })
            #expect(!FileLock.isHeld(fleet.home.fleetLock))
            #expect(throws: FleetPresence.noFleet) { try fleet.client.ps() }
        }
    }

    @Test(arguments: [SIGKILL, SIGSEGV])
    func `a killed service is restarted and the others keep running`(_ signal: Int32) throws {
        try withFleet {
            try fleet.client.ready()
            let before = try fleet.client.ps()
            eventually("it has settled") { (fleet.report("queue")?.uptime ?? 0) > 1.2 }
            let pid = try #require(before.first { $0.name == "queue" }?.pid)
            kill(pid, signal)
            eventually("queue is ready again") {
                fleet.report("queue")?.restarts == 1 && fleet.report("queue")?.state == "ready"
            }
            let after = try fleet.client.ps()
            #expect(after.filter { $0.name != "queue" }.map(\.pid) == before.filter { $0.name != "queue" }.map(\.pid))
            let reports = CrashReports(fleet.home).all()
            #expect(reports.count == (signal == SIGSEGV ? 1 : 0))
            #expect(after.first { $0.name == "queue" }?.crashReport == reports.first?.path)
        }
    }

    @Test func `a hung service leaves a report and is killed`() throws {
        var configuration = fleet.configuration
        configuration.limits.late = .milliseconds(600)
        configuration.limits.hung = .milliseconds(1_500)
        fleet.setMode("feeds", "silent")
        try withFleet(configuration) {
            eventually("feeds is ready") { fleet.report("feeds")?.state == "ready" }
            let pid = try #require(fleet.report("feeds")?.pid)
            fleet.setMode("feeds", "")
            eventually("feeds was started again") { (fleet.report("feeds")?.restarts ?? 0) >= 1 }
            #expect(kill(pid, 0) != 0)
            #expect(fleet.report("feeds")?.lastEnd?.contains("no liveness report") == true)
            #expect(CrashReports(fleet.home).all().contains { $0.service == "feeds" && $0.pid == pid })
        }
    }

    @Test func `a process stopped by a signal is killed as hung`() throws {
        var configuration = fleet.configuration
        configuration.limits.hung = .milliseconds(1_500)
        try withFleet(configuration) {
            try fleet.client.ready()
            let pid = try #require(fleet.report("queue")?.pid)
            kill(pid, SIGSTOP)
            eventually("queue was started again") { (fleet.report("queue")?.restarts ?? 0) >= 1 }
            #expect(kill(pid, 0) != 0)
        }
    }

    @Test func `a service that can’t start is reported with the reason`() throws {
        fleet.setMode("queue", "exit 78")
        try withFleet {
            let failure = #expect(throws: Failure.self) { try fleet.client.ready() }
            #expect(failure?.message.contains("queue doesn’t start: exited with 78") == true)
            #expect(fleet.report("queue")?.state == "failed")
            #expect((fleet.report("queue")?.nextTry ?? 0) > 200)
            fleet.setMode("queue", "")
            _ = try fleet.client.resetFailed("queue")
            try fleet.client.ready()
        }
    }

    @Test func `a missing program is reported by name`() throws {
        unlink(fleet.programs + "/lockstep-playback")
        try withFleet {
            let failure = #expect(throws: Failure.self) { try fleet.client.ready() }
            #expect(failure?.message.contains("is missing") == true)
            eventually("the queue runs without it") { fleet.report("queue")?.state == "ready" }
        }
    }

    @Test func `a process that doesn’t stop is killed`() throws {
        fleet.setMode("queue", "stubborn")
        try withFleet {
            try fleet.client.ready()
            let pid = try #require(fleet.report("queue")?.pid)
            try fleet.client.down()
            #expect(kill(pid, 0) != 0)
        }
    }

    @Test func `the processes that a service started end with it`() throws {
        fleet.setMode("feeds", "parent")
        try withFleet {
            try fleet.client.ready()
            let pid = try #require(fleet.report("feeds")?.pid)
            #expect(kill(-pid, 0) == 0)
            kill(pid, SIGKILL)
            eventually("its process group is gone") { kill(-pid, 0) != 0 }
        }
    }

    @Test func `a restart of a service replaces its process`() throws {
        try withFleet {
            try fleet.client.ready()
            let pid = try #require(fleet.report("playback")?.pid)
            #expect(try fleet.client.restart("playback") == "playback is being restarted.")
            eventually("another process") { (fleet.report("playback")?.pid).map { $0 != pid } ?? false }
            try fleet.client.ready()
            #expect(throws: Failure.self) { try fleet.client.restart("nobody") }
        }
    }

    @Test func `logs contain every line as JSON, truncated at the limit`() throws {
        fleet.setMode("feeds", "chatty")
        try withFleet {
            try fleet.client.ready()
            eventually("the long line is written") {
                LogReader(fleet.home).last(10, of: "feeds").contains { $0.utf8.count > 65_000 }
            }
            let lines = LogReader(fleet.home).last(10, of: "feeds")
            #expect(lines.contains(#"{"message":"json of feeds"}"#))
            #expect(lines.contains { $0.contains(#""message":"feeds begins""#) })
            #expect(lines.allSatisfy { $0.utf8.count < 66_000 })
            eventually("the queue’s line is written") {
                LogReader(fleet.home).last(10, of: "queue").contains { $0.contains("json of queue") }
            }
            var seen: [String] = []
            try fleet.client.logs(of: "queue", lines: 10, follow: false) { lines in
                seen += lines
                return true
            }
            #expect(seen.contains(#"{"message":"json of queue"}"#))
        }
    }

    @Test func `a second supervisor is refused`() throws {
        try withFleet {
            try fleet.client.ready()
            let failure = #expect(throws: Failure.self) { _ = try SupervisorLoop(fleet.configuration) }
            #expect(failure?.known == .alreadyRunning)
            try fleet.client.ready()
        }
    }

    @Test func `processes left by an earlier supervisor are killed`() throws {
        let program = fleet.programs + "/lockstep-bus"
        let child = try #require(ChildProcess(path: program, environment: fleet.environment))
        Survivors(home: fleet.home).record("bus", pid: child.pid)
        try withFleet {
            try fleet.client.ready()
            #expect(child.end() == .signalled(SIGKILL))
            child.release()
        }
    }

    @Test func `a process ID that now belongs to another process isn’t killed`() throws {
        defer { fleet.end() }
        try SmallFile.replaceWhole(fleet.home.runFile("bus.pid"), with: "\(getpid()) 12345\n")
        #expect(Survivors(home: fleet.home).find(FleetPlan.default.services).isEmpty)
    }

    @Test func `clients fail at once if no fleet is running`() throws {
        defer { fleet.end() }
        let start = SystemClocks.monotonic()
        #expect(throws: FleetPresence.noFleet) { try fleet.client.ps() }
        #expect(SystemClocks.monotonic().since(start) < .milliseconds(100))
    }
}
