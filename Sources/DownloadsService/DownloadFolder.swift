import LibC
import PodcastModel

/// The download folder. Every file is opened relative to the descriptor of its folder and without following
/// symbolic links, so that a planted link has no effect.
struct DownloadFolder: Sendable {
    /// The free space that is reserved for other programs, in bytes.
    static let reserve: UInt64 = 50_000_000
    static let partial = ".partial"

    let root: String
    /// The expected marker. If it is empty, any folder is accepted, and a missing folder is created.
    var marker = ""

    func marked(_ marker: String) -> DownloadFolder { DownloadFolder(root: root, marker: marker) }

    /// A partial file, opened for writing after the bytes that are kept.
    struct Partial: ~Copyable {
        let descriptor: Int32
        /// The number of bytes that are kept.
        let offset: UInt64

        deinit { close(descriptor) }
    }

    // MARK: Fetching

    /// The name of a version’s partial file. Each version has its own, so that their bytes are never mixed.
    static func partialName(_ episode: String, _ version: FileVersion) -> String {
        "\(episode)-\(EpisodeID.derived(from: "\(version.etag)\n\(version.lastModified)").text.dropFirst())"
    }

    /// Opens a partial file, truncated to the bytes that are kept; those of other versions are deleted.
    func openPartial(_ name: String, of episode: String, keeping kept: UInt64) throws(Failure) -> Partial {
        let folder = try openFolder(Self.partial, making: true)
        defer { close(folder) }
        for other in Self.names(in: folder) where other.hasPrefix("\(episode)-") && other != name {
            unlinkat(folder, other, 0)
        }
        // A file with a second link is complete or belongs to another program: only this link is removed.
        if let left = Self.status(of: name, in: folder), left.st_mode & S_IFMT == S_IFREG, left.st_nlink > 1 {
            unlinkat(folder, name, 0)
        }
        let descriptor = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0o600)
        guard descriptor >= 0 else { throw failure("The download can’t be written", name) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
            close(descriptor)
            throw Failure(
                .storageFailed,
                "\(root)/\(Self.partial)/\(name) isn’t a regular file with a single link; delete it and try again.")
        }
        let offset = min(kept, UInt64(max(0, status.st_size)))
        guard ftruncate(descriptor, off_t(offset)) == 0 else {
            let failure = failure("The download can’t be written", name)
            close(descriptor)
            throw failure
        }
        return Partial(descriptor: descriptor, offset: offset)
    }

    func write(_ bytes: UnsafeRawBufferPointer, to partial: borrowing Partial, at offset: UInt64) throws(Failure) {
        var done = 0
        while done < bytes.count {
            let written = pwrite(
                partial.descriptor, bytes.baseAddress?.advanced(by: done), bytes.count - done,
                off_t(offset) + off_t(done))
            if written > 0 {
                done += written
            } else if written < 0, errno != EINTR {
                throw failure("The download can’t be written", Self.partial)
            }
        }
    }

    func save(_ partial: borrowing Partial) throws(Failure) {
        guard fdatasync(partial.descriptor) == 0 else { throw failure("The download can’t be saved", Self.partial) }
    }

    /// Whether nothing exists at the path of a file of this size in bytes (0: unknown). An existing file of that size
    /// is accepted: an earlier process may have moved it there and ended before it recorded the move.
    ///
    /// - Throws: `storageFailed` if something else exists at the path; a retry doesn’t help.
    func isFree(_ path: String, for bytes: UInt64) throws(Failure) -> Bool {
        let parts = try Self.parts(of: path)
        let top = try openRoot(making: true)
        defer { close(top) }
        guard Self.status(of: parts.folder, in: top) != nil else { return true }
        let folder = try openFolder(parts.folder, making: false)
        defer { close(folder) }
        guard let there = Self.status(of: parts.name, in: folder) else { return true }
        guard there.st_mode & S_IFMT == S_IFREG, bytes == 0 || UInt64(exactly: there.st_size) == bytes else {
            throw occupied(path)
        }
        return false
    }

    /// Moves the complete file to its path, after it is synchronised to the disk. The move fails if a different file
    /// exists there.
    func finish(_ partial: borrowing Partial, _ name: String, at path: String) throws(Failure) {
        guard fsync(partial.descriptor) == 0 else { throw failure("The download can’t be saved", path) }
        let from = try openFolder(Self.partial, making: false)
        defer { close(from) }
        let parts = try Self.parts(of: path)
        let to = try openFolder(parts.folder, making: true)
        defer { close(to) }
        if linkat(from, name, to, parts.name, 0) == 0 {
            unlinkat(from, name, 0)
        } else {
            let reason = errno
            // An earlier process moved the file there and ended before it recorded the move.
            if reason == EEXIST, Self.isSame(partial.descriptor, parts.name, in: to) {
                unlinkat(from, name, 0)
                return
            }
            guard reason != EEXIST else { throw occupied(path) }
            guard reason == EPERM || reason == EOPNOTSUPP || reason == ENOTSUP else {
                throw failure("The download can’t be moved to its path", path, reason)
            }
            // The file system doesn’t support hard links.
            guard Self.status(of: parts.name, in: to) == nil else { throw occupied(path) }
            guard renameat(from, name, to, parts.name) == 0 else {
                throw failure("The download can’t be moved to its path", path)
            }
        }
        guard fsync(to) == 0, fsync(from) == 0 else { throw failure("The download can’t be saved", path) }
    }

    /// Deletes the partial files of an episode.
    func discard(_ episode: String) {
        guard let folder = try? openFolder(Self.partial, making: false) else { return }
        defer { close(folder) }
        for name in Self.names(in: folder) where name.hasPrefix("\(episode)-") { unlinkat(folder, name, 0) }
    }

    // MARK: Space

    /// Checks that `reserve` stays free after `bytes`; throws `insufficientStorage` if it doesn’t.
    func requireSpace(for bytes: UInt64) throws(Failure) {
        let top = try openRoot(making: true)
        defer { close(top) }
        var status = statvfs()
        guard fstatvfs(top, &status) == 0 else { throw failure("The download folder can’t be checked", "") }
        let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
        guard free >= Self.reserve, free - Self.reserve >= bytes else {
            let (left, needed) = (free / 1_000_000, bytes / 1_000_000 + Self.reserve / 1_000_000)
            throw Failure(
                .insufficientStorage,
                "\(root) has \(left) MB of free space, but \(needed) MB are needed; free some space and try again.")
        }
    }

    // MARK: Opening folders

    func openRoot(making: Bool) throws(Failure) -> Int32 {
        if making, marker.isEmpty { mkdir(root, 0o700) }
        let descriptor = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw !marker.isEmpty && Self.isAbsent(errno)
                ? wrongFolder : failure("The download folder can’t be opened", "")
        }
        guard marker.isEmpty || Self.marker(in: descriptor) == marker else {
            close(descriptor)
            throw wrongFolder
        }
        return descriptor
    }

    func openFolder(_ name: String, making: Bool) throws(Failure) -> Int32 {
        let top = try openRoot(making: making)
        defer { close(top) }
        if making, mkdirat(top, name, 0o700) != 0, errno != EEXIST {
            throw failure("The folder for the download can’t be created", name)
        }
        let descriptor = openat(top, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard descriptor >= 0 else { throw failure("The download’s folder can’t be opened", name) }
        return descriptor
    }

    static func parts(of path: String) throws(Failure) -> (folder: String, name: String) {
        let parts = path.split(separator: "/", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts.allSatisfy(isComponent) else {
            throw Failure(.internalError, "“\(path)” isn’t a valid download path.")
        }
        return (parts[0], parts[1])
    }

    private func occupied(_ path: String) -> Failure {
        Failure(
            code: FailureCode.storageFailed.rawValue,
            message: "\(root)/\(path) already exists and wasn’t replaced; move or delete it, then try again.")
    }

    /// Whether a name refers to an entry of its folder.
    static func isComponent(_ name: String) -> Bool {
        !name.isEmpty && name != "." && name != ".." && !name.contains("/")
    }

    /// Whether a file has the same content as an open one.
    private static func isSame(_ open: Int32, _ name: String, in folder: Int32) -> Bool {
        let other = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
        guard other >= 0 else { return false }
        defer { close(other) }
        var (first, second) = (stat(), stat())
        guard fstat(open, &first) == 0, fstat(other, &second) == 0, first.st_size == second.st_size else {
            return false
        }
        var (left, right) = ([UInt8](repeating: 0, count: 65_536), [UInt8](repeating: 0, count: 65_536))
        var offset: off_t = 0
        while offset < first.st_size {
            let count = pread(open, &left, left.count, offset)
            guard count > 0, pread(other, &right, count, offset) == count, left[..<count] == right[..<count] else {
                return false
            }
            offset += off_t(count)
        }
        return true
    }

    static func status(of name: String, in folder: Int32) -> stat? {
        var status = stat()
        return fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0 ? status : nil
    }

    static func names(in folder: Int32) -> [String] {
        let copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard copy >= 0, let entries = fdopendir(copy) else { return [] }
        defer { closedir(entries) }
        var names: [String] = []
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    func failure(_ what: String, _ path: String, _ reason: Int32 = errno) -> Failure {
        let fullPath = path.isEmpty ? root : "\(root)/\(path)"
        let text = "\(what) (\(fullPath)): \(SystemError.reason(reason))."
        return Failure(reason == ENOSPC || reason == EDQUOT ? .insufficientStorage : .storageFailed, text)
    }
}
