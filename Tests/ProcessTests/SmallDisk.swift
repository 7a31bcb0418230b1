import Foundation
import Testing

/// A small file system in memory, in the mount namespace of one fleet: other processes don’t see it, and it is
/// removed with the fleet.
struct SmallDisk: Sendable {
    private static let program = "/usr/bin/unshare"

    /// Only root can create mount namespaces without a user namespace.
    private static var options: [String] { geteuid() == 0 ? ["-m"] : ["-m", "-r"] }

    /// Whether such a file system can be created here.
    static let isAvailable: Bool = {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: program)
        process.arguments = options + ["/bin/sh", "-c", "mount -t tmpfs -o size=1m none /mnt"]
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return false }
        process.waitUntilExit()
        return process.terminationStatus == 0
    }()

    /// The reason for skipping a test.
    static let isMissing: Comment =
        "No small file system can be mounted here, so that a full disk cannot be shown: be root, or allow user namespaces."

    /// The mount point, and the size in MiB.
    let folder: String
    let size: Int
    /// Whether it is read-only, even for root.
    var isReadOnly = false

    /// Starts a fleet that has this disk mounted.
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

    /// Returns a path on the disk as this process can open it.
    static func path(_ path: String, of fleet: ProcessFleet) throws -> String {
        guard let pid = fleet.pid("downloads") else {
            throw ProcessFleet.Unexpected(description: "there is no process of downloads")
        }
        return "/proc/\(pid)/root" + path
    }

    /// Writes a file of `bytes` bytes, or as many as fit.
    /// - Returns: the number of bytes written.
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
