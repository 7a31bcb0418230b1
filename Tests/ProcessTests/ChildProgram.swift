import CProcess
import Foundation
import NIOConcurrencyHelpers

/// A process that a test has started, in a session of its own.
enum ChildProgram {
    /// Starts a program with those descriptors as its standard input, and its standard output and error.
    static func start(
        _ words: [String], environment: [String: String], input: Int32, output: Int32, in folder: String
    ) throws -> pid_t {
        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        let pid = lockstep_spawn(words[0], arguments, variables, input, output, 0, folder)
        guard pid > 0 else {
            throw ProcessFleet.Unexpected(description: "\(words[0]) cannot be started")
        }
        return pid
    }

    /// Opens `/dev/null`, for the length of `body`.
    static func withNothing<Result>(_ body: (Int32) throws -> Result) rethrows -> Result {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        return try body(nothing)
    }

    /// Waits for the end of a child, and takes it off the system's table: its exit status, or 128 and its signal.
    static func reap(_ pid: pid_t) -> Int32 {
        var (code, isSignal): (Int32, Int32) = (-1, 0)
        while lockstep_child_ended(pid, &code, &isSignal) == 0 {
            // A descriptor of the process can be read from its end on.
            let descriptor = lockstep_pidfd_open(pid)
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, 1_000)
            close(descriptor)
        }
        lockstep_reap(pid)
        return isSignal == 0 ? code : 128 + code
    }
}

/// Reads a descriptor on a thread of its own until its end, or until it is closed.
///
/// Foundation's own handlers belong to a library that reads a closed descriptor's memory when another one takes its
/// number.
final class DescriptorReader: Sendable {
    /// The end to read from; −1 once it has been closed.
    private let descriptor: NIOLockedValueBox<Int32>

    /// Reads `descriptor`, which is closed behind the last of it. `ended` is called then.
    init(
        _ descriptor: Int32, take: @escaping @Sendable (ArraySlice<UInt8>) -> Void,
        ended: @escaping @Sendable () -> Void
    ) {
        let shared = NIOLockedValueBox(descriptor)
        self.descriptor = shared
        let thread = Thread {
            Self.read(descriptor, isOpen: { shared.withLockedValue { $0 } >= 0 }, take)
            shared.withLockedValue { $0 = -1 }
            Glibc.close(descriptor)
            ended()
        }
        thread.start()
    }

    private static func read(_ descriptor: Int32, isOpen: () -> Bool, _ take: (ArraySlice<UInt8>) -> Void) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, 50)
            guard isOpen() else { return }
            guard waiting.revents != 0 else { continue }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            // A terminal that all have left fails with EIO.
            guard count > 0 else { return }
            take(chunk[..<count])
        }
    }

    /// Uses the descriptor, unless it has been closed.
    func use<Result>(_ body: (Int32) -> Result) -> Result? {
        descriptor.withLockedValue { $0 >= 0 ? body($0) : nil }
    }

    /// Has it closed, within moments: a read that waits would keep it open.
    func close() {
        descriptor.withLockedValue { $0 = -1 }
    }
}
