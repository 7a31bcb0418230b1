package import PodcastModel
package import SupervisorControl

/// How a process ended.
package enum ProcessEnd: Sendable, Hashable {
    /// It exited by itself with this code.
    case exited(Int32)
    /// It was killed by this signal.
    case signalled(Int32)

    /// A phrase for people: `exited with 1`.
    package var words: String {
        switch self {
        case .exited(0): "exited (0)"
        case .exited(78): "exited with 78: its configuration can’t be used"
        case .exited(126), .exited(127): "could not be started"
        case .exited(let code): "exited with \(code)"
        case .signalled(let signal): "killed by \(Self.name(of: signal))"
        }
    }

    /// Whether the signal is one that the program brings on itself, and that leaves a crash report.
    package var isCrash: Bool {
        guard case .signalled(let signal) = self else { return false }
        return [3, 4, 5, 6, 7, 8, 11].contains(signal)
    }

    private static func name(of signal: Int32) -> String {
        let names: [Int32: String] = [
            1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL (a trap)", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS",
            8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM",
        ]
        return names[signal] ?? "signal \(signal)"
    }
}

/// The state of a service and its process.
package struct ServiceState: Sendable, Hashable {
    /// The plan that it follows.
    package let plan: ServicePlan
    package internal(set) var condition: ServiceCondition = .waiting
    /// Its process; nil when there is none.
    package internal(set) var pid: Int32?
    /// When the process was started.
    package internal(set) var startedAt: MonotonicTime?
    /// When it reported READY.
    package internal(set) var readyAt: MonotonicTime?
    /// How often a process was started after the first.
    package internal(set) var restarts = 0
    /// How the last process ended, and why, in words; nil before the first end.
    package internal(set) var lastEnd: String?
    /// The service's own last STATUS line.
    package internal(set) var status: String?
    /// When it is tried again.
    package internal(set) var nextTry: MonotonicTime?
    /// The reason why it needs its user’s attention, if there is one.
    package internal(set) var concern: FleetConcern?
    /// A warning worth showing: it was restarted very often.
    package var warning: String? {
        guard case .restartsOften(let count, _) = concern else { return nil }
        return "it was restarted \(count) times within an hour"
    }

    /// The times of the last failures within the window.
    var failures: [MonotonicTime] = []
    /// Failures in a row.
    var failuresInARow = 0
    /// The times of the restarts within the last hour.
    var restartTimes: [MonotonicTime] = []
    /// The last sign of life, READY being the first; nil before it: then it is not watched.
    var lastSign: MonotonicTime?
    /// When a start that says nothing is given up.
    var startDeadline: MonotonicTime?
    /// When it gets SIGKILL, unless it has ended.
    var killAt: MonotonicTime?
    /// The reason why it is being ended, for `lastEnd`.
    var endReason: String?
    /// Whether it starts again at once after the end that somebody asked for.
    var startsAgain = false
    /// Whether the last process crashed or hung.
    var hasCrashed = false
    /// Whether a process was started before.
    var hasStarted = false
    /// Whether it has been ready before.
    var hasServed = false
    /// Whether it was given up: then the next failure gives it up again at once.
    var circuitIsOpen = false

    init(_ plan: ServicePlan) { self.plan = plan }

    /// Whether it serves, late or not.
    package var serves: Bool { condition == .ready || condition == .late }
    /// Whether there is a process.
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
        // Watched from here on: one that hangs before its first sign of life hangs all the same.
        lastSign = now
    }

    mutating func recordSignOfLife(now: MonotonicTime, _ limits: SupervisorLimits, starting: Bool = false) {
        if condition == .starting { startDeadline = now.advanced(by: limits.startSilence) }
        guard !starting, condition != .stopping, condition != .hung, runs else { return }
        lastSign = now
        if condition == .late { condition = .ready }
    }

    mutating func beginTermination(at now: MonotonicTime, because reason: String?) {
        condition = .stopping
        killAt = now.advanced(by: plan.stopLimit)
        endReason = reason
        lastSign = nil
        startDeadline = nil
    }

    mutating func recordHang(silence: String, now: MonotonicTime, _ limits: SupervisorLimits) {
        condition = .hung
        killAt = now.advanced(by: limits.crashReport)
        endReason = "it " + silence
        lastSign = nil
        startDeadline = nil
    }

    mutating func recordCrashReport(now: MonotonicTime, _ limits: SupervisorLimits) {
        guard runs, condition != .stopping, condition != .hung else { return }
        condition = .hung
        killAt = now.advanced(by: limits.afterCrash)
        endReason = "it crashed"
        lastSign = nil
        startDeadline = nil
    }

    /// Records that its process is gone.
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

    mutating func dropOldRestarts(now: MonotonicTime, _ limits: SupervisorLimits) {
        restartTimes.removeAll { now.since($0) > limits.restartWindow }
    }
}
