import LibC
import PodcastModel
import SupervisorControl

extension CrashReports {
    private static let kept = 50

    /// The variable that has a Swift program write a report of its own when it crashes.
    var environment: [String: String] {
        ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no,output-to=\(folder),format=json"]
    }

    /// Ensures that the crashed process left one readable report under its service’s name. The runtime names its
    /// files after the process's name, cut to 15 bytes; where it left none, or half a one, what is known is written.
    func ensureReport(service: String, pid: Int32, end: String, threads: [String], lastLines: [[UInt8]]) {
        var isComplete = false
        for name in SystemCall.names(in: folder) {
            let pieces = name.components(around: "-\(pid)-")
            guard let pieces, !name.contains("-supervisor.json") else { continue }
            let path = folder + "/" + name
            let wanted = folder + "/lockstep-\(service)-\(pid)-\(pieces)"
            if path != wanted { _ = rename(path, wanted) }
            let text = SystemCall.contents(wanted, limit: 64 << 20) ?? []
            if text.last(where: { $0 > 0x20 }) == UInt8(ascii: "}") { isComplete = true } else { _ = unlink(wanted) }
        }
        if !isComplete { write(service: service, pid: pid, end: end, threads: threads, lastLines: lastLines) }
        for old in all().dropFirst(Self.kept) { _ = unlink(old.path) }
    }

    private func write(service: String, pid: Int32, end: String, threads: [String], lastLines: [[UInt8]]) {
        let lines = lastLines.map { JSONText.quoted(String(decoding: $0, as: UTF8.self)) }.joined(separator: ",\n    ")
        let text = """
            {
              "timestamp": \(JSONText.quoted(CalendarTime(SystemClocks.wall()).rfc3339)),
              "kind": "supervisorReport",
              "process": \(JSONText.quoted("lockstep-" + service)),
              "pid": \(pid),
              "description": \(JSONText.quoted(end)),
              "threads": [\(threads.map(JSONText.quoted).joined(separator: ", "))],
              "lastLines": [
                \(lines)
              ]
            }

            """
        SystemCall.write(text, to: folder + "/lockstep-\(service)-\(pid)-supervisor.json")
    }
}

extension String {
    /// The text behind `separator`, if it occurs.
    fileprivate func components(around separator: String) -> String? {
        let bytes = Array(utf8)
        let wanted = Array(separator.utf8)
        guard bytes.count >= wanted.count else { return nil }
        for start in 0...(bytes.count - wanted.count) where Array(bytes[start..<(start + wanted.count)]) == wanted {
            return String(decoding: bytes[(start + wanted.count)...], as: UTF8.self)
        }
        return nil
    }
}
