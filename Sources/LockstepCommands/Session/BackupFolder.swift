import BusKit
import FoundationEssentials
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The folder of backups, which can be listed without a fleet.
struct BackupFolder: Sendable {
    /// A copy of the database.
    struct File: Sendable, Hashable {
        var path: String
        /// The last part of its path.
        var name: String { path.split(separator: "/").last.map(String.init) ?? path }
        /// When it was made, by its name; in milliseconds since 1970.
        var at: Int64
        /// Its size.
        var bytes: UInt64
        /// Whether it holds the queue, the positions and the subscriptions only.
        var isSideSnapshot: Bool
    }

    private let path: String

    init(_ home: LockstepHome) {
        path = home.backupDirectory
    }

    /// The backups, the newest first; none where the folder can’t be read.
    var files: [File] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.compactMap { name in
            for kind in ["backup", "snapshot"] where name.hasPrefix(kind + "-") && name.hasSuffix(".db") {
                guard let at = Self.time(name.dropFirst(kind.count + 1).dropLast(3)) else { return nil }
                var status = stat()
                let bytes = stat(path + "/" + name, &status) == 0 ? UInt64(status.st_size) : 0
                return File(path: path + "/" + name, at: at, bytes: bytes, isSideSnapshot: kind == "snapshot")
            }
            return nil
        }.sorted { ($0.at, $0.path) > ($1.at, $1.path) }
    }

    /// The moment that a name such as `20260102T030405678Z` says, in milliseconds since 1970.
    static func time(_ text: Substring) -> Int64? {
        let digits = Array(text.utf8)
        guard digits.count == 19, digits[8] == UInt8(ascii: "T"), digits[18] == UInt8(ascii: "Z") else { return nil }
        func number(_ range: Range<Int>) -> Int32? { Int32(String(decoding: digits[range], as: UTF8.self)) }
        guard let year = number(0..<4), let month = number(4..<6), let day = number(6..<8), let hour = number(9..<11),
            let minute = number(11..<13), let second = number(13..<15), let millisecond = number(15..<18)
        else { return nil }
        var time = tm()
        (time.tm_year, time.tm_mon, time.tm_mday) = (year - 1_900, month - 1, day)
        (time.tm_hour, time.tm_min, time.tm_sec) = (hour, minute, second)
        return Int64(timegm(&time)) * 1_000 + Int64(millisecond)
    }
}
