import CProcess
import LibC
import SupervisorControl

/// A service’s process and its descriptors. It is confined to the supervisor’s thread.
struct ChildProcess {
    let pid: Int32
    /// The descriptor that is readable when the process has ended; −1 on systems without pidfds.
    let pidDescriptor: Int32
    /// The write end of its standard input, which is never written: it closes when the supervisor ends.
    let lifeline: Int32
    let output: Int32
    var splitter = LineSplitter()
    /// Its last output lines, for a crash report.
    var lastLines: [[UInt8]] = []
    /// The state of its threads when it was detected as hung.
    var hangingThreads: [String]?

    /// Starts the program. Returns nil without a pipe or process, with `errno`.
    init?(path: String, environment: [String: String]) {
        var input: [Int32] = [-1, -1]
        var output: [Int32] = [-1, -1]
        guard lockstep_pipe(&input, 0) == 0 else { return nil }
        guard lockstep_pipe(&output, 1) == 0 else {
            close(input[0])
            close(input[1])
            return nil
        }
        // The kernel sends the parent death signal when the thread that started the child ends: the supervisor’s own.
        let pid = SystemCall.spawn(
            path, [], environment: environment, input: input[0], output: output[1], parentDeathSignal: SIGKILL,
            directory: nil)
        let number = errno
        close(input[0])
        close(output[1])
        guard pid > 0 else {
            close(input[1])
            close(output[0])
            errno = number
            return nil
        }
        self.pid = pid
        pidDescriptor = lockstep_pidfd_open(pid)
        lifeline = input[1]
        self.output = output[0]
    }

    /// Returns the lines since the last call; reads at most about 256 KiB, so that no child delays other children.
    mutating func newLines() -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        for _ in 0..<4 {
            let count = read(output, &chunk, chunk.count)
            guard count > 0 else { break }
            lines += splitter.lines(chunk[..<count])
        }
        lastLines = Array((lastLines + lines.suffix(20)).suffix(20))
        return lines
    }

    /// The end of the process; nil while it runs.
    func end() -> ProcessEnd? {
        var code: Int32 = 0
        var signalled: Int32 = 0
        guard lockstep_child_ended(pid, &code, &signalled) == 1 else { return nil }
        return signalled != 0 ? .signalled(code) : .exited(code)
    }

    /// Kills the rest of its session, reaps it and closes its descriptors.
    func release() {
        _ = kill(-pid, SIGKILL)
        lockstep_reap(pid)
        if pidDescriptor >= 0 { close(pidDescriptor) }
        close(lifeline)
        close(output)
    }
}

/// A client of the control socket. It is confined to the supervisor’s thread.
struct ControlConnection {
    let descriptor: Int32
    var input = LineSplitter()
    var output: [UInt8] = []
    var waitsForReady = false
    var waitsForEnd = false
    /// The service whose lines it follows; empty means all; nil if there is none.
    var follows: String?
    var isBroken = false
    /// The maximum size of a slow client’s waiting output, in bytes.
    static let outputLimit = 4 << 20

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    mutating func send(_ reply: ControlReply) {
        output += ControlCoding.line(reply)
        flush()
        if output.count > Self.outputLimit { isBroken = true }
    }

    mutating func flush() {
        while !output.isEmpty {
            let count = sendBytes(descriptor, output, waiting: false)
            if count < 0, errno == EINTR { continue }
            if count < 0, errno != EAGAIN { isBroken = true }
            guard count > 0 else { return }
            output.removeFirst(count)
        }
    }

    /// Returns the requests since the last call; marks the connection as broken if the client has closed it.
    mutating func requests() -> [[UInt8]] {
        var chunk = [UInt8](repeating: 0, count: 16_384)
        let count = read(descriptor, &chunk, chunk.count)
        if count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR) { isBroken = true }
        return count > 0 ? input.lines(chunk[..<count]) : []
    }
}
