import BusKit
import LibC

/// The number of an error of the C library.
struct SystemError: Error {
    let number: Int32
    /// The meaning of the number.
    var reason: String { String(cString: strerror(number)) }
}

extension SmallFile {
    /// Reads a file; of one that is larger than `limit` at least so many bytes.
    static func contents(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while bytes.count <= limit {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError(number: errno) }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        return bytes
    }
}
