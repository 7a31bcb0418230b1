import BusKit
import FoundationEssentials
import LibC
import PodcastModel

/// The paths of the database and its copies, and the durable operations on their files.
package struct StoreFiles: Sendable, Hashable {
    let database: String
    /// The folder of backups and side snapshots.
    let backups: String

    /// The file that marks the database as possibly damaged: the next start reads all of it first.
    var suspicion: String { database + ".suspect" }
    /// The file of credentials that were found in an older database, for the feeds service.
    var movedSecrets: SecretsFile { SecretsFile(path: Self.folder(of: database) + "/secrets.moved.json") }
    /// Makes the next start read the whole database before it is used.
    func suspect() throws {
        guard FileManager.default.createFile(atPath: suspicion, contents: nil) else {
            throw FileCallError(call: "create", path: suspicion)
        }
    }

    /// The unfinished database of a recovery.
    var restoring: String { database + ".restoring" }
    /// The finished database of a recovery, which becomes the database after the unusable one is moved.
    var restored: String { database + ".restored" }

    /// The copies, newest first.
    func copies() -> [DatabaseCopy] { DatabaseCopy.all(in: backups) }

    func copiesWithPasswords() -> [DatabaseCopy] {
        copies().filter { copy in
            Self.header(of: copy.path).map {
                $0.application == Schema.applicationID && $0.version < Schema.versionWithoutPasswords
            } ?? false
        }
    }

    /// Creates the folders, for this user alone, and removes unfinished copies.
    func prepare() throws(Failure) {
        do {
            for folder in [backups, Self.folder(of: database)] where !folder.isEmpty {
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            }
        } catch {
            throw Failure(
                Self.isDiskFull(beside: backups) ? .diskFull : .storageFailed,
                "The folders of the database can’t be created: \(error)")
        }
        for name in (try? FileManager.default.contentsOfDirectory(atPath: backups)) ?? []
        where name.hasPrefix(".") && name.contains(".db.part") {
            remove("\(backups)/\(name)")
        }
        removeDatabase(restoring)
    }

    /// The path of an unfinished copy.
    static func partial(_ path: String) -> String {
        let folder = Self.folder(of: path)
        return "\(folder)/.\(path.split(separator: "/").last ?? "").part"
    }

    /// Renames a finished file durably: its content is synchronised before the name.
    static func publish(_ partial: String, as path: String) throws {
        try synchronise(partial)
        guard rename(partial, path) == 0 else { throw FileCallError(call: "rename", path: path) }
        try synchronise(Self.folder(of: path))
    }

    static func synchronise(_ path: String) throws {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileCallError(call: "open", path: path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw FileCallError(call: "fsync", path: path) }
    }

    /// An unused path to which the database can be moved.
    func pathAside(_ reason: String, at moment: Timestamp) -> String {
        DatabaseCopy.unusedPath("\(database).\(reason)-\(CalendarTime(moment).compact)")
    }

    /// Moves the database and its companions, durably.
    ///
    /// The companions are moved first: a database without its log can be recognised as incomplete, but a remaining
    /// log would be applied to the next database at this path.
    func moveAside(to target: String) throws {
        for suffix in DatabaseCopy.companions + [""] where Self.exists(database + suffix) {
            guard rename(database + suffix, target + suffix) == 0 else {
                throw FileCallError(call: "rename", path: database + suffix)
            }
        }
        try Self.synchronise(Self.folder(of: database))
    }

    func remove(_ path: String) { unlink(path) }

    /// Removes a database file with its companions, if they exist.
    func removeDatabase(_ path: String) {
        for suffix in DatabaseCopy.companions + [""] { unlink(path + suffix) }
    }

    private static func folder(of path: String) -> String {
        guard let end = path.lastIndex(of: "/") else { return "." }
        return end == path.startIndex ? "/" : String(path[..<end])
    }

    /// Reads the application ID and version in the header of a database file (SQLite’s file format, offsets 68 and 60);
    /// nil if it isn’t a database or can’t be read.
    static func header(of path: String) -> (application: Int32, version: Int32)? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 100)
        guard read(descriptor, &bytes, bytes.count) == bytes.count, bytes.starts(with: "SQLite format 3\u{0}".utf8)
        else { return nil }
        func number(at offset: Int) -> Int32 {
            Int32(bitPattern: bytes[offset..<(offset + 4)].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        }
        return (number(at: 68), number(at: 60))
    }

    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }

    /// Whether the file system of `path`’s folder has less than 64 KiB left.
    static func isDiskFull(beside path: String) -> Bool { freeBytes(beside: path).map { $0 < 65_536 } ?? false }

    /// The unused bytes in the file system of `path`’s folder; nil if it doesn’t say.
    static func freeBytes(beside path: String) -> UInt64? {
        var status = statvfs()
        guard statvfs(Self.folder(of: path), &status) == 0 else { return nil }
        return UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
    }
}

/// A failed system call.
struct FileCallError: Error, CustomStringConvertible {
    let call: String
    let path: String
    let number: Int32

    /// Creates an error with the reason in `errno`.
    init(call: String, path: String) {
        number = errno
        self.call = call
        self.path = path
    }

    var description: String { "\(call) of \(path): \(SystemError.reason(number))" }
}
