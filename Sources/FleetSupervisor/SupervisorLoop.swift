public import BusKit
import CProcess
public import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What a supervisor is told at its start.
public struct SupervisorConfiguration: Sendable {
    /// Where everything lies.
    public var home: LockstepHome
    /// The services.
    public var plan = FleetPlan.standard
    /// The limits.
    public var limits = SupervisorLimits()
    /// Where the executables are.
    public var programDirectory: String
    /// What the services inherit, besides what the supervisor sets.
    public var environment: [String: String]
    /// A descriptor that stop signals are read from; nil for none.
    public var signals: Int32?
    /// Whether its own log is copied to standard error.
    public var printsLog = false

    /// A supervisor of the standard fleet.
    public init(home: LockstepHome, programDirectory: String, environment: [String: String]) {
        self.home = home
        self.programDirectory = programDirectory
        self.environment = environment
    }
}

/// The supervisor: performs what its machine decides. It lives on the one thread that calls `run`, because the kernel
/// ties the children to the thread that started them; everything it waits for is a descriptor.
public final class SupervisorLoop {
    let configuration: SupervisorConfiguration
    let notifier: ProcessNotifier
    let crashes: CrashReports
    let survivors: Survivors
    let log: LogWriter
    var machine: SupervisorMachine
    var children: [String: ChildProcess] = [:]
    var connections: [ControlConnection] = []
    let startedAt = SystemCall.now()
    /// Unlike that of any supervisor before: the player takes a restart of its own for a crash, one of the fleet not.
    private let fleetRun = String(UInt64.random(in: .min ... .max), radix: 36)
    private var lock: FileLock?
    private var listener: Int32
    private var notifications: [(service: String, descriptor: Int32)] = []
    private var events: [SupervisorEvent] = []
    private var stopRequests = 0
    private var isFinished = false

    /// Takes the lock, ends what an earlier supervisor left behind, opens the sockets. Starts no service yet.
    ///
    /// - Throws: `alreadyRunning` when another supervisor serves this home; `badConfiguration` when a folder or socket
    ///   cannot be made.
    public init(_ configuration: SupervisorConfiguration) throws(Failure) {
        let home = configuration.home
        self.configuration = configuration
        try home.prepare()
        lock = try FileLock(home.runFile(Self.lockName))
        survivors = Survivors(home: home)
        let left = survivors.clear(configuration.plan.services)
        guard left.isEmpty else {
            throw Failure(
                .alreadyRunning,
                "Processes of an earlier fleet do not end: \(left.map(String.init).joined(separator: ", ")). End them, then start again."
            )
        }
        guard let log = LogWriter(folder: home.logDirectory) else {
            throw Failure(.badConfiguration, "The log's thread cannot be started: \(SystemCall.reason()).")
        }
        self.log = log
        crashes = CrashReports(home)
        notifier = ProcessNotifier(environment: configuration.environment)
        machine = SupervisorMachine(
            configuration.plan, limits: configuration.limits, seed: .random(in: .min ... .max))
        listener = -1
        do {
            for (index, service) in configuration.plan.services.enumerated() {
                let path = Self.notificationPath(home, index)
                notifications.append((service.name, try Self.opened(lockstep_notification_socket(path), path)))
            }
            listener = try Self.opened(lockstep_listen(home.controlSocket), home.controlSocket)
        } catch {
            log.close()
            throw error
        }
    }

    deinit {
        for notification in notifications { close(notification.descriptor) }
        if listener >= 0 { close(listener) }
    }

    /// The lock that makes a supervisor the only one of its home.
    static let lockName = "supervisor.lock"

    /// Short, whatever the service is called: a socket's path has a limit.
    private static func notificationPath(_ home: LockstepHome, _ index: Int) -> String { home.runFile("n\(index)") }

    private static func opened(_ descriptor: Int32, _ path: String) throws(Failure) -> Int32 {
        guard descriptor >= 0 else {
            throw Failure(.badConfiguration, "The socket \(path) cannot be opened: \(SystemCall.reason()).")
        }
        return descriptor
    }

    /// Runs the fleet until everything is stopped.
    public func run() {
        say("the supervisor starts (process \(getpid())); programs from \(configuration.programDirectory)")
        take(.start)
        while !isFinished {
            wait()
            take(.tick)
        }
        finish()
    }

    // MARK: - Waiting

    private func wait() {
        var waiting: [pollfd] = []
        func watch(_ descriptor: Int32, _ events: Int32 = POLLIN) {
            waiting.append(pollfd(fd: descriptor, events: Int16(events), revents: 0))
        }
        watch(listener)
        watch(configuration.signals ?? -1)
        for notification in notifications { watch(notification.descriptor) }
        for child in children.values {
            watch(child.pidDescriptor)
            watch(child.output)
        }
        for connection in connections {
            watch(connection.descriptor, connection.output.isEmpty ? POLLIN : POLLIN | POLLOUT)
        }
        _ = poll(&waiting, nfds_t(waiting.count), timeout())
        // Everything is read without waiting, so which of them is readable need not be looked up. First what a process
        // said, then its end.
        readNotifications()
        readOutput()
        readEnds()
        readSignals()
        acceptClients()
        serveClients()
        notifier.watchdog()
    }

    /// Milliseconds. Under a service manager at most a second, for its watchdog.
    private func timeout() -> Int32 {
        var longest: Int32 = notifier.isListenedTo ? 1_000 : 60_000
        // Without pidfds ends are looked for.
        if children.values.contains(where: { $0.pidDescriptor < 0 }) { longest = 50 }
        guard let deadline = machine.nextDeadline else { return longest }
        let left = deadline.since(SystemCall.now()).inSeconds
        return min(longest, Int32(max(0, min(left * 1_000 + 1, 60_000))))
    }

    private func readNotifications() {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        for notification in notifications {
            for _ in 0..<64 {
                var sender: pid_t = 0
                let count = lockstep_receive_notification(notification.descriptor, &buffer, buffer.count, &sender)
                guard count >= 0 else { break }
                // Late words of an earlier process, and words of others, are nobody's.
                guard sender == children[notification.service]?.pid else { continue }
                hear(notification.service, String(decoding: buffer[..<count], as: UTF8.self))
            }
        }
    }

    private func hear(_ service: String, _ message: String) {
        for line in message.split(separator: "\n") {
            switch line {
            case "READY=1": take(.ready(service))
            case "WATCHDOG=1": take(.alive(service))
            case _ where line.hasPrefix("STATUS="): take(.status(service, line: String(line.dropFirst(7).prefix(500))))
            default: break
            }
        }
    }

    private func readOutput() {
        for name in children.keys {
            guard let lines = children[name]?.newLines(), !lines.isEmpty else { continue }
            record(lines, of: name)
            guard lines.contains(where: Self.isEndOfBacktrace) else { continue }
            if children[name]?.hangingThreads == nil { children[name]?.hangingThreads = [] }
            take(.crashed(name))
        }
    }

    /// What the Swift runtime prints when its crash report is written.
    private static func isEndOfBacktrace(_ line: [UInt8]) -> Bool {
        line.starts(with: "*** Signal ".utf8) && line.suffix(9).elementsEqual(" done ***".utf8)
    }

    private func readEnds() {
        for (name, child) in children {
            guard let end = child.end() else { continue }
            // What it said before its end counts.
            readNotifications()
            bury(name, end)
        }
    }

    private func bury(_ name: String, _ end: ProcessEnd) {
        guard var child = children.removeValue(forKey: name) else { return }
        var lines = child.newLines()
        if let last = child.splitter.finish() { lines.append(last) }
        record(lines, of: name)
        child.release()
        survivors.forget(name)
        if end.isCrash || child.hangingThreads != nil {
            crashes.settle(
                service: name, pid: child.pid, end: end.words, threads: child.hangingThreads ?? [],
                lastLines: (child.lastLines + lines).suffix(20))
        }
        take(.ended(name, end))
    }

    private func readSignals() {
        guard let signals = configuration.signals else { return }
        while lockstep_next_signal(signals) > 0 {
            stopRequests += 1
            say(stopRequests == 1 ? "asked to stop by a signal" : "asked to stop at once by a second signal")
            take(stopRequests == 1 ? .stop : .kill)
        }
    }

    private func acceptClients() {
        guard listener >= 0 else { return }
        while true {
            let descriptor = lockstep_accept(listener)
            guard descriptor >= 0 else { return }
            connections.append(ControlConnection(descriptor))
        }
    }

    private func serveClients() {
        for index in connections.indices {
            for line in connections[index].requests() { answer(line, at: index) }
            connections[index].flush()
        }
        connections.removeAll { connection in
            if connection.isBroken { close(connection.descriptor) }
            return connection.isBroken
        }
    }

    // MARK: - Performing

    /// Gives the machine an event, and all that follow from performing what it decides.
    func take(_ event: SupervisorEvent) {
        events.append(event)
        guard events.count == 1 else { return }
        while let next = events.first {
            for effect in machine.handle(next, now: SystemCall.now()) { perform(effect) }
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
            _ = Glibc.kill(-pid, SIGKILL)
        case .fleetReady: tellReady(nil)
        case .fleetFailed(let why): tellReady(why)
        case .log(let line): say(line)
        case .finished: isFinished = true
        }
    }

    /// To the process itself. One that is stopped takes its signal when it goes on.
    private func signal(_ name: String, _ number: Int32) {
        guard let pid = children[name]?.pid else { return }
        _ = Glibc.kill(pid, number)
        _ = Glibc.kill(pid, SIGCONT)
    }

    private func spawn(_ name: String) {
        guard let index = configuration.plan.services.firstIndex(where: { $0.name == name }) else { return }
        let path = configuration.programDirectory + "/" + configuration.plan.services[index].program
        guard access(path, X_OK) == 0 else {
            events.append(.unstartable(name, reason: "there is no program \(path)"))
            return
        }
        guard let child = ChildProcess(path: path, environment: environment(of: index)) else {
            events.append(.unstartable(name, reason: "\(path) cannot be started: \(SystemCall.reason())"))
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
        variables["WATCHDOG_USEC"] = String(Int(configuration.limits.hung.inSeconds * 1_000_000))
        variables[ChildGuard.supervisorVariable] = String(getpid())
        variables[ChildGuard.fleetRunVariable] = fleetRun
        return variables
    }

    // MARK: - Logs

    /// A line of the supervisor's own.
    func say(_ text: String) {
        let line = LogLine.json(text, level: "info", service: "supervisor", at: SystemCall.timestamp())
        record([line], of: "supervisor")
        if configuration.printsLog {
            let printed = Array("lockstep: \(text)\n".utf8)
            _ = write(STDERR_FILENO, printed, printed.count)
        }
    }

    private func record(_ lines: [[UInt8]], of name: String) {
        guard !lines.isEmpty else { return }
        let time = SystemCall.timestamp()
        let lines = lines.map { LogLine.json($0, service: name, at: time) }
        for line in lines { log.append(name, line) }
        for index in connections.indices {
            guard let follows = connections[index].follows, follows.isEmpty || follows == name else { continue }
            connections[index].send(ControlReply(lines: lines.map { String(decoding: $0, as: UTF8.self) }))
        }
    }

    // MARK: - The end

    /// The lock is free before anybody hears that everything is stopped: who waited for that may start anew at once.
    private func finish() {
        notifier.stopping()
        say("everything is stopped")
        let home = configuration.home
        unlink(home.controlSocket)
        close(listener)
        listener = -1
        for (index, notification) in notifications.enumerated() {
            close(notification.descriptor)
            unlink(Self.notificationPath(home, index))
        }
        notifications = []
        log.close()
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
