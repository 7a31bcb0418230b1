import FoundationEssentials
import LibC
package import PodcastModel

/// A copy of the database in the folder for backups, which can be listed without a running fleet.
package struct DatabaseCopy: Sendable, Hashable {
    package enum Kind: String, CaseIterable, Sendable {
        /// A complete copy of the database.
        case backup
        /// A copy of queues, session, positions, recent play sessions and subscriptions.
        case snapshot
    }

    /// The suffixes of SQLite’s companion files of a database.
    package static let companions = ["-wal", "-shm", "-journal"]

    package var kind: Kind
    package var path: String
    /// The time of its creation, from its name.
    package var at: Timestamp
    package var bytes: UInt64

    package init(kind: Kind, path: String, at: Timestamp, bytes: UInt64) {
        (self.kind, self.path, self.at, self.bytes) = (kind, path, at, bytes)
    }

    /// The number of bytes of backups for each day.
    private static let backupBytesPerDay: UInt64 = 24 << 20
    private static let longestInterval: UInt64 = 28

    /// The time from this backup to the next one, in ms: the larger, the longer, because a library of hundreds of MB
    /// would wear out an SD card. Side snapshots save what users did in between, and feeds return their episodes.
    package var interval: Int64 {
        let days = min(max((bytes + Self.backupBytesPerDay - 1) / Self.backupBytesPerDay, 1), Self.longestInterval)
        return Int64(days) * 86_400_000
    }

    package var name: String { path.split(separator: "/").last.map(String.init) ?? path }

    /// The path of a copy that includes all changes up to `moment`.
    package static func path(_ kind: Kind, at moment: Timestamp, in folder: String) -> String {
        "\(folder)/\(kind.rawValue)-\(CalendarTime(moment).compact).db"
    }

    /// The size of a file in bytes; nil if it doesn’t exist.
    package static func size(of path: String) -> UInt64? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        return UInt64(max(0, status.st_size))
    }

    /// A path at which neither a database nor companion files exist: this path, or this path with the next free number.
    package static func unusedPath(_ path: String) -> String {
        var unused = path
        var count = 1
        while ([""] + companions).contains(where: { access(unused + $0, F_OK) == 0 }) {
            count += 1
            unused = "\(path)-\(count)"
        }
        return unused
    }

    /// All copies, the newest first; empty for an unreadable folder.
    package static func all(in folder: String) -> [DatabaseCopy] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return names.compactMap { DatabaseCopy(named: $0, in: folder) }
            .sorted { ($0.at, $0.path) > ($1.at, $1.path) }
    }

    /// Parses the name of a copy; nil for every other file.
    private init?(named name: String, in folder: String) {
        for kind in Kind.allCases where name.hasPrefix(kind.rawValue + "-") && name.hasSuffix(".db") {
            guard let time = CalendarTime(compact: name.dropFirst(kind.rawValue.count + 1).dropLast(3)) else {
                return nil
            }
            let path = "\(folder)/\(name)"
            self.init(kind: kind, path: path, at: time.timestamp, bytes: Self.size(of: path) ?? 0)
            return
        }
        return nil
    }
}
