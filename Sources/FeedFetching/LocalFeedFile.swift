import LibC
import PodcastModel

/// A feed in a local file, read in pieces.
struct LocalFeedFile: ~Copyable {
    private let descriptor: Int32
    private let path: String
    /// Changes when the file does.
    let etag: String

    /// Opens a regular file; a named pipe or a device is refused, not waited for.
    init(_ address: WebAddress) throws(Failure) {
        let opened = try Self.open(address)
        descriptor = opened.descriptor
        path = opened.path
        etag = opened.etag
    }

    private static func open(
        _ address: WebAddress
    ) throws(Failure) -> (descriptor: Int32, path: String, etag: String) {
        guard let path = address.filePath else {
            throw Failure(.badURL, "“\(WebAddress.quotable(address.text))” isn’t the address of a local file.")
        }
        let descriptor = systemOpen(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let isMissing = errno == ENOENT || errno == ENOTDIR
            let reason = String(cString: strerror(errno))
            throw isMissing
                ? Failure(.fileMissing, "There is no file \(path).")
                : Failure(.fetchFailed, "The file \(path) cannot be read: \(reason).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(.notAFeed, "\(path) is no file that can hold a feed.")
        }
        #if canImport(Darwin)
        let modified = status.st_mtimespec
        #else
        let modified = status.st_mtim
        #endif
        let etag = "file-\(status.st_size)-\(modified.tv_sec)-\(modified.tv_nsec)"
        return (descriptor, path, etag)
    }

    deinit {
        close(descriptor)
    }

    /// The next bytes; nil at the end.
    mutating func next() throws(Failure) -> [UInt8]? {
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, filled in
            repeat {
                count = read(descriptor, buffer.baseAddress, buffer.count)
            } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        guard count >= 0 else {
            throw Failure(.fetchFailed, "The file \(path) cannot be read: \(String(cString: strerror(errno))).")
        }
        return count == 0 ? nil : bytes
    }
}

private func systemOpen(_ path: String, _ flags: Int32) -> Int32 { open(path, flags) }
