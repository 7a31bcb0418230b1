package import BusKit
import LibC

/// Reads the services’ logs, with or without a running fleet.
package struct LogReader: Sendable {
    private let folder: String

    package init(_ home: LockstepHome) { folder = home.logDirectory }

    private var services: [String] {
        SystemCall.names(in: folder).filter { $0.hasSuffix(".log") }.map { String($0.dropLast(4)) }
    }

    /// Returns the last `count` lines of one service, or of all in order of time, the oldest first.
    package func last(_ count: Int, of service: String?) -> [String] {
        guard let service else {
            var lines: [(time: Int64, line: String)] = []
            for service in services {
                var time: Int64 = 0
                for line in last(count, of: service) {
                    time = Self.key(line) ?? time
                    lines.append((time, line))
                }
            }
            let sorted = lines.enumerated().sorted {
                ($0.element.time, $0.offset) < ($1.element.time, $1.offset)
            }
            return sorted.suffix(count).map(\.element.line)
        }
        var lines = tail(folder + "/\(service).log")
        if lines.count < count { lines = tail(folder + "/\(service).log.1") + lines }
        return lines.suffix(count)
    }

    /// Returns the time in a line; nil for a line without a time, which keeps its position among its service’s lines.
    private static func key(_ line: String) -> Int64? {
        guard let range = line.firstRange(of: "\"at\":") else { return nil }
        return Int64(line[range.upperBound...].prefix { $0.isASCII && $0.isNumber })
    }

    /// The whole lines within the last 512 KiB of a file.
    private func tail(_ path: String) -> [String] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        let size = Int(lseek(descriptor, 0, SEEK_END))
        let start = max(0, size - 524_288)
        var bytes = [UInt8](repeating: 0, count: max(0, size - start))
        let count = pread(descriptor, &bytes, bytes.count, off_t(start))
        guard count > 0 else { return [] }
        let lines = bytes[..<count].split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: true)
        return lines.dropFirst(start > 0 ? 1 : 0).map { String(decoding: $0, as: UTF8.self) }
    }
}
