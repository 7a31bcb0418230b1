import CProcess
import Foundation
import NIOConcurrencyHelpers

/// A process that a test starts, in a session of its own.
enum ChildProgram {
    /// Starts a program with `input` as its standard input and `output` as its standard output and error. The program
    /// itself is killed when the test process ends; the processes that it started aren’t.
    static func start(
        _ words: [String], environment: [String: String], input: Int32, output: Int32, in folder: String
    ) throws -> pid_t {
        let result = NIOLockedValueBox<pid_t>(-1)
        let isStarted = DispatchSemaphore(value: 0)
        // The kernel kills a child when the thread that started it ends: a pool’s thread may end before the child does.
        let thread = Thread {
            let pid = spawn(words, environment: environment, input: input, output: output, in: folder)
            result.withLockedValue { $0 = pid }
            isStarted.signal()
            if pid > 0 { awaitEnd(pid) }
        }
        thread.start()
        isStarted.wait()
        let pid = result.withLockedValue { $0 }
        guard pid > 0 else {
            throw ProcessFleet.Unexpected(description: "\(words[0]) cannot be started")
        }
        return pid
    }

    private static func spawn(
        _ words: [String], environment: [String: String], input: Int32, output: Int32, in folder: String
    ) -> pid_t {
        let arguments = words.map { strdup($0) } + [nil]
        let variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for text in arguments + variables { free(text) } }
        return lockstep_spawn(words[0], arguments, variables, input, output, SIGKILL, folder)
    }

    /// Waits until a child ends; `reap` reaps it.
    private static func awaitEnd(_ pid: pid_t) {
        var information = siginfo_t()
        while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    /// Runs `body` with `/dev/null` open.
    static func withNullDevice<Result>(_ body: (Int32) throws -> Result) rethrows -> Result {
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        return try body(nothing)
    }

    /// Waits until a child ends, and reaps it. Returns its exit status, or 128 plus its signal.
    static func reap(_ pid: pid_t) -> Int32 {
        var (code, isSignal): (Int32, Int32) = (-1, 0)
        while lockstep_child_ended(pid, &code, &isSignal) == 0 {
            // A process’s descriptor becomes readable when the process ends.
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
/// Foundation’s handlers use a library that reads freed memory when a new descriptor reuses a closed one’s
/// number.
final class DescriptorReader: Sendable {
    /// The descriptor to read; −1 once it has been closed.
    private let descriptor: NIOLockedValueBox<Int32>

    /// Reads `descriptor`, closes it at its end, and then calls `ended`.
    init(
        _ descriptor: Int32, handle: @escaping @Sendable (ArraySlice<UInt8>) -> Void,
        ended: @escaping @Sendable () -> Void
    ) {
        let shared = NIOLockedValueBox(descriptor)
        self.descriptor = shared
        let thread = Thread {
            Self.read(descriptor, isOpen: { shared.withLockedValue { $0 } >= 0 }, handle)
            shared.withLockedValue { $0 = -1 }
            Glibc.close(descriptor)
            ended()
        }
        thread.start()
    }

    private static func read(_ descriptor: Int32, isOpen: () -> Bool, _ handle: (ArraySlice<UInt8>) -> Void) {
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, 50)
            guard isOpen() else { return }
            guard waiting.revents != 0 else { continue }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            // Reading a terminal fails with EIO once every process has closed it.
            guard count > 0 else { return }
            handle(chunk[..<count])
        }
    }

    /// Calls `body` with the descriptor, unless that is closed.
    func use<Result>(_ body: (Int32) -> Result) -> Result? {
        descriptor.withLockedValue { $0 >= 0 ? body($0) : nil }
    }

    /// Closes the descriptor within moments; a blocking read would keep it open.
    func close() {
        descriptor.withLockedValue { $0 = -1 }
    }
}
