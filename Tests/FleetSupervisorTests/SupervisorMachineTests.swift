import PodcastModel
import SupervisorControl
import Testing

@testable import FleetSupervisor

/// A machine, its clock, and its running processes.
private struct Bench {
    var machine = SupervisorMachine(.default, seed: 7)
    var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
    var nextPid: Int32 = 100
    var effects: [SupervisorEffect] = []
    /// The number of times that a service was started while its process was running.
    var doubleStarts = 0

    /// Sends the event, and answers every spawn.
    @discardableResult
    mutating func send(_ event: SupervisorEvent) -> [SupervisorEffect] {
        var new = machine.handle(event, now: now)
        var index = 0
        while index < new.count {
            if case .spawn(let name) = new[index] {
                if machine.service(name)?.pid != nil { doubleStarts += 1 }
                nextPid += 1
                new += machine.handle(.spawned(name, pid: nextPid), now: now)
            }
            index += 1
        }
        effects += new
        return new
    }

    /// Advances in steps of at most a second, as the loop does, with heartbeats of all services but `silent`.
    @discardableResult
    mutating func pass(_ duration: Duration, silent: Set<String> = [], watched: Bool = true) -> [SupervisorEffect] {
        let end = now.advanced(by: duration)
        var new: [SupervisorEffect] = []
        while now < end {
            now = min(end, now.advanced(by: .milliseconds(500)))
            if watched {
                for service in machine.services where service.serves && !silent.contains(service.plan.name) {
                    new += send(.alive(service.plan.name))
                }
            }
            new += send(.tick)
        }
        return new
    }

    mutating func startAll() {
        send(.start)
        for service in machine.services { send(.ready(service.plan.name)) }
    }

    mutating func fail(_ name: String) {
        if machine.service(name)?.pid == nil, let due = machine.service(name)?.nextTry {
            now = due
            for service in machine.services where service.serves { send(.alive(service.plan.name)) }
            send(.tick)
        }
        send(.ended(name, .exited(1)))
    }

    func condition(_ name: String) -> ServiceCondition? { machine.service(name)?.condition }
}

private func spawns(_ effects: [SupervisorEffect]) -> [String] {
    effects.compactMap { if case .spawn(let name) = $0 { name } else { nil } }
}

/// A change of an alert’s cause.
private struct Concern: Equatable {
    var service: String
    var concern: FleetConcern?

    init(_ service: String, _ concern: FleetConcern?) {
        self.service = service
        self.concern = concern
    }
}

private func concerns(_ effects: [SupervisorEffect]) -> [Concern] {
    effects.compactMap { if case .concern(let name, let concern) = $0 { Concern(name, concern) } else { nil } }
}

/// The levels of the log lines.
private func levels(_ effects: [SupervisorEffect]) -> [LogRecord.Level] {
    effects.compactMap { if case .log(_, let level) = $0 { level } else { nil } }
}

private func terminations(_ effects: [SupervisorEffect]) -> [String] {
    effects.compactMap { if case .terminate(let name) = $0 { name } else { nil } }
}

@Suite struct SupervisorMachineTests {
    @Test func `each service starts when the services that it requires are ready`() {
        var bench = Bench()
        #expect(spawns(bench.send(.start)) == ["bus"])
        #expect(spawns(bench.send(.ready("bus"))) == ["persistence"])
        #expect(spawns(bench.send(.ready("persistence"))) == ["playback", "feeds", "downloads"])
        #expect(spawns(bench.send(.ready("playback"))) == ["queue"])
        #expect(!bench.send(.ready("queue")).contains(.fleetReady))
        #expect(!bench.send(.ready("feeds")).contains(.fleetReady))
        #expect(bench.send(.ready("downloads")).contains(.fleetReady))
        #expect(bench.machine.isReady)
    }

    @Test(arguments: ["bus", "persistence", "playback", "queue", "feeds"])
    func `a service that crashes after it was ready is restarted at once`(_ name: String) {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        #expect(spawns(bench.send(.ended(name, .signalled(9)))) == [name])
        #expect(bench.machine.service(name)?.restarts == 1)
        #expect(bench.machine.service(name)?.lastEnd == "killed by SIGKILL")
        #expect(bench.send(.ready(name)).contains(.fleetReady))
    }

    @Test(arguments: [ProcessEnd.signalled(9), .signalled(11), .exited(1), .exited(0)])
    func `an unexpected end of a service is logged as a warning`(_ end: ProcessEnd) {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        #expect(levels(bench.send(.ended("queue", end))) == [.warning])
    }

    @Test(arguments: [
        (ProcessEnd.exited(0), LogRecord.Level.info), (.signalled(15), .info), (.signalled(9), .info),
        (.exited(1), .warning), (.signalled(11), .warning),
    ])
    func `a requested end is logged as a warning only if it is a failure`(_ end: ProcessEnd, _ level: LogRecord.Level) {
        var bench = Bench()
        bench.startAll()
        bench.send(.restart("queue"))
        #expect(levels(bench.send(.ended("queue", end))) == [level])
    }

    @Test func `services that crash at the same time restart in order`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        #expect(spawns(bench.send(.ended("bus", .signalled(9)))) == ["bus"])
        for name in ["persistence", "playback", "queue", "feeds"] {
            #expect(spawns(bench.send(.ended(name, .signalled(9)))) == [])
        }
        #expect(spawns(bench.send(.ready("bus"))) == ["persistence"])
        #expect(spawns(bench.send(.ready("persistence"))).sorted() == ["feeds", "playback", "queue"])
    }

    @Test func `the delay after failed starts doubles, and the sixth failure opens the circuit`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        bench.send(.ended("queue", .signalled(11)))
        for (attempt, milliseconds) in [250.0, 500, 1_000, 2_000, 4_000].enumerated() {
            bench.fail("queue")
            #expect(bench.condition("queue") == .retrying)
            let wait = (bench.machine.service("queue")?.nextTry?.since(bench.now) ?? .zero) / .seconds(1)
            #expect(abs(wait * 1_000 / milliseconds - 1) <= 0.2, "attempt \(attempt)")
        }
        bench.fail("queue")
        #expect(bench.condition("queue") == .failed)
        #expect(bench.machine.failure?.contains("queue doesn’t start") == true)
        #expect(bench.machine.service("queue")?.nextTry?.since(bench.now) == .seconds(300))
    }

    @Test func `an open circuit is retried after five minutes and opens again at the first failure`() {
        var bench = Bench()
        bench.startAll()
        for _ in 0..<6 { bench.fail("feeds") }
        #expect(bench.condition("feeds") == .failed)
        #expect(spawns(bench.pass(.seconds(299))).isEmpty)
        #expect(spawns(bench.pass(.seconds(2))) == ["feeds"])
        bench.send(.ended("feeds", .exited(1)))
        #expect(bench.condition("feeds") == .failed)
    }

    @Test func `a hang before the first heartbeat is detected`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(12), silent: ["queue"])
        #expect(bench.effects.contains { if case .abort("queue") = $0 { true } else { false } })
    }

    @Test func `reset-failed retries at once and clears the failures`() {
        var bench = Bench()
        bench.startAll()
        for _ in 0..<6 { bench.fail("feeds") }
        #expect(spawns(bench.send(.resetFailed("feeds"))) == ["feeds"])
        bench.send(.ended("feeds", .exited(1)))
        #expect(bench.condition("feeds") == .retrying)
    }

    @Test func `many restarts within an hour raise a concern, which ends after the hour`() {
        var bench = Bench()
        bench.startAll()
        for count in 1...11 {
            bench.pass(.seconds(5))
            let effects = bench.send(.ended("queue", .signalled(9)))
            bench.send(.ready("queue"))
            let expected = FleetConcern.restartsOften(count, last: "killed by SIGKILL")
            #expect(concerns(effects) == (count < 10 ? [] : [.init("queue", expected)]))
        }
        #expect(bench.machine.service("queue")?.warning == "it was restarted 11 times within an hour")
        let effects = bench.pass(.seconds(3_600))
        #expect(concerns(effects).last == .init("queue", nil))
        #expect(bench.machine.service("queue")?.warning == nil)
    }

    @Test func `reset-failed also clears the restart count`() {
        var bench = Bench()
        bench.startAll()
        for _ in 1...10 {
            bench.pass(.seconds(2))
            bench.send(.ended("feeds", .signalled(11)))
            bench.send(.ready("feeds"))
        }
        #expect(concerns(bench.send(.resetFailed("feeds"))) == [.init("feeds", nil)])
        #expect(bench.condition("feeds") == .ready)
    }

    @Test(arguments: ["persistence", "queue"])
    func `a service that doesn’t start is a concern until it has been ready for a while`(_ name: String) {
        var bench = Bench()
        bench.startAll()
        for _ in 0..<5 { bench.fail(name) }
        #expect(concerns(bench.effects).isEmpty)
        bench.fail(name)
        let sentence = "\(name) doesn’t start: exited with 1. See `lockstep logs \(name)`."
        #expect(concerns(bench.effects) == [.init(name, .doesNotStart(sentence))])
        bench.effects = []
        bench.fail(name)
        #expect(concerns(bench.effects).isEmpty, "it is the same as before")
        while bench.condition(name) != .starting { bench.pass(.seconds(1)) }
        bench.send(.ready(name))
        #expect(concerns(bench.effects).isEmpty, "it may end again at once")
        #expect(concerns(bench.pass(.seconds(2))) == [.init(name, nil)])
    }

    @Test(arguments: ["bus", "persistence"])
    func `essential services that keep failing are retried at most two seconds apart`(_ name: String) {
        var bench = Bench()
        bench.startAll()
        for _ in 0..<30 {
            bench.fail(name)
            #expect(bench.condition(name) == .retrying)
            #expect((bench.machine.service(name)?.nextTry?.since(bench.now) ?? .zero) <= .seconds(2))
        }
        #expect(bench.effects.contains { if case .fleetFailed(let why) = $0 { why.hasPrefix(name) } else { false } })
    }

    @Test func `a crash after the service has settled resets the backoff`() {
        var bench = Bench()
        bench.startAll()
        for _ in 0..<4 { bench.fail("queue") }
        bench.pass(.seconds(5))
        bench.send(.ready("queue"))
        bench.pass(.seconds(2))
        #expect(spawns(bench.send(.ended("queue", .signalled(9)))) == ["queue"])
        bench.fail("queue")
        #expect((bench.machine.service("queue")?.nextTry?.since(bench.now) ?? .zero) <= .milliseconds(300))
    }

    @Test func `an unrequested exit is a failure even with code zero`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(10))
        #expect(spawns(bench.send(.ended("queue", .exited(0)))).isEmpty)
        #expect(bench.condition("queue") == .retrying)
    }

    @Test(arguments: [78, 127] as [Int32], ["bus", "feeds"])
    func `a service that can’t start fails at once`(_ code: Int32, _ name: String) {
        var bench = Bench()
        bench.startAll()
        let effects = bench.send(.ended(name, .exited(code)))
        #expect(bench.condition(name) == .failed)
        #expect(effects.contains { if case .fleetFailed = $0 { true } else { false } })
    }

    @Test func `a missing program blocks only the services that require it`() {
        var bench = Bench()
        bench.send(.start)
        bench.send(.ready("bus"))
        bench.send(.ready("persistence"))
        #expect(spawns(bench.send(.unstartable("playback", reason: "there is no program x"))) == ["queue"])
        #expect(bench.machine.failure?.contains("there is no program x") == true)
    }

    @Test func `a silent service is late, then hung, then aborted, killed and restarted`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        bench.pass(.milliseconds(3_500), silent: ["queue"])
        #expect(bench.condition("queue") == .late)
        let effects = bench.pass(.seconds(7), silent: ["queue"])
        #expect(effects.contains(.abort("queue")))
        #expect(!effects.contains(.kill("queue")))
        #expect(bench.pass(.seconds(2), silent: ["queue"]).contains(.kill("queue")))
        #expect(spawns(bench.send(.ended("queue", .signalled(9)))) == ["queue"])
        #expect(bench.machine.service("queue")?.lastEnd?.contains("no liveness report") == true)
    }

    @Test func `a process that survives its crash report is killed and restarted`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        bench.send(.crashed("queue"))
        #expect(bench.pass(.milliseconds(500)).contains(.kill("queue")))
        #expect(spawns(bench.send(.ended("queue", .signalled(9)))) == ["queue"])
        #expect(bench.machine.service("queue")?.lastEnd == "killed by SIGKILL, because it crashed")
    }

    @Test func `a late service that sends a heartbeat is ready again`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(1))
        bench.pass(.seconds(5), silent: ["queue"])
        bench.send(.alive("queue"))
        #expect(bench.condition("queue") == .ready)
        #expect(!bench.effects.contains(.abort("queue")))
    }

    @Test func `services that are late at the same time have a longer limit`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(1))
        bench.pass(.seconds(25), silent: ["queue", "feeds"])
        #expect(!bench.effects.contains(.abort("queue")))
        let effects = bench.pass(.seconds(6), silent: ["queue", "feeds"])
        #expect(effects.contains(.abort("queue")) && effects.contains(.abort("feeds")))
    }

    @Test func `a supervisor that was suspended treats no service as hung`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(1))
        bench.now = bench.now.advanced(by: .seconds(60))
        bench.send(.tick)
        bench.pass(.seconds(2))
        #expect(!bench.effects.contains { if case .abort = $0 { true } else { false } })
    }

    @Test func `services stop in reverse order, each after those that require it`() {
        var bench = Bench()
        bench.startAll()
        #expect(terminations(bench.send(.stop)) == ["queue", "feeds", "downloads"])
        #expect(terminations(bench.send(.ended("queue", .exited(0)))) == ["playback"])
        #expect(terminations(bench.send(.ended("playback", .exited(0)))) == [])
        #expect(terminations(bench.send(.ended("feeds", .exited(0)))) == [])
        #expect(terminations(bench.send(.ended("downloads", .exited(0)))) == ["persistence"])
        #expect(terminations(bench.send(.ended("persistence", .exited(0)))) == ["bus"])
        #expect(bench.send(.ended("bus", .exited(0))).contains(.finished))
        #expect(spawns(bench.effects).count == 6)
    }

    @Test(arguments: [("queue", 3), ("feeds", 5)])
    func `a service that doesn’t stop in time is killed`(_ name: String, _ seconds: Int) {
        var bench = Bench()
        bench.startAll()
        bench.send(.stop)
        #expect(!bench.pass(.seconds(seconds) - .milliseconds(500)).contains(.kill(name)))
        #expect(bench.pass(.milliseconds(500)).contains(.kill(name)))
    }

    @Test func `a stop kills every process after twenty-five seconds at the latest`() {
        var bench = Bench()
        bench.startAll()
        bench.send(.stop)
        bench.effects = []
        bench.pass(.seconds(26))
        for service in bench.machine.services { #expect(bench.effects.contains(.kill(service.plan.name))) }
    }

    @Test func `a second request to stop kills every process`() {
        var bench = Bench()
        bench.startAll()
        bench.send(.stop)
        let effects = bench.send(.kill)
        for service in bench.machine.services { #expect(effects.contains(.kill(service.plan.name))) }
    }

    @Test func `a service that is restarted is stopped, then started at once`() {
        var bench = Bench()
        bench.startAll()
        bench.pass(.seconds(2))
        #expect(terminations(bench.send(.restart("playback"))) == ["playback"])
        #expect(spawns(bench.send(.ended("playback", .exited(0)))) == ["playback"])
        #expect(bench.machine.service("playback")?.failures.isEmpty == true)
    }

    @Test func `a stop request before every service has started is completed`() {
        var bench = Bench()
        bench.send(.start)
        bench.send(.stop)
        #expect(bench.send(.ended("bus", .signalled(15))).contains(.finished))
        #expect(spawns(bench.effects) == ["bus"])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `in any order of events no process is started twice, and a stop always completes`(_ seed: UInt64) {
        var bench = Bench()
        var random = Numbers(state: seed)
        let names = bench.machine.services.map(\.plan.name)
        bench.send(.start)
        for _ in 0..<400 {
            let name = names[Int(random.next() % 5)]
            switch random.next() % 8 {
            case 0: bench.send(.ended(name, .signalled(9)))
            case 1: bench.send(.ended(name, .exited(Int32(random.next() % 2))))
            case 2: bench.send(.restart(name))
            case 3: bench.send(.resetFailed(name))
            case 4: bench.pass(.milliseconds(Int(random.next() % 5_000)), silent: [name])
            default: bench.send(.ready(name))
            }
        }
        #expect(bench.doubleStarts == 0)
        bench.send(.stop)
        for _ in 0..<5 {
            for service in bench.machine.services where service.pid != nil && service.condition == .stopping {
                bench.send(.ended(service.plan.name, .exited(0)))
            }
            for service in bench.machine.services where service.pid != nil && service.condition == .hung {
                bench.send(.ended(service.plan.name, .signalled(6)))
            }
        }
        #expect(bench.effects.contains(.finished))
        #expect(bench.machine.services.allSatisfy { $0.condition == .stopped })
    }
}

/// Pseudorandom numbers (Knuth’s linear congruential generator).
private struct Numbers: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return state >> 33
    }
}
