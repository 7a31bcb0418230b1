import CProcess
import FoundationEssentials
import LibC

package enum SystemCall {
    /// The names in a folder; empty if it can’t be read.
    package static func names(in folder: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
    }

    /// The target of a symbolic link; empty if it can’t be read.
    package static func target(ofLink path: String) -> String {
        var buffer = [UInt8](repeating: 0, count: 4_096)
        let count = max(0, readlink(path, &buffer, buffer.count))
        return String(decoding: buffer[..<count], as: UTF8.self)
    }

    /// Starts a program in its own session; see `lockstep_spawn`.
    package static func spawn(
        _ path: String, _ arguments: [String], environment: [String: String], input: Int32, output: Int32,
        parentDeathSignal: Int32, directory: String?
    ) -> Int32 {
        let words = ([path] + arguments).map { strdup($0) } + [nil]
        let variables = environment.sorted { $0.key < $1.key }.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in words + variables { free(text) } }
        return lockstep_spawn(path, words, variables, input, output, parentDeathSignal, directory)
    }
}

/// `send(2)`, without SIGPIPE where the system supports that; the supervisor and the command line ignore it anyway.
package func sendBytes(_ descriptor: Int32, _ bytes: [UInt8], waiting: Bool) -> Int {
    #if canImport(Darwin)
    let flags = Int32(0)
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    return send(descriptor, bytes, bytes.count, waiting ? flags : flags | Int32(MSG_DONTWAIT))
}
