import FleetHome
import LibC
import LockstepClient
import PodcastModel

/// Checks the database’s file without opening the database, which only its service may do.
struct DatabaseFileCheck: Sendable {
    let home: LockstepHome

    /// The first bytes of every SQLite database.
    private static let magic = Array("SQLite format 3".utf8) + [0]
    private static let headerSize = 100

    func finding() -> Finding {
        var status = stat()
        guard lstat(home.database, &status) == 0 else {
            guard errno == ENOENT || errno == ENOTDIR else {
                return unreadable(SystemError.reason())
            }
            guard newestBackup == nil else {
                return .warning("database", "\(home.database) is missing.", do: advice)
            }
            return .ok("database", "There is no database yet.")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { return unreadable("it isn’t a regular file") }
        guard access(home.database, R_OK | W_OK) == 0, let header = header() else {
            return unreadable(SystemError.reason())
        }
        if status.st_size == 0, newestBackup == nil { return .ok("database", "It is empty.") }
        let hasLog = size(home.database + "-wal") > 0
        if let damage = Self.damage(header: header, size: Int(status.st_size), hasLog: hasLog) {
            return .fault("database", "\(home.database) is damaged: \(damage).", do: advice)
        }
        guard access(home.database + ".suspect", F_OK) != 0 else {
            return .warning(
                "database", "\(home.database) may be damaged: reading it failed when the fleet last ran.", do: advice)
        }
        return .ok("database", "The first page is valid; the rest is checked when the fleet starts.")
    }

    /// The damage that is visible in the file’s first page; nil if there is none.
    static func damage(header: [UInt8], size: Int, hasLog: Bool) -> String? {
        guard header.count == headerSize, Array(header.prefix(magic.count)) == magic else {
            return size == 0 ? "it is empty" : "it doesn’t begin like a SQLite database"
        }
        func number(_ offset: Int, _ length: Int) -> Int {
            header[offset..<offset + length].reduce(0) { $0 << 8 | Int($1) }
        }
        // The value 1 means a page size of 65,536 bytes.
        let pageSize = number(16, 2) == 1 ? 65_536 : number(16, 2)
        guard pageSize >= 512, pageSize & (pageSize - 1) == 0 else { return "its page size is \(pageSize)" }
        // The log may hold the missing end of the file; and the number of pages may be outdated.
        let expected = number(28, 4) * pageSize
        guard !hasLog, number(24, 4) == number(92, 4), size < expected else { return nil }
        return "it has \(size) of \(expected) bytes"
    }

    private func unreadable(_ reason: String) -> Finding {
        .fault(
            "database", "\(home.database) can’t be read or written: \(reason).", do: "Check its owner and permissions.")
    }

    private var advice: String {
        guard let newestBackup else {
            return
                "There is no backup. To recover the file with other tools, copy it first: `lockstep up --detach` renames it and starts with an empty library."
        }
        return
            "Start the fleet with `lockstep up --detach`: if the file is unusable, it is renamed and replaced by the newest good backup (\(TimeText.minute(milliseconds: newestBackup.at.milliseconds)))."
    }

    private var newestBackup: DatabaseCopy? { DatabaseCopy.all(in: home.backupDirectory).first }

    private func header() -> [UInt8]? {
        let descriptor = open(home.database, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: Self.headerSize)
        let count = read(descriptor, &bytes, bytes.count)
        return count < 0 ? nil : Array(bytes.prefix(count))
    }

    private func size(_ path: String) -> Int {
        var status = stat()
        return stat(path, &status) == 0 ? Int(status.st_size) : 0
    }
}
