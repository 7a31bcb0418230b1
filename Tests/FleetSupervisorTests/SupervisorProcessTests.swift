import BusKit
import LibC
import NIOConcurrencyHelpers
import PodcastModel
import SupervisorControl
import Testing

@testable import FleetSupervisor

/// Tests the executable `lockstep-supervisor` with programs that simulate the services.
@Suite(.serialized, .timeLimit(.minutes(5))) struct SupervisorProcessTests {
    let fleet: FakeFleet

    init() throws {
        fleet = try FakeFleet()
        symlink(
            SupervisorLauncher.programDirectory([:]) + "/lockstep-supervisor",
            fleet.programs + "/lockstep-supervisor")
    }

    private var launcher: SupervisorLauncher {
        SupervisorLauncher(home: fleet.home, environment: fleet.environment)
    }

    private func isGone(_ pid: Int32) -> Bool {
        let text = SmallFile.text(of: "/proc/\(pid)/stat")
        return text.isEmpty || text.contains(") Z ")
    }

    @Test func `killing the supervisor leaves no process, and the fleet can be started again`() throws {
        defer { fleet.end() }
        #expect(try launcher.startDetached() == .started)
        let reports = try fleet.client.ps()
        let supervisor = try #require(reports.last?.pid)
        let pids = reports.dropLast().compactMap(\.pid)
        #expect(pids.count == 6)
        let start = SystemClocks.monotonic()
        kill(supervisor, SIGKILL)
        // The guarantee is 100 ms; a busy machine needs more.
        eventually("all are gone: \(pids)", within: .seconds(2)) { pids.allSatisfy(isGone) }
        print("gone after \(SystemClocks.monotonic().since(start))")
        #expect(try launcher.startDetached() == .started)
        #expect(try launcher.startDetached() == .alreadyRunning)
    }

    @Test func `a supervisor that starts while another one is ending replaces it`() throws {
        defer { fleet.end() }
        try fleet.home.prepare()
        let outcome = NIOLockedValueBox<Result<SupervisorLauncher.Outcome, Failure>?>(nil)
        let launcher = launcher
        // A killed process holds its lock until all of its threads have ended.
        var lock: FileLock? = try FileLock(fleet.home.fleetLock)
        onThread {
            let result: Result<SupervisorLauncher.Outcome, Failure>
            do { result = .success(try launcher.startDetached()) } catch {
                result = .failure(error as? Failure ?? Failure(.internalError, "\(error)"))
            }
            outcome.withLockedValue { $0 = result }
        }
        _ = poll(nil, 0, 100)
        #expect(outcome.withLockedValue { $0 } == nil && lock != nil)
        lock = nil
        eventually("it has started one") { outcome.withLockedValue { $0 } != nil }
        #expect(outcome.withLockedValue { $0 } == .success(.started))
    }

    @Test func `a fleet of an earlier version keeps running, and another isn’t started beside it`() throws {
        defer { fleet.end() }
        try fleet.home.prepare()
        let lock = try FileLock(fleet.home.runFile("supervisor.lock"))
        let failure = #expect(throws: Failure.self) { try launcher.startDetached() }
        #expect(failure?.known == .alreadyRunning && failure?.message.contains("earlier version") == true)
        #expect(throws: Failure.self) { _ = try SupervisorLoop(fleet.configuration) }
        withExtendedLifetime(lock) {}
    }

    @Test func `of twenty simultaneous starts one starts a fleet and all connect to it`() throws {
        defer { fleet.end() }
        let outcomes = NIOLockedValueBox<[Result<SupervisorLauncher.Outcome, Failure>]>([])
        let launcher = launcher
        for _ in 0..<20 {
            onThread {
                let outcome: Result<SupervisorLauncher.Outcome, Failure>
                do { outcome = .success(try launcher.startDetached()) } catch {
                    outcome = .failure(error as? Failure ?? Failure(.internalError, "\(error)"))
                }
                outcomes.withLockedValue { $0.append(outcome) }
            }
        }
        eventually("all twenty have an answer") { outcomes.withLockedValue { $0.count } == 20 }
        let all = outcomes.withLockedValue { $0 }
        #expect(all.count { $0 == .success(.started) } == 1, "\(all)")
        #expect(all.count { $0 == .success(.alreadyRunning) } == 19, "\(all)")
        let supervisor = try #require(try fleet.client.ps().last?.pid)
        kill(supervisor, SIGTERM)
        eventually("a signal stops it in order") { !FileLock.isHeld(fleet.home.fleetLock) }
    }

    @Test func `remaining processes of a fleet with another run directory are found`() throws {
        defer { fleet.end() }
        try fleet.home.prepare()
        let other = try LockstepHome(
            environment: ["LOCKSTEP_HOME": fleet.folder + "/other"], userID: geteuid(), workingDirectory: "/",
            directoryExists: { _ in false })
        let services = FleetPlan.default.services
        Survivors(home: fleet.home).record(services[0].name, pid: getpid())
        #expect(Survivors(home: other).find(services).isEmpty)
        let found = Survivors(home: other, earlierRunDirectory: fleet.home.runDirectory).find(services)
        #expect(found == [getpid()])
        Survivors(home: fleet.home).forget(services[0].name)
    }

    @Test func `a path too long for a socket is refused with the reason`() throws {
        defer { fleet.end() }
        let home = try LockstepHome(
            environment: ["LOCKSTEP_HOME": fleet.folder + "/" + String(repeating: "x", count: 110)], userID: 0,
            workingDirectory: "/", directoryExists: { _ in false })
        let failure = #expect(throws: Failure.self) {
            try SupervisorLauncher(home: home, environment: fleet.environment).startDetached()
        }
        #expect(failure?.known == .badConfiguration)
    }
}

/// Runs the body on its own thread.
private func onThread(_ body: @escaping @Sendable () -> Void) {
    final class Work: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    var thread = pthread_t()
    _ = pthread_create(
        &thread, nil,
        { pointer in
            guard let pointer else { return nil }
            Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().body()
            return nil
        }, Unmanaged.passRetained(Work(body)).toOpaque())
    pthread_detach(thread)
}
