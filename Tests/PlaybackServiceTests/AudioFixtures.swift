import FoundationEssentials
import Testing

/// A folder for a test's files, removed with its last reference.
final class Folder: Sendable {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.path + "/playback-\(UInt64.random(in: .min ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// Writes a file and gives its path.
    func file(_ name: String, _ bytes: [UInt8]) throws -> String {
        let path = path + "/" + name
        try Data(bytes).write(to: URL(filePath: path))
        return path
    }
}
