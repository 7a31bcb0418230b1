import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// The count of a service's lives: seconds since 1970, and always larger than the last, whatever the clock says.
struct GenerationFile {
    let path: String

    /// The next life's number, on disk before it is given out.
    func next(now: Timestamp) throws(Failure) -> UInt32 {
        let clock = UInt32(clamping: now.milliseconds / 1_000)
        let next = max(clock, last.map { $0 == .max ? $0 : $0 + 1 } ?? 1)
        try write(next)
        return next
    }

    /// A file that is missing or cannot be read counts for nothing: the clock alone decides then.
    private var last: UInt32? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 32)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return UInt32(String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }

    private func write(_ generation: UInt32) throws(Failure) {
        let fresh = path + ".new"
        let descriptor = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw failure }
        let text = "\(generation)\n"
        let written = writeBytes(descriptor, text, text.utf8.count) == text.utf8.count && fsync(descriptor) == 0
        close(descriptor)
        guard written, rename(fresh, path) == 0 else { throw failure }
    }

    private var failure: Failure {
        let code: FailureCode = errno == ENOSPC ? .diskFull : .badConfiguration
        return Failure(code, "The file \(path) cannot be written: \(String(cString: strerror(errno))).")
    }
}

/// `write(2)` under a name that the method above does not hide.
private func writeBytes(_ descriptor: Int32, _ text: String, _ count: Int) -> Int {
    write(descriptor, text, count)
}
