import LibC
package import PodcastModel

/// An advisory lock (`flock`) on a file, which the kernel releases whenever the process ends.
///
/// The file contains the pid of the last holder and, on a second line, a note. Both remain after the holder’s end, so
/// they are valid only while the lock is held.
package final class FileLock: Sendable {
    package let path: String
    private let descriptor: Int32

    /// Locks a file, which is created if it is missing, and writes a note for other processes; see `note(of:)`.
    ///
    /// - Throws: `alreadyRunning` with the holder’s pid if another process holds it; `badConfiguration` if the file
    ///   can’t be opened.
    package init(_ path: String, note: String = "") throws(Failure) {
        self.path = path
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure(.badConfiguration, "The lock \(path) can’t be opened: \(SystemError.reason()).")
        }
        guard Self.take(descriptor) else {
            let holder = Self.holder(of: path).map { " (process \($0))" } ?? ""
            close(descriptor)
            throw Failure(.alreadyRunning, "Another process\(holder) holds \(path).")
        }
        self.descriptor = descriptor
        let text = "\(getpid())\n" + (note.isEmpty ? "" : note + "\n")
        if ftruncate(descriptor, 0) == 0 { _ = pwrite(descriptor, text, text.utf8.count, 0) }
    }

    deinit {
        // Closing isn’t enough: a child that was just forked also has the descriptor until it executes its program.
        _ = flock(descriptor, LOCK_UN)
        close(descriptor)
    }

    /// Tries ten times within 45 ms: a process that checks whether the lock is held (`isHeld`) locks it briefly itself.
    private static func take(_ descriptor: Int32) -> Bool {
        let backoff = Backoff.constant(.milliseconds(5), retries: 9)
        var failures = 0
        while flock(descriptor, LOCK_EX | LOCK_NB) != 0 {
            failures += 1
            guard errno == EWOULDBLOCK || errno == EINTR, backoff.allowsRetry(after: failures) else { return false }
            usleep(UInt32(backoff.wait(after: failures) / .microseconds(1)))
        }
        return true
    }

    /// The pid of the last holder; nil if there was none.
    package static func holder(of path: String) -> Int32? { lines(of: path).first.flatMap { Int32($0) } }

    /// The note of the last holder; nil if it wrote none.
    package static func note(of path: String) -> String? { lines(of: path).dropFirst().first.map { String($0) } }

    /// The complete lines; an incomplete one is still being written.
    private static func lines(of path: String) -> [Substring] {
        SmallFile.text(of: path).split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    }

    /// Whether a process holds the lock now. Several may check at once; a process that wants the lock waits for them.
    package static func isHeld(_ path: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        if flock(descriptor, LOCK_SH | LOCK_NB) == 0 { return false }
        return errno == EWOULDBLOCK
    }
}
