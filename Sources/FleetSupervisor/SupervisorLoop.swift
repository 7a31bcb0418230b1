import BusKit
import CProcess
import LibC
import PodcastModel
import ProcessKit
import SupervisorControl

/// Performs the effects of the supervisor’s machine. It stays on the one thread that calls `run`, because the kernel
/// binds the children to the thread that started them; it waits only for descriptors.
final class SupervisorLoop {
    let configuration: SupervisorConfiguration
    let notifier: ProcessNotifier
    let crashes: CrashReports
    let survivors: Survivors
    let log: LogWriter
    var machine: SupervisorMachine
    var children: [String: ChildProcess] = [:]
    var connections: [ControlConnection] = []
    let startedAt = SystemClocks.monotonic()
    /// The ID of this run, by which the player distinguishes its own crash from a restart of the fleet.
    private let fleetRun = String(UInt64.random(in: .min ... .max), radix: 36)
    private var lock: FileLock?
    private var earlierLock: FileLock?
    let alerts: AlertLink
    var listener = ControlListener(-1)
    var notifications: [(service: String, descriptor: Int32)] = []
    var events: [SupervisorEvent] = []
    var stopRequests = 0
    private var isFinished = false
    /// The time of the next liveness report to the service manager.
    var nextWatchdog = MonotonicTime(nanoseconds: 0)
    /// Whether every service was ready before.
    var wasReady = false

    /// Acquires the locks, kills an earlier supervisor’s remaining processes, opens the sockets. Starts no service.
    ///
    /// - Throws: `alreadyRunning` if another supervisor serves this home; `badConfiguration` if a folder or socket
    ///   can’t be created.
    init(_ configuration: SupervisorConfiguration) throws(Failure) {
        let home = configuration.home
        self.configuration = configuration
        BusLibrary.raiseDescriptorLimit()
        try home.prepare()
        let earlierRunDirectory = FileLock.note(of: home.fleetLock)
        lock = try FileLock(home.fleetLock, note: home.runDirectory)
        if home.earlierFleetLock != home.fleetLock { earlierLock = try FileLock(home.earlierFleetLock) }
        survivors = Survivors(home: home, earlierRunDirectory: earlierRunDirectory)
        let left = survivors.clear(configuration.plan.services)
        guard left.isEmpty else {
            throw Failure(
                .alreadyRunning,
                "Processes of an earlier fleet are still running: \(left.map(String.init).joined(separator: ", ")). Kill them, then start the fleet again."
            )
        }
        crashes = CrashReports(home)
        notifier = ProcessNotifier(environment: configuration.environment)
        machine = SupervisorMachine(
            configuration.plan, limits: configuration.limits, seed: .random(in: .min ... .max))
        guard let log = LogWriter(folder: home.logDirectory) else {
            throw Failure(.badConfiguration, "The log’s thread can’t be started: \(SystemError.reason()).")
        }
        self.log = log
        do {
            alerts = try AlertLink(home: home)
            for (index, service) in configuration.plan.services.enumerated() {
                let path = Self.notificationPath(home, index)
                notifications.append((service.name, try Self.opened(lockstep_notification_socket(path), path)))
            }
            listener = ControlListener(try Self.opened(lockstep_listen(home.controlSocket), home.controlSocket))
        } catch {
            // The log’s thread keeps the log alive; `deinit` closes the sockets.
            log.close()
            throw error
        }
    }

    deinit {
        for notification in notifications { close(notification.descriptor) }
        listener.close()
    }

    /// A short path, because a socket’s path has a limit.
    private static func notificationPath(_ home: LockstepHome, _ index: Int) -> String { home.runFile("n\(index)") }

    private static func opened(_ descriptor: Int32, _ path: String) throws(Failure) -> Int32 {
        guard descriptor >= 0 else {
            throw Failure(.badConfiguration, "The socket \(path) can’t be opened: \(SystemError.reason()).")
        }
        return descriptor
    }

    /// Runs until everything is stopped.
    func run() {
        writeLog("the supervisor starts (process \(getpid())); programs from \(configuration.programDirectory)")
        handle(.start)
        while !isFinished {
            wait()
            handle(.tick)
        }
        finish()
    }

    /// Handles an event, and all events that its effects cause.
    func handle(_ event: SupervisorEvent) {
        events.append(event)
        guard events.count == 1 else { return }
        while let next = events.first {
            if next == .stop || next == .kill, !machine.isStopping {
                notifier.stopping()
                alerts.stop()
            }
            for effect in machine.handle(next, now: SystemClocks.monotonic()) { perform(effect) }
            events.removeFirst()
        }
    }

    private func perform(_ effect: SupervisorEffect) {
        switch effect {
        case .spawn(let name): spawn(name)
        case .terminate(let name): signal(name, SIGTERM)
        case .abort(let name):
            guard let pid = children[name]?.pid else { return }
            children[name]?.hangingThreads = ProcessFacts.threads(of: pid)
            signal(name, SIGABRT)
        case .kill(let name):
            guard let pid = children[name]?.pid else { return }
            _ = kill(-pid, SIGKILL)
        case .fleetReady: reportReady(nil)
        case .fleetFailed(let why): reportReady(why)
        case .concern(let name, let concern): alerts.show(concern, of: name)
        case .log(let line, let level): writeLog(line, level)
        case .finished: isFinished = true
        }
    }

    /// Sends a signal to the process, and resumes it if it is stopped.
    private func signal(_ name: String, _ number: Int32) {
        guard let pid = children[name]?.pid else { return }
        _ = kill(pid, number)
        _ = kill(pid, SIGCONT)
    }

    private func spawn(_ name: String) {
        guard let index = configuration.plan.services.firstIndex(where: { $0.name == name }) else { return }
        let path = configuration.programDirectory + "/" + configuration.plan.services[index].program
        guard access(path, X_OK) == 0 else {
            events.append(.unstartable(name, reason: "the program \(path) is missing"))
            return
        }
        guard let child = ChildProcess(path: path, environment: environment(of: index)) else {
            events.append(.unstartable(name, reason: "\(path) can’t be started: \(SystemError.reason())"))
            return
        }
        children[name] = child
        survivors.record(name, pid: child.pid)
        events.append(.spawned(name, pid: child.pid))
    }

    private func environment(of index: Int) -> [String: String] {
        var variables = configuration.environment.filter { variable in
            !["NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "INVOCATION_ID"]
                .contains(variable.key)
        }
        variables.merge(configuration.home.environment) { _, home in home }
        variables.merge(crashes.environment) { _, ours in ours }
        variables["NOTIFY_SOCKET"] = Self.notificationPath(configuration.home, index)
        variables["WATCHDOG_USEC"] = String(Int(configuration.limits.hung / .microseconds(1)))
        variables[ChildGuard.supervisorVariable] = String(getpid())
        variables[ChildGuard.fleetRunVariable] = fleetRun
        let hasCrashed = machine.service(configuration.plan.services[index].name)?.hasCrashed ?? false
        variables[CrashLoopQuarantine.previousEndVariable] = hasCrashed ? CrashLoopQuarantine.previousCrash : nil
        return variables
    }

    // MARK: - Logs

    func writeLog(_ text: String, _ level: LogRecord.Level = .info) {
        let line = LogRecord.json(text, level: level, service: "supervisor", at: SystemClocks.wall().milliseconds)
        record([line], of: "supervisor")
        if configuration.printsLog {
            let printed = Array("lockstep: \(text)\n".utf8)
            _ = write(STDERR_FILENO, printed, printed.count)
        }
    }

    func record(_ lines: [[UInt8]], of name: String) {
        guard !lines.isEmpty else { return }
        let time = SystemClocks.wall().milliseconds
        let lines = lines.map { LogRecord.json($0, service: name, at: time) }
        for line in lines { log.append(name, line) }
        for index in connections.indices {
            guard let follows = connections[index].follows, follows.isEmpty || follows == name else { continue }
            connections[index].send(ControlReply(lines: lines.map { String(decoding: $0, as: UTF8.self) }))
        }
    }

    // MARK: - The end

    /// Releases the lock before it reports the stop: a waiting client may start another fleet at once.
    private func finish() {
        writeLog("everything is stopped")
        let home = configuration.home
        unlink(home.controlSocket)
        listener.close()
        for (index, notification) in notifications.enumerated() {
            close(notification.descriptor)
            unlink(Self.notificationPath(home, index))
        }
        notifications = []
        log.close()
        // The earlier lock is released first: a process that finds the fleet’s lock free finds both free.
        earlierLock = nil
        lock = nil
        for index in connections.indices {
            if connections[index].waitsForEnd {
                connections[index].send(ControlReply(message: "Everything is stopped."))
            }
            if connections[index].waitsForReady {
                connections[index].send(ControlReply(error: ControlError(Failure(.noFleet, "The fleet was stopped."))))
            }
            close(connections[index].descriptor)
        }
        connections = []
    }
}
