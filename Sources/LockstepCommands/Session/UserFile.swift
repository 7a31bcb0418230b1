import LibC
import LockstepClient
import PodcastModel

/// A file that the user names; `-` is standard input or output.
enum UserFile {
    /// The name of a file in messages.
    static func name(_ path: String) -> String { path == "-" ? "Standard input" : path }

    /// Reads a whole file.
    ///
    /// - Parameter limit: the maximum size in bytes.
    /// - Returns: nil if the file is larger.
    /// - Throws: `fileMissing`, or `notApplicable` for a folder or a file that can’t be read.
    static func read(_ path: String, limit: Int) throws(Failure) -> [UInt8]? {
        let descriptor = path == "-" ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("read", path) }
        defer { closeDescriptor(descriptor) }
        var bytes: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 256 << 10)
        while true {
            let count = LibC.read(descriptor, &part, part.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw failure("read", path) }
            guard count > 0 else { return bytes }
            bytes += part[..<count]
            if bytes.count > limit { return nil }
        }
    }

    /// Replaces a file completely or not at all; a device or pipe is written to.
    static func write(_ text: String, to path: String) throws {
        guard path != "-" else { return try Output.write(text, to: STDOUT_FILENO) }
        var status = stat()
        let exists = stat(path, &status) == 0
        let kind = status.st_mode & S_IFMT
        guard !exists || kind != S_IFDIR else { throw failure("write", path, EISDIR) }
        guard !exists || kind == S_IFREG else {
            let descriptor = open(path, O_WRONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw failure("write", path) }
            defer { closeDescriptor(descriptor) }
            return try Output.write(text, to: descriptor)
        }
        // A symbolic link stays, and the file to which it leads is replaced.
        let target = realpath(path, nil).map { resolved in
            defer { free(resolved) }
            return String(cString: resolved)
        }
        try replace(target ?? path, with: text, mode: exists ? status.st_mode & 0o777 : nil)
    }

    private static func replace(_ path: String, with text: String, mode: mode_t?) throws {
        let partial = "\(path).\(getpid()).part"
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else { throw failure("write", path) }
        if let mode { _ = fchmod(descriptor, mode) }
        let written = Swift.Result { try Output.write(text, to: descriptor) }
        let isStored = (try? written.get()) != nil && fsync(descriptor) == 0 && rename(partial, path) == 0
        let number = errno
        closeDescriptor(descriptor)
        guard !isStored else { return }
        _ = unlink(partial)
        try written.get()
        throw failure("write", path, number)
    }

    private static func failure(_ action: String, _ path: String, _ number: Int32 = errno) -> Failure {
        let name = path == "-" ? "standard input" : path
        return switch number {
        case ENOENT where action == "read": Failure(.fileMissing, "There is no file \(name).")
        case ENOENT: Failure(.fileMissing, "Couldn’t write \(name): its folder doesn’t exist.")
        case EISDIR: Failure(.notApplicable, "\(name) is a folder. Name a file.")
        case ENOSPC, EDQUOT: Failure(.diskFull, "Couldn’t \(action) \(name): \(SystemError.reason(number)).")
        default: Failure(.notApplicable, "Couldn’t \(action) \(name): \(SystemError.reason(number)).")
        }
    }
}
