import BusKit
import LibC
import PodcastModel
import SupervisorControl

extension CrashReports {
    private static let kept = 50

    /// The variable that makes a Swift program write a report when it crashes.
    var environment: [String: String] {
        ["SWIFT_BACKTRACE": "enable=yes,interactive=no,color=no,output-to=\(folder),format=json"]
    }

    /// Ensures that the crashed process left one readable report under its service’s name. The runtime uses the
    /// process’s name, truncated to 15 bytes; a report of the known facts replaces a missing or incomplete one.
    func ensureReport(service: String, pid: Int32, end: String, threads: [String], lastLines: [[UInt8]]) {
        var isComplete = false
        for name in SystemCall.names(in: folder) {
            guard let number = name.firstRange(of: "-\(pid)-"), !name.contains("-supervisor.json") else { continue }
            let path = folder + "/" + name
            let wanted = folder + "/lockstep-\(service)-\(pid)-\(name[number.upperBound...])"
            if path != wanted { _ = rename(path, wanted) }
            let text = (try? SmallFile.contents(wanted, limit: 64 << 20)) ?? []
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
        let path = folder + "/lockstep-\(service)-\(pid)-supervisor.json"
        try? SmallFile.replaceWhole(path, with: text, isDurable: false)
    }
}
