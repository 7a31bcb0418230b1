import CProcess
import LibC

/// The files and processes of the supervisor.
package enum SystemCall {
    /// The meaning of an error number.
    package static func reason(_ number: Int32 = errno) -> String { String(cString: strerror(number)) }

    /// The bytes of a file, at most `limit`; nil if it cannot be read. For `/proc`, whose files have no size.
    package static func contents(_ path: String, limit: Int = 1 << 20) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < limit {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            bytes += chunk[..<count]
        }
        return bytes
    }

    /// The text of a file; empty if it cannot be read.
    package static func text(_ path: String) -> String { String(decoding: contents(path) ?? [], as: UTF8.self) }

    /// Writes a file anew. False if it could not be written whole.
    @discardableResult
    package static func write(_ text: String, to path: String) -> Bool {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        return writeBytes(descriptor, bytes) == bytes.count
    }

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

    /// When a file was last written, in seconds since 1970; nil if it is not there.
    package static func modified(_ path: String) -> Double? {
        var status = stat()
        guard stat(path, &status) == 0 else { return nil }
        #if canImport(Darwin)
        let modified = status.st_mtimespec
        #else
        let modified = status.st_mtim
        #endif
        return Double(modified.tv_sec) + Double(modified.tv_nsec) / 1e9
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

// The system's calls under names that no member of a type here has.

package func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

package func writeBytes(_ descriptor: Int32, _ bytes: [UInt8]) -> Int { write(descriptor, bytes, bytes.count) }

/// `kill(2)`; what is gone already is no error.
package func sendSignal(_ signal: Int32, to pid: Int32) { _ = kill(pid, signal) }

/// `send(2)`, without SIGPIPE where the system can leave it out; the supervisor and the command line ignore it anyway.
package func sendBytes(_ descriptor: Int32, _ bytes: [UInt8], waiting: Bool) -> Int {
    #if canImport(Darwin)
    let flags = Int32(0)
    #else
    let flags = Int32(MSG_NOSIGNAL)
    #endif
    return send(descriptor, bytes, bytes.count, waiting ? flags : flags | Int32(MSG_DONTWAIT))
}
