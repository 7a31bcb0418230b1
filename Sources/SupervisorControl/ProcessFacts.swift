import BusKit
import LibC

/// Properties of a process, read from `/proc`; nil if they can’t be read.
package enum ProcessFacts {
    /// Its proportional set size in bytes.
    package static func proportionalMemory(of pid: Int32) -> Int? {
        for line in SmallFile.text(of: "/proc/\(pid)/smaps_rollup").split(separator: "\n") where line.hasPrefix("Pss:")
        {
            return line.split(separator: " ").dropFirst().first.flatMap { Int($0) }.map { $0 * 1_024 }
        }
        return nil
    }

    /// The processor time that it has used, in seconds.
    package static func processorTime(of pid: Int32) -> Double? {
        let fields = statistics(of: pid)
        guard fields.count > 12, let user = Double(fields[11]), let system = Double(fields[12]) else { return nil }
        return (user + system) / Double(max(sysconf(Int32(_SC_CLK_TCK)), 1))
    }

    /// The number of bytes that it caused to be written to disks.
    package static func bytesWritten(by pid: Int32) -> Int? {
        var counts: [Substring: Int] = [:]
        for line in SmallFile.text(of: "/proc/\(pid)/io").split(separator: "\n") {
            let fields = line.split(separator: " ")
            if fields.count == 2 { counts[fields[0]] = Int(fields[1]) }
        }
        // Data of a file that was deleted before it reached the disk was not written.
        return counts["write_bytes:"].map { max(0, $0 - (counts["cancelled_write_bytes:"] ?? 0)) }
    }

    /// The time of its start, in ticks since the boot: with the pid it identifies one process.
    package static func startTime(of pid: Int32) -> UInt64? {
        let fields = statistics(of: pid)
        return fields.count > 19 ? UInt64(fields[19]) : nil
    }

    /// The name of its program, which the system truncates to 15 bytes.
    package static func name(of pid: Int32) -> String? {
        let name = SmallFile.text(of: "/proc/\(pid)/comm").prefix { $0 != "\n" }
        return name.isEmpty ? nil : String(name)
    }

    /// The threads of a process: name, state, and the kernel function in which each waits.
    package static func threads(of pid: Int32) -> [String] {
        SystemCall.names(in: "/proc/\(pid)/task").map { thread in
            let folder = "/proc/\(pid)/task/\(thread)"
            let name = SmallFile.text(of: folder + "/comm").prefix { $0 != "\n" }
            let state = fields(SmallFile.text(of: folder + "/stat")).first ?? "?"
            return "\(thread) \(name): \(state), \(SmallFile.text(of: folder + "/wchan"))"
        }
    }

    /// The fields of `/proc/PID/stat` after the name, which may contain spaces: the first is the state.
    private static func statistics(of pid: Int32) -> [Substring] { fields(SmallFile.text(of: "/proc/\(pid)/stat")) }

    private static func fields(_ text: String) -> [Substring] {
        guard let end = text.lastIndex(of: ")") else { return [] }
        return text[text.index(after: end)...].split(separator: " ")
    }
}
