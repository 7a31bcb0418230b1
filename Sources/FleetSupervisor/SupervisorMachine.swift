import PodcastModel
import SupervisorControl

enum SupervisorEvent: Sendable, Hashable {
    /// The machine’s first event.
    case start
    /// The process runs.
    case spawned(String, pid: Int32)
    /// The process couldn’t be started, and an immediate retry can’t help: no program, no memory.
    case unstartable(String, reason: String)
    /// The service’s current process has sent READY=1.
    case ready(String)
    /// The service’s current process has sent WATCHDOG=1.
    case alive(String)
    /// The service’s current process has sent STATUS.
    case status(String, line: String)
    /// The service’s current process has written its crash report. A fault then recurs and ends the process; a signal
    /// from outside doesn’t, and would leave the process in an unknown state.
    case crashed(String)
    /// The service’s current process, and its whole session, has ended.
    case ended(String, ProcessEnd)
    /// `nextDeadline` is due, or the loop woke up for another reason.
    case tick
    /// A request to stop this service and start it again.
    case restart(String)
    /// A request to clear this service’s failures and retry it.
    case resetFailed(String)
    case stop
    case kill
}

/// An effect of the supervisor’s machine. Effects are performed in order.
enum SupervisorEffect: Sendable, Hashable {
    /// Starts the process; answered by `spawned` or `unstartable`.
    case spawn(String)
    /// Sends SIGTERM to the process.
    case terminate(String)
    /// Records the state of the hung process’s threads and sends it SIGABRT.
    case abort(String)
    /// Sends SIGKILL to the process and its group.
    case kill(String)
    /// Every service is ready. The effect is repeated when a missing service is ready again.
    case fleetReady
    /// A service can’t be started; the sentence contains its name and the reason. The service is still retried.
    case fleetFailed(String)
    /// The concern about a service has changed; nil if it has ended.
    case concern(String, FleetConcern?)
    case log(String, LogRecord.Level = .info)
    case finished
}

/// Decides which service is started, stopped, killed or retried, and when. It holds no process, socket or clock.
struct SupervisorMachine: Sendable {
    let limits: SupervisorLimits
    /// The services in start order.
    var services: [ServiceState]
    var isStopping = false
    /// Whether every service is ready or late.
    var isReady = false

    var isFinished = false
    var stopDeadline: MonotonicTime?
    var lastTick: MonotonicTime?
    private var random: SeededGenerator

    /// - Parameter seed: the seed of the jitter.
    init(_ plan: FleetPlan, limits: SupervisorLimits = SupervisorLimits(), seed: UInt64) {
        self.limits = limits
        services = plan.services.map(ServiceState.init)
        random = SeededGenerator(seed: seed)
    }

    func service(_ name: String) -> ServiceState? { services.first { $0.plan.name == name } }

    /// The reason why the fleet isn’t ready, if a service has failed too often; nil otherwise.
    var failure: String? {
        services.first { $0.condition == .failed || isFailingEssential($0) }.map(failureSentence)
    }

    /// Handles an event. Events about unknown services, and late ones, change nothing.
    mutating func handle(_ event: SupervisorEvent, now: MonotonicTime) -> [SupervisorEffect] {
        var effects: [SupervisorEffect] = []
        if lastTick == nil { lastTick = now }
        switch event {
        case .start: break
        case .spawned(let name, let pid): with(name) { $0.spawned(pid, now: now) }
        case .unstartable(let name, let reason):
            with(name) { $0.lastEnd = reason }
            openCircuit(name, now: now, &effects)
        case .ready(let name): with(name) { $0.recordReady(now: now) }
        case .alive(let name): with(name) { [limits] in $0.recordSignOfLife(now: now, limits) }
        case .status(let name, let line):
            with(name) { [limits] service in
                service.status = line
                service.recordSignOfLife(now: now, limits, starting: true)
            }
        case .crashed(let name):
            with(name) { [limits] service in
                guard service.runs, !service.isEnding else { return }
                service.beginEnd(.hung, within: limits.afterCrash, because: "it crashed", now: now)
            }
        case .ended(let name, let end): ended(name, end, now: now, &effects)
        case .tick: tick(now: now, &effects)
        case .restart(let name): restart(name, now: now, &effects)
        case .resetFailed(let name):
            with(name) { service in
                service.forgetFailures()
                service.restartTimes = []
                guard service.condition == .failed || service.condition == .retrying else { return }
                service.condition = .waiting
            }
        case .stop: stop(now: now, &effects)
        case .kill:
            stop(now: now, &effects)
            for service in services where service.runs { effects.append(.kill(service.plan.name)) }
        }
        applyState(now: now, &effects)
        return effects
    }

    /// The time of the next `tick`; nil if only another event can change the state.
    var nextDeadline: MonotonicTime? {
        var deadlines = services.flatMap { [$0.nextTry, $0.killAt, $0.startDeadline].compactMap(\.self) }
        if let stopDeadline, !isFinished { deadlines.append(stopDeadline) }
        if let lastTick, services.contains(where: { $0.lastSign != nil }) {
            deadlines.append(lastTick.advanced(by: .seconds(1)))
        }
        if !isStopping, let concernDeadline { deadlines.append(concernDeadline) }
        return deadlines.min()
    }

    private mutating func with(_ name: String, _ change: (inout ServiceState) -> Void) {
        guard let index = services.firstIndex(where: { $0.plan.name == name }) else { return }
        change(&services[index])
    }

    /// Derives effects from the new state, independent of the event.
    private mutating func applyState(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        if isStopping {
            terminateUnrequired(now: now, &effects)
            return
        }
        reportConcerns(now: now, &effects)
        startWaiting(now: now, &effects)
        let complete = services.allSatisfy(\.serves)
        if complete, !isReady { effects.append(.fleetReady) }
        isReady = complete
    }

    private mutating func startWaiting(now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        for index in services.indices where !services[index].runs {
            switch services[index].condition {
            case .waiting: break
            case .retrying, .failed:
                guard let due = services[index].nextTry, now >= due else { continue }
                services[index].condition = .waiting
                services[index].nextTry = nil
            default: continue
            }
            guard isSatisfied(services[index]) else { continue }
            services[index].begin(now: now, limits)
            effects.append(.spawn(services[index].plan.name))
        }
    }

    /// Whether the service may start: each service that it requires is ready, or isn’t essential and can’t be started,
    /// or isn’t essential and the service was ready before.
    private func isSatisfied(_ service: ServiceState) -> Bool {
        service.plan.requires.allSatisfy { name in
            guard let needed = self.service(name), !needed.serves else { return true }
            return !needed.plan.isEssential && (needed.condition == .failed || service.hasServed)
        }
    }

    private mutating func ended(
        _ name: String, _ end: ProcessEnd, now: MonotonicTime, _ effects: inout [SupervisorEffect]
    ) {
        guard let service = service(name), service.runs else { return }
        let reason = service.endReason.map { "\(end.words), because \($0)" } ?? end.words
        let settled = service.readyAt.map { now.since($0) >= limits.settling } ?? false
        with(name) { $0.recordEnd(lastEnd: reason, crashed: end.isCrash || service.condition == .hung) }
        let isExpected = service.condition == .stopping && end.isOrderly
        effects.append(.log("\(name) (process \(service.pid ?? 0)) \(reason)", isExpected ? .info : .warning))
        if isStopping {
            with(name) { $0.condition = .stopped }
        } else if service.startsAgain {
            with(name) { $0.startAnew() }
        } else if [.exited(78), .exited(126), .exited(127)].contains(end) {
            openCircuit(name, now: now, &effects)
        } else if !settled || end == .exited(0) {
            failed(name, now: now, &effects)
        } else {
            with(name) { service in
                service.startAnew()
                service.restartTimes.append(now)
            }
        }
    }

    /// Handles a failed start: schedules a retry with a growing wait, or opens the circuit.
    private mutating func failed(_ name: String, now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        let random = random.unit()
        var opens = false
        with(name) { [limits] service in
            service.failures.append(now)
            service.failures.removeAll { now.since($0) > limits.failureWindow }
            service.failuresInARow += 1
            opens = service.failures.count >= limits.failuresToOpen || service.circuitIsOpen
            let backoff = service.plan.isEssential ? limits.essentialRetryBackoff : limits.retryBackoff
            service.condition = .retrying
            service.nextTry = now.advanced(by: backoff.wait(after: service.failuresInARow, random: random))
        }
        guard opens, let service = service(name) else { return }
        if service.plan.isEssential {
            if service.failures.count == limits.failuresToOpen {
                effects.append(.fleetFailed(failureSentence(service)))
            }
        } else {
            openCircuit(name, now: now, &effects)
        }
    }

    private mutating func openCircuit(_ name: String, now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        with(name) { [limits, isStopping] service in
            service.recordEnd(lastEnd: service.lastEnd ?? "", crashed: service.hasCrashed)
            service.condition = isStopping ? .stopped : .failed
            service.circuitIsOpen = true
            service.nextTry = isStopping ? nil : now.advanced(by: limits.openCircuitBackoff.wait())
        }
        guard !isStopping, let service = service(name) else { return }
        effects.append(.fleetFailed(failureSentence(service)))
    }

    private func isFailingEssential(_ service: ServiceState) -> Bool {
        service.plan.isEssential && !service.serves && service.failures.count >= limits.failuresToOpen
    }

    func failureSentence(_ service: ServiceState) -> String {
        let name = service.plan.name
        return "\(name) doesn’t start: \(service.lastEnd ?? "the reason is unknown"). See `lockstep logs \(name)`."
    }

    private mutating func restart(_ name: String, now: MonotonicTime, _ effects: inout [SupervisorEffect]) {
        guard !isStopping, let service = service(name) else { return }
        with(name) { $0.startsAgain = $0.runs }
        guard service.runs else { return with(name) { $0.startAnew() } }
        guard !service.isEnding else { return }
        with(name) { service in
            service.beginEnd(
                .stopping, within: service.plan.stopLimit, because: "a restart was requested", now: now)
        }
        effects.append(.terminate(name))
    }
}
