import Foundation

/// The processes of this machine, as the kernel lists them.
enum ProcessTable {
    /// The kernel’s data on a process.
    struct Entry {
        var pid: pid_t
        /// The state’s letter: `R`, `S`, `Z` and so on.
        var state: Character
        /// The leader of the process’s session.
        var session: pid_t

        /// Whether it runs; an ended process may still wait to be reaped.
        var isRunning: Bool { state != "Z" && state != "X" }

        init?(pid: pid_t) {
            guard let stat = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
                // The name, in parentheses, may contain any character.
                let end = stat.lastIndex(of: ")")
            else { return nil }
            let fields = stat[stat.index(after: end)...].split(separator: " ")
            guard fields.count > 3, let state = fields[0].first, let session = pid_t(fields[3]) else { return nil }
            self.pid = pid
            self.state = state
            self.session = session
        }
    }

    /// Returns the running processes for which `condition` is true.
    static func running(where condition: (Entry) -> Bool) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0).flatMap(Entry.init) }.filter { $0.isRunning && condition($0) }.map(\.pid)
    }

    /// Returns the thread of a process whose name ends with `name`.
    static func thread(_ name: String, of pid: pid_t) -> pid_t? {
        let folder = "/proc/\(pid)/task"
        let threads = ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).compactMap { pid_t($0) }
        return threads.first { thread in
            // The first thread has the program’s name.
            thread != pid
                && (try? String(contentsOfFile: "\(folder)/\(thread)/comm", encoding: .utf8))?
                    .hasSuffix(name + "\n") == true
        }
    }

    /// Waits until the processes have ended.
    /// - Throws: the processes that still run after a while.
    static func untilGone(_ pids: [pid_t]) async throws {
        try await untilNone { pids.filter { Entry(pid: $0)?.isRunning == true } }
    }

    /// Kills every process of a session, including new ones, and waits until none is left.
    static func endSession(_ leader: pid_t) async throws {
        try await untilNone {
            let left = running { $0.session == leader }
            for pid in left { kill(pid, SIGKILL) }
            return left
        }
    }

    /// Waits until `left` returns no process.
    /// - Throws: the processes that still run after a while.
    static func untilNone(_ left: () -> [pid_t]) async throws {
        let deadline = ContinuousClock.now.advanced(by: .seconds(20))
        while true {
            let pids = left()
            if pids.isEmpty { return }
            guard ContinuousClock.now < deadline else {
                throw ProcessFleet.Unexpected(description: "still alive: \(pids)")
            }
            try await ContinuousClock().sleep(for: .milliseconds(5))
        }
    }
}
