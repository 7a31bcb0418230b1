import LibC
import PodcastModel

/// A feed in a local file, read in pieces.
struct LocalFeedFile: ~Copyable {
    private let descriptor: Int32
    private let path: String
    /// The validator, which changes with the file.
    let etag: String

    /// Opens a regular file. A named pipe or a device is refused without blocking.
    init(_ address: WebAddress) throws(Failure) {
        guard let path = address.filePath else {
            throw Failure(.badURL, "“\(WebAddress.quotable(address.text))” isn’t the address of a local file.")
        }
        let descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            let isMissing = errno == ENOENT || errno == ENOTDIR
            let reason = SystemError.reason()
            throw isMissing
                ? Failure(.fileMissing, "There is no file \(path).")
                : Failure(.fetchFailed, "The file \(path) can’t be read: \(reason).")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            throw Failure(.notAFeed, "\(path) isn’t a regular file.")
        }
        self.descriptor = descriptor
        self.path = path
        etag = "file-\(status.st_size)-\(status.modified.tv_sec)-\(status.modified.tv_nsec)"
    }

    deinit {
        close(descriptor)
    }

    /// Reads the next bytes; nil at the end.
    mutating func next() throws(Failure) -> [UInt8]? {
        var count = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: 65_536) { buffer, filled in
            repeat {
                count = read(descriptor, buffer.baseAddress, buffer.count)
            } while count < 0 && errno == EINTR
            filled = max(0, count)
        }
        guard count >= 0 else {
            throw Failure(.fetchFailed, "The file \(path) can’t be read: \(SystemError.reason()).")
        }
        return count == 0 ? nil : bytes
    }
}
