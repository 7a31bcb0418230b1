import PodcastModel
import SupervisorControl

/// The end of a process.
enum ProcessEnd: Sendable, Hashable {
    /// The process exited with this code.
    case exited(Int32)
    /// The process was ended by this signal.
    case signalled(Int32)

    var words: String {
        switch self {
        case .exited(0): "exited (0)"
        case .exited(78): "exited with 78: its configuration can’t be used"
        case .exited(126), .exited(127): "could not be started"
        case .exited(let code): "exited with \(code)"
        case .signalled(let signal): "killed by \(Self.name(of: signal))"
        }
    }

    /// Whether the signal was raised by a fault of the program, which leaves a crash report.
    var isCrash: Bool {
        guard case .signalled(let signal) = self else { return false }
        return [3, 4, 5, 6, 7, 8, 11].contains(signal)
    }

    /// Whether a process may end like this after a request to stop: with code 0, SIGTERM or SIGKILL.
    var isOrderly: Bool { [.exited(0), .signalled(15), .signalled(9)].contains(self) }

    private static func name(of signal: Int32) -> String {
        let names: [Int32: String] = [
            1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL (a trap)", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS",
            8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
        ]
        return names[signal] ?? "signal \(signal)"
    }
}

/// The state of a service and its process.
struct ServiceState: Sendable, Hashable {
    let plan: ServicePlan
    var condition: ServiceCondition = .waiting
    var pid: Int32?
    var startedAt: MonotonicTime?
    /// The time at which the process reported READY.
    var readyAt: MonotonicTime?
    /// The number of starts after the first.
    var restarts = 0
    /// A description of the last process’s end and its reason; nil before the first end.
    var lastEnd: String?
    /// The service’s own last STATUS line.
    var status: String?
    var nextTry: MonotonicTime?
    var concern: FleetConcern?
    var warning: String? {
        guard case .restartsOften(let count, _) = concern else { return nil }
        return "it was restarted \(count) times within an hour"
    }

    /// The times of the failed starts within the window.
    var failures: [MonotonicTime] = []
    var failuresInARow = 0
    /// The times of the restarts within the last hour.
    var restartTimes: [MonotonicTime] = []
    /// The time of the last liveness report, the first of which is READY; nil before it, when silence isn’t checked.
    var lastSign: MonotonicTime?
    /// The time at which a silent start fails.
    var startDeadline: MonotonicTime?
    /// The time at which the process is killed, unless it has ended.
    var killAt: MonotonicTime?
    /// The reason for which the process is being ended, for `lastEnd`.
    var endReason: String?
    /// Whether the service is started again at once after a requested end.
    var startsAgain = false
    /// Whether the last process crashed or hung.
    var hasCrashed = false
    var hasStarted = false
    /// Whether the service has ever been ready.
    var hasServed = false
    /// Whether the service is only retried every few minutes; another failure keeps the circuit open.
    var circuitIsOpen = false

    init(_ plan: ServicePlan) { self.plan = plan }

    var serves: Bool { condition == .ready || condition == .late }
    var runs: Bool { pid != nil }

    // MARK: - Steps of the machine

    mutating func begin(now: MonotonicTime, _ limits: SupervisorLimits) {
        if hasStarted { restarts += 1 }
        hasStarted = true
        condition = .starting
        nextTry = nil
        startedAt = now
        startDeadline = now.advanced(by: limits.startSilence)
    }

    mutating func spawned(_ pid: Int32, now: MonotonicTime) {
        guard condition == .starting else { return }
        self.pid = pid
        startedAt = now
    }

    mutating func recordReady(now: MonotonicTime) {
        guard condition == .starting, runs else { return }
        condition = .ready
        readyAt = now
        startDeadline = nil
        hasServed = true
        // Silence is measured from here: a process may hang before its first liveness report.
        lastSign = now
    }

    mutating func recordSignOfLife(now: MonotonicTime, _ limits: SupervisorLimits, starting: Bool = false) {
        if condition == .starting { startDeadline = now.advanced(by: limits.startSilence) }
        guard !starting, !isEnding, runs else { return }
        lastSign = now
        if condition == .late { condition = .ready }
    }

    /// Whether its process is being ended.
    var isEnding: Bool { condition == .stopping || condition == .hung }

    /// Expects its process to end within `limit`.
    mutating func beginEnd(
        _ condition: ServiceCondition, within limit: Duration, because reason: String?, now: MonotonicTime
    ) {
        self.condition = condition
        killAt = now.advanced(by: limit)
        endReason = reason
        lastSign = nil
        startDeadline = nil
    }

    mutating func recordEnd(lastEnd: String, crashed: Bool) {
        self.lastEnd = lastEnd
        hasCrashed = crashed
        pid = nil
        startedAt = nil
        readyAt = nil
        lastSign = nil
        startDeadline = nil
        killAt = nil
        endReason = nil
        startsAgain = false
        status = nil
    }

    mutating func forgetFailures() {
        failures = []
        failuresInARow = 0
        circuitIsOpen = false
        nextTry = nil
    }

    /// Schedules its start as if it had never failed.
    mutating func startAnew() {
        forgetFailures()
        condition = .waiting
    }

    mutating func dropOldRestarts(now: MonotonicTime, _ limits: SupervisorLimits) {
        restartTimes.removeAll { now.since($0) > limits.restartWindow }
    }
}
