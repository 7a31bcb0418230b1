import CProcess
import LibC
import NIOConcurrencyHelpers
import PodcastModel
import SupervisorControl

/// Writes the services’ logs on a thread of its own, so that a slow or full disk blocks nothing else.
///
/// `NAME.log` is the newest; at its limit it becomes `NAME.log.1`, and so on. The queue is bounded; lines that don’t
/// fit, or can’t be written, are dropped, and their number is logged when writing succeeds again.
final class LogWriter: Sendable {
    /// The size of a file at which it is rotated, in bytes.
    let fileLimit: Int
    /// The maximum number of files of a service, including the newest.
    let fileCount: Int
    private let folder: String
    private let pending = NIOLockedValueBox(Pending())
    private let wake: Int32
    private let woken: Int32
    private let thread = NIOLockedValueBox<SystemThread?>(nil)

    /// The maximum size of the queue, in bytes.
    static let pendingLimit = 4 << 20

    struct Pending {
        var lines: [(service: String, line: [UInt8])] = []
        var size = 0
        var dropped: [String: Int] = [:]
        var closing = false
    }

    init?(folder: String, fileLimit: Int = 10_000_000, fileCount: Int = 5) {
        self.folder = folder
        self.fileLimit = fileLimit
        self.fileCount = fileCount
        var ends: [Int32] = [0, 0]
        guard lockstep_pipe(&ends, 0) == 0 else { return nil }
        (woken, wake) = (ends[0], ends[1])
        _ = fcntl(wake, F_SETFL, O_NONBLOCK)
        guard let thread = SystemThread(stackSize: 512 << 10, { [self] in work() }) else { return nil }
        self.thread.withLockedValue { $0 = thread }
    }

    deinit {
        closeDescriptor(wake)
        closeDescriptor(woken)
    }

    func append(_ service: String, _ line: [UInt8]) {
        let wasEmpty = pending.withLockedValue { pending in
            guard pending.size + line.count <= Self.pendingLimit else {
                pending.dropped[service, default: 0] += 1
                return false
            }
            pending.lines.append((service, line))
            pending.size += line.count
            return pending.lines.count == 1
        }
        if wasEmpty { _ = write(wake, [1], 1) }
    }

    /// Writes the queue and ends the thread.
    func close() {
        pending.withLockedValue { $0.closing = true }
        _ = write(wake, [1], 1)
        let last = thread.withLockedValue { thread in
            defer { thread = nil }
            return thread
        }
        last?.join()
    }

    private func work() {
        var files: [String: LogFile] = [:]
        var byte = [UInt8](repeating: 0, count: 64)
        while true {
            let count = read(woken, &byte, byte.count)
            if count < 0, errno != EINTR { return }
            let batch = pending.withLockedValue { pending in
                defer { pending = Pending(closing: pending.closing) }
                return pending
            }
            for (service, line) in batch.lines {
                files[service, default: LogFile(folder + "/\(service).log")].append(
                    line, service: service, limit: fileLimit, count: fileCount)
            }
            for (service, count) in batch.dropped {
                files[service, default: LogFile(folder + "/\(service).log")].dropped += count
            }
            if batch.closing {
                for file in files.values { file.close() }
                return
            }
        }
    }
}

private struct LogFile {
    let path: String
    var dropped = 0
    private var descriptor: Int32 = -1
    private var size = 0

    init(_ path: String) { self.path = path }

    mutating func append(_ line: [UInt8], service: String, limit: Int, count: Int) {
        if descriptor >= 0, size + line.count + 1 > limit { rotate(count: count) }
        if descriptor < 0, !openFile() {
            dropped += 1
            return
        }
        if dropped > 0 {
            let record = LogRecord.json(
                "\(dropped) lines couldn’t be written and are lost", level: .warning, service: service,
                at: SystemClocks.wall().milliseconds)
            guard put(record) else {
                dropped += 1
                return
            }
            dropped = 0
        }
        if !put(line) { dropped += 1 }
    }

    func close() {
        if descriptor >= 0 { closeDescriptor(descriptor) }
    }

    private mutating func openFile() -> Bool {
        descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return false }
        size = Int(lseek(descriptor, 0, SEEK_END))
        return true
    }

    /// Writes a whole line or nothing.
    private mutating func put(_ line: [UInt8]) -> Bool {
        let bytes = line + [UInt8(ascii: "\n")]
        guard write(descriptor, bytes, bytes.count) == bytes.count else {
            _ = ftruncate(descriptor, off_t(size))
            return false
        }
        size += bytes.count
        return true
    }

    private mutating func rotate(count: Int) {
        close()
        descriptor = -1
        size = 0
        for number in stride(from: count - 1, to: 1, by: -1) {
            _ = rename("\(path).\(number - 1)", "\(path).\(number)")
        }
        if count > 1 { _ = rename(path, path + ".1") } else { _ = unlink(path) }
    }
}
