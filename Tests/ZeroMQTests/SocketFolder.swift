import ZeroMQ

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// A folder for sockets that goes with the test.
final class SocketFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/zmq-XXXXXX".utf8CString)
        path = mkdtemp(&template).map { String(cString: $0) } ?? "/tmp"
    }

    deinit {
        guard let folder = opendir(path) else { return }
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { _ = unlink(path + "/" + name) }
        }
        _ = closedir(folder)
        _ = rmdir(path)
    }

    func endpoint(_ name: String = "socket") throws -> IPCEndpoint {
        try IPCEndpoint(path: path + "/" + name)
    }
}

/// What this process holds, by the system's account.
enum ProcessTable {
    static func descriptors() -> Int { entries("/proc/self/fd") }
    static func threads() -> Int { entries("/proc/self/task") }

    /// The names of the threads.
    static func threadNames() -> [String] {
        names("/proc/self/task").compactMap { task in
            let descriptor = open("/proc/self/task/\(task)/comm", O_RDONLY)
            guard descriptor >= 0 else { return nil }
            defer { _ = close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 64)
            let count = read(descriptor, &bytes, 64)
            return String(decoding: bytes.prefix(max(0, count - 1)), as: UTF8.self)
        }
    }

    private static func entries(_ path: String) -> Int { names(path).count }

    private static func names(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { _ = closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) })
        }
        return names
    }
}
