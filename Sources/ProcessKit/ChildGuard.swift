import BusKit
import CProcess
import LibC

/// Ends a service when its supervisor ends, in three ways, since none suffices alone: the kernel’s parent death signal
/// (Linux only), a check after setting it that the supervisor still runs, and the end of standard input, a pipe.
package enum ChildGuard {
    /// The supervisor’s pid; unset for a service that was started by hand.
    package static let supervisorVariable = "LOCKSTEP_SUPERVISOR_PID"

    /// The ID of a run of the fleet, by which a service distinguishes its own restart from the whole fleet’s.
    package static let fleetRunVariable = "LOCKSTEP_FLEET_RUN"

    /// The supervisor that started this process; nil if it was started by hand.
    package static func supervisor(_ environment: [String: String] = ProcessEnvironment.current) -> Int32? {
        environment[supervisorVariable].flatMap(Int32.init).flatMap { $0 > 0 ? $0 : nil }
    }

    /// Binds the process to its supervisor, if it has one; the first call in a service’s `main`.
    package static func install(environment: [String: String] = ProcessEnvironment.current) {
        guard let supervisor = supervisor(environment) else { return }
        _ = lockstep_set_parent_death_signal(SIGKILL)
        // The supervisor may have ended between the fork and this call: then no signal arrives.
        if getppid() != supervisor { _exit(0) }
        watchStandardInput()
    }

    private static func watchStandardInput() {
        var status = stat()
        guard fstat(STDIN_FILENO, &status) == 0, status.st_mode & S_IFMT == S_IFIFO else { return }
        let thread = SystemThread(stackSize: 64 << 10) {
            var byte: UInt8 = 0
            while true {
                let count = read(STDIN_FILENO, &byte, 1)
                if count == 0 { _exit(0) }
                if count < 0, errno != EINTR { return }
            }
        }
        thread?.detach()
    }
}
