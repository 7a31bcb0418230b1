public import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// An advisory lock (`flock`) on a file, which the kernel releases when the process ends, however it ends.
///
/// The file holds the pid of whoever took the lock last, for messages only.
public final class FileLock: Sendable {
    /// The file.
    public let path: String
    private let descriptor: Int32

    /// Takes the lock.
    ///
    /// - Throws: `alreadyRunning` with the holder's pid when another process has it; `badConfiguration` when the file
    ///   cannot be opened.
    public init(_ path: String) throws(Failure) {
        self.path = path
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(.badConfiguration, "The lock \(path) cannot be opened: \(String(cString: strerror(errno))).")
        }
        var outcome: Int32
        repeat { outcome = flock(descriptor, LOCK_EX | LOCK_NB) } while outcome != 0 && errno == EINTR
        guard outcome == 0 else {
            let holder = Self.holder(of: path).map { " (process \($0))" } ?? ""
            close(descriptor)
            throw Failure(.alreadyRunning, "Another process\(holder) holds \(path).")
        }
        self.descriptor = descriptor
        let text = "\(getpid())\n"
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.utf8.count, 0) }
    }

    deinit {
        close(descriptor)
    }

    /// The process that wrote its pid into the file last; nil when there is none. It need not hold the lock any more.
    public static func holder(of path: String) -> Int32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 16)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return Int32(String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }

    /// Whether a process holds the lock now. Takes nothing away from it.
    public static func isHeld(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return false }
        return errno == EWOULDBLOCK
    }
}
