package import BusKit
import LibC
package import PodcastModel

/// The unreachable supervisors of a home, whose folder with their lock and sockets was deleted. They are found by their
/// environment, which has the same data folder, and by the deleted lock that they hold.
package struct StraySupervisors: Sendable {
    private let home: LockstepHome

    package init(home: LockstepHome) { self.home = home }

    /// Returns their processes; none while a supervisor holds the lock of `home`, or on a system without `/proc`.
    package func find() -> [Int32] {
        guard !FileLock.isHeld(home.fleetLock) else { return [] }
        return SystemCall.names(in: "/proc").compactMap { Int32($0) }.filter { pid in
            pid != getpid() && ProcessFacts.name(of: pid) == Self.programName && isOurs(pid)
        }
    }

    /// Requests their graceful end and waits for it. Returns whether there were any.
    ///
    /// - Throws: `outcomeUnknown` naming the processes that still run after 30 s.
    package func stop(within limit: Duration = .seconds(30)) throws(Failure) -> Bool {
        let (stopped, left) = ProcessEnding.end(with: SIGTERM, within: limit, find)
        guard left.isEmpty else {
            let pids = left.map(String.init).joined(separator: ", ")
            throw Failure(.outcomeUnknown, "The fleet hasn’t stopped in time. Its supervisor is process \(pids).")
        }
        return !stopped.isEmpty
    }

    /// The program’s name, which the system truncates to 15 bytes.
    private static let programName = String("lockstep-supervisor".prefix(15))

    private func isOurs(_ pid: Int32) -> Bool {
        let folder = "/proc/\(pid)"
        var status = stat()
        guard stat(folder, &status) == 0, status.st_uid == geteuid() else { return false }
        guard holdsDeletedLock(folder) else { return false }
        let variables = ProcessEnvironment.variables(
            SmallFile.text(of: folder + "/environ").split(separator: "\0").lazy.map { String($0) })
        let its = try? LockstepHome(
            environment: variables, userID: geteuid(),
            workingDirectory: SystemCall.target(ofLink: folder + "/cwd"), directoryExists: { _ in false })
        return its?.dataDirectory == home.dataDirectory
    }

    /// Whether the process holds a deleted lock; a supervisor that is starting or ending holds none.
    private func holdsDeletedLock(_ folder: String) -> Bool {
        let name = home.fleetLock.split(separator: "/").last ?? ""
        return SystemCall.names(in: folder + "/fd").contains { descriptor in
            SystemCall.target(ofLink: "\(folder)/fd/\(descriptor)").hasSuffix("/\(name) (deleted)")
        }
    }
}
