package import BusKit
import CProcess
import LibC
package import PodcastModel
import ProcessKit

/// Starts a supervisor from another program, for `lockstep up`.
package struct SupervisorLauncher: Sendable {
    package enum Outcome: Sendable, Hashable {
        case started
        /// Another call has started the supervisor.
        case alreadyRunning
    }

    private let home: LockstepHome
    private let environment: [String: String]

    /// The variable with the folder of the executables; by default that of the running one is used.
    package static let programsVariable = "LOCKSTEP_PROGRAMS"

    /// The argument that makes the supervisor close its output once it runs.
    package static let detachedArgument = "--detached"
    /// The supervisor’s exit code when another one serves the home (EX_TEMPFAIL).
    package static let alreadyRunningCode: Int32 = 75

    package init(home: LockstepHome, environment: [String: String] = ProcessEnvironment.current) {
        self.home = home
        self.environment = environment
    }

    /// The folder of the executables.
    package static func programDirectory(_ environment: [String: String] = ProcessEnvironment.current) -> String {
        if let folder = environment[programsVariable], !folder.isEmpty { return folder }
        let text = SystemCall.target(ofLink: "/proc/self/exe")
        return text.lastIndex(of: "/").map { String(text[..<$0]) } ?? "."
    }

    /// Starts a supervisor that outlives this process, and waits until every service is ready.
    ///
    /// - Throws: `badConfiguration` if it can’t start; `alreadyRunning` if an unreachable supervisor runs;
    ///   `unavailable` naming the service that can’t be started (the supervisor retries it); `outcomeUnknown` after
    ///   `limit`.
    package func startDetached(within limit: Duration = .seconds(30)) throws(Failure) -> Outcome {
        try home.prepare()
        try refuseStray()
        let client = SupervisorControlClient(home: home)
        let program = Self.programDirectory(environment) + "/lockstep-supervisor"
        let due = SystemClocks.monotonic().advanced(by: limit)
        while true {
            if FileLock.isHeld(home.fleetLock) {
                // Another process holds the lock; it may be opening its socket, or ending: then the start is retried.
                do throws(Failure) {
                    try client.ready(within: limit)
                    return .alreadyRunning
                } catch {
                    guard error.known == .noFleet || error.known == .alreadyRunning, SystemClocks.monotonic() < due
                    else { throw error }
                }
                _ = poll(nil, 0, 20)
                continue
            }
            guard access(program, X_OK) == 0 else {
                throw Failure(
                    .badConfiguration,
                    "The program \(program) is missing. Set \(Self.programsVariable) to the folder that contains it.")
            }
            let (code, message) = try launch(program)
            switch code {
            case nil:
                try client.ready(within: limit)
                return .started
            case Self.alreadyRunningCode where SystemClocks.monotonic() < due: continue
            default:
                throw Failure(
                    .badConfiguration,
                    message.isEmpty ? "The supervisor exited with status \(code ?? 0) during its start." : message)
            }
        }
    }

    /// - Throws: `alreadyRunning` if a fleet of an earlier version still runs, or one whose folder was deleted: two
    ///   would play at once.
    private func refuseStray() throws(Failure) {
        let (earlier, lock) = (home.earlierFleetLock, home.fleetLock)
        // A supervisor of this version holds both locks, and releases the earlier one first.
        if earlier != lock, FileLock.isHeld(earlier), !FileLock.isHeld(lock), FileLock.isHeld(earlier) {
            let process = FileLock.holder(of: earlier).map { " (process \($0))" } ?? ""
            throw Failure(
                .alreadyRunning,
                "A fleet of an earlier version is still running\(process). Stop it with `lockstep down`, then start again."
            )
        }
        guard let stray = StraySupervisors(home: home).find().first else { return }
        throw Failure(
            .alreadyRunning,
            "A fleet whose folder was deleted is still running (process \(stray)). Stop it with `lockstep down`, then start again."
        )
    }

    /// Replaces this program with the supervisor, in the foreground. Returns only on failure.
    package func becomeSupervisor() -> Failure {
        do throws(Failure) { try refuseStray() } catch { return error }
        let program = Self.programDirectory(environment) + "/lockstep-supervisor"
        let words = [strdup(program), nil]
        execv(program, words)
        return Failure(.badConfiguration, "\(program) can’t be started: \(SystemError.reason()).")
    }

    /// Returns the exit code and message if it ended at its start; nil once it runs and has closed its output.
    private func launch(_ program: String) throws(Failure) -> (Int32?, String) {
        var ends: [Int32] = [-1, -1]
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { if nothing >= 0 { close(nothing) } }
        guard nothing >= 0, lockstep_pipe(&ends, 0) == 0 else {
            throw Failure(.badConfiguration, "No pipe for the supervisor could be opened: \(SystemError.reason()).")
        }
        var variables = environment.filter { $0.key != "NOTIFY_SOCKET" && $0.key != ChildGuard.supervisorVariable }
        variables.merge(home.environment) { _, ours in ours }
        variables[Self.programsVariable] = Self.programDirectory(environment)
        let pid = SystemCall.spawn(
            program, [Self.detachedArgument], environment: variables, input: nothing, output: ends[1],
            parentDeathSignal: 0, directory: "/")
        let reason = SystemError.reason()
        close(ends[1])
        defer { close(ends[0]) }
        guard pid > 0 else { throw Failure(.badConfiguration, "\(program) can’t be started: \(reason).") }
        var output: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = read(ends[0], &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            output += chunk[..<count]
        }
        let message = String(decoding: output.split(separator: UInt8(ascii: "\n")).last ?? [], as: UTF8.self)
        guard output.isEmpty else {
            var status: Int32 = 0
            while waitpid(pid, &status, 0) < 0, errno == EINTR {}
            return ((status >> 8) & 0xff, message)
        }
        return (nil, "")
    }
}
