import FoundationEssentials
import LibC
import PodcastModel

/// A folder for a test’s files, with a path that is short enough for sockets; removed with its last reference.
package final class TemporaryFolder: Sendable {
    /// The folder’s path.
    package let path: String

    /// A socket’s path may have 107 bytes; the longest socket name below a test’s folder needs less than the rest.
    private static let longestParent = 60

    /// Creates a new, empty folder below `TMPDIR`, or below `/tmp` if that isn’t set or is too long for sockets.
    /// - Throws: `badConfiguration` if it can’t be created.
    package init() throws {
        let wanted = getenv("TMPDIR").map { String(cString: $0) } ?? ""
        let parent = (1...Self.longestParent).contains(wanted.utf8.count) ? wanted : "/tmp"
        var template = Array("\(parent)/lockstep-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else {
            throw Failure(
                .badConfiguration, "No folder can be made in \(parent): \(String(cString: strerror(errno))).")
        }
        path = String(decoding: template.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    deinit { remove() }

    /// Removes the folder, if it exists.
    package func remove() {
        // A program that is ending may still create a file while the folder is removed.
        var failure: (any Error)?
        for _ in 0..<50 where FileManager.default.fileExists(atPath: path) {
            do { try FileManager.default.removeItem(atPath: path) } catch {
                failure = error
                usleep(20_000)
            }
        }
        guard let failure, FileManager.default.fileExists(atPath: path) else { return }
        print("\(path) can’t be removed: \(failure)")
    }

    /// Writes a file below the folder, replacing an existing one, and returns its path.
    @discardableResult
    package func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let path = path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }
}
