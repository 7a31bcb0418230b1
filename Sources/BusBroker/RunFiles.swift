import BusKit
import LibC
import PodcastModel

/// The file that remembers the newest epoch, so that epochs ascend even when the clock steps back.
struct EpochFile: Sendable {
    let path: String

    /// The epoch after the last: `now` in milliseconds, or one more than the last if the clock is behind it. It is on
    /// disk when this returns. A file that cannot be read counts as none: then the clock alone decides.
    func next(now: Timestamp) throws(Failure) -> UInt64 {
        let clock = UInt64(clamping: now.milliseconds)
        let epoch = max(clock, (last() ?? 0).addingReportingOverflow(1).partialValue, 1)
        try SmallFile.replace(path, with: "\(epoch)\n")
        return epoch
    }

    private func last() -> UInt64? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { _ = close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 32)
        let count = read(descriptor, &bytes, bytes.count)
        guard count > 0 else { return nil }
        return UInt64(String(decoding: bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }
}

/// Files and folders of the bus.
enum RunFile {
    /// Makes a folder, and those above it, that only this user may enter. One that is there is left as it is.
    static func makeFolder(_ path: String) throws(Failure) {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        guard errno == ENOENT, let slash = path.lastIndex(of: "/"), slash != path.startIndex else {
            throw failure("make the folder", path)
        }
        try makeFolder(String(path[..<slash]))
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure("make the folder", path) }
    }

    static func failure(_ action: String, _ path: String, _ number: Int32 = errno) -> Failure {
        let meaning = strerror(number).map { String(cString: $0) } ?? "error \(number)"
        return Failure(
            number == ENOSPC ? .diskFull : .badConfiguration, "Cannot \(action) \(path): \(meaning).")
    }
}
