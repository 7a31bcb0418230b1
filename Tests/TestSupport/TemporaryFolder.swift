import FoundationEssentials
import LibC
import PodcastModel

/// A folder for a test's files, with a path that is short enough for sockets; removed with its last reference.
package final class TemporaryFolder: Sendable {
    /// The folder.
    package let path: String

    /// A socket's path may be 107 bytes; the longest name of one below a test's folder needs less than the rest.
    private static let longestParent = 60

    /// A new, empty folder: below `TMPDIR`, or below `/tmp` where that is not set or too long for sockets.
    /// - Throws: `badConfiguration` when it cannot be made.
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

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file below the folder, over one that is there, and gives its path.
    @discardableResult
    package func file(_ name: String, _ bytes: some Sequence<UInt8>) throws -> String {
        let path = path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }
}
