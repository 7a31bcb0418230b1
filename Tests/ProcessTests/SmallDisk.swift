import Foundation
import Testing

/// A small file system in memory at a folder, in a mount namespace that a fleet alone lives in: nobody else sees it, and
/// it is gone with the fleet.
struct SmallDisk: Sendable {
    private static let program = "/usr/bin/unshare"

    /// Only root makes namespaces without becoming root in a user's namespace first.
    private static var options: [String] { geteuid() == 0 ? ["-m"] : ["-m", "-r"] }

    /// Whether such a file system can be made here.
    static let isAvailable: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = options + ["/bin/sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// The words with which a test is skipped.
    static let isMissing: Comment =
        "No small file system can be mounted here, so that a full disk cannot be shown: be root, or allow user namespaces."

    /// Where it is, and how large, in units of 1 MiB.
    let folder: String
    let size: Int
    /// Whether nobody can write to it, root included.
    var isReadOnly = false

    /// Has a fleet come up on it.
    func up(_ fleet: ProcessFleet) async throws {
        let script = #"mkdir -p "$1" && mount -t tmpfs -o "size=$2m,mode=700,$3" none "$1" && exec "$4" up --detach"#
        let outcome = try await fleet.run(
            Self.program,
            Self.options + [
                "/bin/sh", "-c", script, "sh", folder, "\(size)", isReadOnly ? "ro" : "rw",
                ProcessFleet.binaries + "/lockstep",
            ])
        guard outcome.status == 0 else {
            throw ProcessFleet.Unexpected(description: "no fleet on a small disk: \(outcome.errors)")
        }
    }

    /// A path in it as this process sees it.
    static func path(_ path: String, of fleet: ProcessFleet) throws -> String {
        guard let pid = fleet.pid("downloads") else {
            throw ProcessFleet.Unexpected(description: "there is no process of downloads")
        }
        return "/proc/\(pid)/root" + path
    }

    /// Writes a file of so many bytes, or as many as there is room for.
    /// - Returns: how many.
    @discardableResult
    static func fill(_ path: String, bytes: Int = .max) throws -> Int {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw ProcessFleet.Unexpected(description: "\(path) cannot be written") }
        defer { close(descriptor) }
        var count = 0
        let block = [UInt8](repeating: 0xff, count: 65_536)
        while count < bytes {
            let written = write(descriptor, block, min(block.count, bytes - count))
            guard written > 0 else { break }
            count += written
        }
        return count
    }
}
