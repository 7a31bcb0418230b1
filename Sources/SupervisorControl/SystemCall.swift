import CProcess
import LibC

package enum SystemCall {
    /// The names in a folder; none if there is no such folder.
    package static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    /// Starts a program in a session of its own; see `lockstep_spawn`.
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
