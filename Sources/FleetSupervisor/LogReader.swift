public import BusKit

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Reads what the services have logged, with or without a running fleet.
public struct LogReader: Sendable {
    private let folder: String

    /// The logs of this home.
    public init(_ home: LockstepHome) { folder = home.logDirectory }

    /// The services that have a log.
    public func services() -> [String] {
        SystemCall.names(in: folder).filter { $0.hasSuffix(".log") }.map { String($0.dropLast(4)) }
    }

    /// The last lines of one service, or of all in the order of their times; at most `count`, oldest first.
    public func last(_ count: Int, of service: String?) -> [String] {
        guard let service else {
            let lines = services().flatMap { last(count, of: $0) }
            return Array(lines.enumerated().sorted { Self.key($0) < Self.key($1) }.map(\.element).suffix(count))
        }
        var lines = tail(folder + "/\(service).log")
        if lines.count < count { lines = tail(folder + "/\(service).log.1") + lines }
        return lines.suffix(count)
    }

    /// The time that stands in the line; lines of one time stay in their order.
    private static func key(_ line: (offset: Int, element: String)) -> (String, Int) {
        guard let range = line.element.firstRange(of: "\"time\":\""), range.upperBound < line.element.endIndex else {
            return ("", line.offset)
        }
        return (String(line.element[range.upperBound...].prefix { $0 != "\"" }), line.offset)
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
