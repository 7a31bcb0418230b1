package import LibC
package import PodcastModel

/// Reads and writes small files: epochs, generations, locks, passwords, and the system’s in `/proc`.
package enum SmallFile {
    /// Reads a file of possibly unknown size. Of a larger file at least `limit` bytes are read.
    package static func contents(_ path: String, limit: Int = 1 << 20) throws(SystemError) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw SystemError(number: errno) }
        defer { _ = close(descriptor) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 16_384)
        while bytes.count < limit {
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw SystemError(number: errno) }
            if count == 0 { break }
            bytes += chunk[..<count]
        }
        return bytes
    }

    /// The text of a file; empty if it can’t be read.
    package static func text(of path: String) -> String { String(decoding: (try? contents(path)) ?? [], as: UTF8.self) }

    /// Replaces a file atomically and durably. On a full disk a file of the same length is overwritten in place, which
    /// needs no space, so that services can still restart.
    ///
    /// - Throws: `diskFull`; `badConfiguration` for a folder that is missing or not writable.
    package static func replace(_ path: String, with text: String) throws(Failure) {
        do throws(Failure) {
            try replaceWhole(path, with: text)
        } catch {
            guard error.known == .diskFull, overwrite(path, with: text) else { throw error }
        }
    }

    /// Overwrites a file of the same length; false if there is none, or it can’t be written.
    static func overwrite(_ path: String, with text: String) -> Bool {
        let descriptor = open(path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { _ = close(descriptor) }
        let bytes = Array(text.utf8)
        guard lseek(descriptor, 0, SEEK_END) == off_t(bytes.count) else { return false }
        return pwrite(descriptor, bytes, bytes.count, 0) == bytes.count && fsync(descriptor) == 0
    }

    /// Replaces a file atomically and durably.
    ///
    /// - Parameter isDurable: false for a file that must survive this process only: it is written faster.
    package static func replaceWhole(_ path: String, with text: String, isDurable: Bool = true) throws(Failure) {
        let temporary = path + ".new"
        let descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure("write", temporary) }
        let bytes = Array(text.utf8)
        errno = 0
        let written = write(descriptor, bytes, bytes.count) == bytes.count && (!isDurable || fsync(descriptor) == 0)
        // A short write without an error number means that the disk is full.
        let number = errno == 0 ? ENOSPC : errno
        _ = close(descriptor)
        guard written else {
            _ = unlink(temporary)
            throw failure("write", temporary, number)
        }
        guard rename(temporary, path) == 0 else { throw failure("rename", path) }
        if isDurable { try synchronizeFolder(of: path) }
    }

    private static func synchronizeFolder(of path: String) throws(Failure) {
        let folder = path.lastIndex(of: "/").map { String(path[..<$0]) } ?? "."
        let descriptor = open(folder.isEmpty ? "/" : folder, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("open", folder) }
        defer { _ = close(descriptor) }
        guard fsync(descriptor) == 0 else { throw failure("synchronize", folder) }
    }

    private static func failure(_ action: String, _ path: String, _ number: Int32 = errno) -> Failure {
        let isFull = number == ENOSPC || number == EDQUOT
        return Failure(
            isFull ? .diskFull : .badConfiguration, "Cannot \(action) \(path): \(SystemError.reason(number)).")
    }
}
