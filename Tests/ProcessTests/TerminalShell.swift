import CProcess
import Foundation
import NIOConcurrencyHelpers

/// A shell with job control on a terminal of its own, and what is to be seen on it.
///
/// It runs one script; the test is the user, and the kernel's terminal the real one.
final class TerminalShell: Sendable {
    /// The side of the terminal that the user is on.
    private let user: NIOLockedValueBox<Int32>
    /// The shell.
    let pid: pid_t
    /// How the terminal was set before anything ran on it.
    let modes: Modes
    private let state: NIOLockedValueBox<State>

    private struct State {
        var screen: TerminalScreen
        var written: [UInt8] = []
        var waiters: [Int: Waiter] = [:]
        var nextWaiter = 0
    }
    private struct Waiter: Sendable {
        var condition: @Sendable (TerminalScreen) -> Bool
        var met: AsyncStream<Bool>.Continuation
    }

    /// What `stty` shows: how the terminal treats input and output.
    struct Modes: Equatable {
        var input: tcflag_t
        var output: tcflag_t
        var local: tcflag_t
    }

    init(_ fleet: ProcessFleet, script: String, columns: Int = 80, rows: Int = 24) throws {
        let user = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var lock: Int32 = 0
        var number: UInt32 = 0
        // Linux's own requests, for the C library's functions cannot be seen from here.
        let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        guard user >= 0, ioctl(user, setLock, &lock) == 0, ioctl(user, getNumber, &number) == 0 else {
            throw ProcessFleet.Unexpected(description: "no terminal: \(String(cString: strerror(errno)))")
        }
        self.user = NIOLockedValueBox(user)
        let terminal = "/dev/pts/\(number)"
        // Held open until the shell has written something: before, the terminal would seem to have been left.
        let keeper = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        state = NIOLockedValueBox(State(screen: TerminalScreen(columns: columns, rows: rows)))
        modes = Self.modes(user)
        Self.setSize(user, columns, rows)
        var environment = fleet.environment
        environment["TERM"] = "xterm"
        environment["LC_ALL"] = "C.UTF-8"
        environment["LOCKSTEP"] = ProcessFleet.binaries + "/lockstep"
        for variable in ["LOCKSTEP_PLAIN", "COLUMNS", "LINES", "ENV"] { environment[variable] = nil }
        // The first terminal that the leader of a session opens controls it.
        let words = ["sh", "-c", "exec <>\(terminal) >&0 2>&0\nset -m\n" + script]
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(nothing) }
        var arguments = words.map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0.key)=\($0.value)") } + [nil]
        defer { for word in arguments + variables { free(word) } }
        pid = lockstep_spawn("/bin/sh", &arguments, &variables, nothing, nothing, 0, fleet.root)
        guard pid > 0 else {
            close(keeper)
            close(user)
            throw ProcessFleet.Unexpected(description: "no shell")
        }
        let reader = Thread { [self] in read(from: user, keeper) }
        reader.start()
    }

    /// Runs `body` with a shell, which is gone afterwards with all that it ran, in the background too.
    static func with(
        _ fleet: ProcessFleet, _ script: String, columns: Int = 80, rows: Int = 24,
        _ body: (TerminalShell) async throws -> Void
    ) async throws {
        let shell = try TerminalShell(fleet, script: script, columns: columns, rows: rows)
        do {
            try await body(shell)
        } catch {
            try? await shell.end()
            throw error
        }
        try await shell.end()
    }

    private func read(from descriptor: Int32, _ keeper: Int32) {
        var isKept = true
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            _ = poll(&waiting, 1, 100)
            if user.withLockedValue({ $0 }) < 0 { break }
            guard waiting.revents != 0 else { continue }
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            // EIO: the shell and all that it ran have left the terminal.
            guard count > 0 else { break }
            if isKept { close(keeper) }
            isKept = false
            update { state in
                state.written += chunk[..<count]
                state.screen.write(chunk[..<count])
            }
        }
        if isKept { close(keeper) }
        close(descriptor)
    }

    private func update(_ change: (inout State) -> Void) {
        let met = state.withLockedValue { state -> [Waiter] in
            change(&state)
            let met = state.waiters.filter { $0.value.condition(state.screen) }
            for key in met.keys { state.waiters[key] = nil }
            return Array(met.values)
        }
        for waiter in met { waiter.met.yield(true) }
    }

    var screen: TerminalScreen { state.withLockedValue { $0.screen } }
    /// How many bytes have been written to the terminal.
    var bytesWritten: Int { state.withLockedValue { $0.written.count } }

    /// Waits until the screen is as it should be.
    /// - Throws: what is on it instead, after a while.
    func until(
        _ what: String, within limit: Duration = .seconds(40),
        _ condition: @escaping @Sendable (TerminalScreen) -> Bool
    ) async throws {
        let met = AsyncStream<Bool>.makeStream()
        let key = state.withLockedValue { state -> Int in
            if condition(state.screen) {
                met.continuation.yield(true)
                return -1
            }
            state.nextWaiter += 1
            state.waiters[state.nextWaiter] = Waiter(condition: condition, met: met.continuation)
            return state.nextWaiter
        }
        let timer = Task {
            try await ContinuousClock().sleep(for: limit)
            met.continuation.yield(false)
        }
        defer {
            timer.cancel()
            state.withLockedValue { _ = $0.waiters.removeValue(forKey: key) }
        }
        for await success in met.stream {
            if success { return }
            break
        }
        let (screen, last) = state.withLockedValue { ($0.screen, $0.written.suffix(400)) }
        let bytes = String(decoding: last, as: UTF8.self).debugDescription
        throw ProcessFleet.Unexpected(
            description: "waited for: \(what); on the screen:\n\(screen.text)\nlast: \(bytes)")
    }

    func until(sees text: String) async throws {
        try await until("“\(text)”") { $0.text.contains(text) }
    }

    // MARK: - The user

    /// Presses keys.
    func type(_ text: String) {
        let bytes = Array(text.utf8)
        user.withLockedValue { _ = write($0, bytes, bytes.count) }
    }

    /// Presses an arrow key: A is up, B down, C right, D left.
    func arrow(_ letter: Character) {
        type(screen.sendsApplicationKeys ? "\u{1b}O\(letter)" : "\u{1b}[\(letter)")
    }

    /// Makes the window larger or smaller.
    func resize(columns: Int, rows: Int) {
        state.withLockedValue { $0.screen.resize(columns: columns, rows: rows) }
        user.withLockedValue { Self.setSize($0, columns, rows) }
    }

    /// Closes the window.
    func hangUp() {
        // The reader closes it; a read that waits would keep it open.
        user.withLockedValue { $0 = -1 }
    }

    /// The leader of the processes in the foreground.
    var foreground: pid_t { user.withLockedValue { tcgetpgrp($0) } }

    /// How the terminal is set now.
    var modesNow: Modes { user.withLockedValue { Self.modes($0) } }

    private func end() async throws {
        hangUp()
        defer { waitpid(pid, nil, 0) }
        try await ProcessTable.endSession(pid)
    }

    private static func modes(_ descriptor: Int32) -> Modes {
        var modes = termios()
        tcgetattr(descriptor, &modes)
        return Modes(input: modes.c_iflag, output: modes.c_oflag, local: modes.c_lflag)
    }

    private static func setSize(_ descriptor: Int32, _ columns: Int, _ rows: Int) {
        var size = winsize()
        size.ws_col = UInt16(clamping: columns)
        size.ws_row = UInt16(clamping: rows)
        _ = ioctl(descriptor, UInt(TIOCSWINSZ), &size)
    }
}
