import CProcess
import Foundation
import TestSupport

/// A shell with job control on its own terminal, and that terminal’s screen.
///
/// It runs one script; the test acts as the user, on a terminal of the kernel.
final class TerminalShell: Sendable {
    /// The controlling side of the pseudo-terminal.
    private let user: DescriptorReader
    /// The process ID of the shell.
    let pid: pid_t
    /// The modes of the terminal before anything ran on it.
    let modes: Modes
    private let display: Awaited<Display>

    /// The output on the terminal.
    private struct Display {
        var screen: TerminalScreen
        var written: [UInt8] = []
        /// Keeps the terminal open until a program has written to it; without it the terminal would appear closed.
        var openTerminal: Int32

        mutating func handle(_ bytes: ArraySlice<UInt8>) {
            release()
            written += bytes
            screen.write(bytes)
        }

        mutating func release() {
            if openTerminal >= 0 { close(openTerminal) }
            openTerminal = -1
        }
    }

    /// The output of `stty`: the modes of the terminal.
    struct Modes: Equatable {
        var input: tcflag_t
        var output: tcflag_t
        var local: tcflag_t
    }

    init(_ fleet: ProcessFleet, script: String, columns: Int = 80, rows: Int = 24, wraps: Bool = false) throws {
        let user = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var lock: Int32 = 0
        var number: UInt32 = 0
        // The ioctl codes TIOCSPTLCK and TIOCGPTN; `unlockpt` and `ptsname` aren’t available here.
        let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
        guard user >= 0, ioctl(user, setLock, &lock) == 0, ioctl(user, getNumber, &number) == 0 else {
            throw ProcessFleet.Unexpected(description: "no terminal: \(String(cString: strerror(errno)))")
        }
        let terminal = "/dev/pts/\(number)"
        let openTerminal = open(terminal, O_RDWR | O_NOCTTY | O_CLOEXEC)
        let display = Awaited(
            Display(screen: TerminalScreen(columns: columns, rows: rows, wraps: wraps), openTerminal: openTerminal))
        self.display = display
        modes = Self.modes(user)
        Self.setSize(user, columns, rows)
        var environment = fleet.environment
        environment["TERM"] = "xterm"
        environment["LC_ALL"] = "C.UTF-8"
        environment["LOCKSTEP"] = ProcessFleet.binaries + "/lockstep"
        for variable in ["LOCKSTEP_PLAIN", "COLUMNS", "LINES", "ENV"] { environment[variable] = nil }
        // The first terminal that a session leader opens becomes its controlling terminal.
        let words = ["/bin/sh", "-c", "exec <>\(terminal) >&0 2>&0\nset -m\n" + script]
        do {
            pid = try ChildProgram.withNullDevice { nothing in
                try ChildProgram.start(words, environment: environment, input: nothing, output: nothing, in: fleet.root)
            }
        } catch {
            close(openTerminal)
            close(user)
            throw error
        }
        self.user = DescriptorReader(user) { bytes in
            display.change { $0.handle(bytes) }
        } ended: {
            display.change { $0.release() }
        }
    }

    /// Runs `body` with a shell, and afterwards ends it and all of its processes.
    static func with(
        _ fleet: ProcessFleet, _ script: String, columns: Int = 80, rows: Int = 24, wraps: Bool = false,
        _ body: (TerminalShell) async throws -> Void
    ) async throws {
        let shell = try TerminalShell(fleet, script: script, columns: columns, rows: rows, wraps: wraps)
        do {
            try await body(shell)
        } catch {
            try? await shell.end()
            throw error
        }
        try await shell.end()
    }

    var screen: TerminalScreen { display.now.screen }
    /// The text written to the terminal.
    var written: String { String(decoding: display.now.written, as: UTF8.self) }
    /// The number of bytes written to the terminal.
    var bytesWritten: Int { display.now.written.count }

    /// Waits until the screen meets the condition.
    /// - Throws: the actual screen, after the limit.
    func until(
        _ what: String, within limit: Duration = .seconds(40),
        _ condition: @escaping @Sendable (TerminalScreen) -> Bool
    ) async throws {
        guard await display.first(within: limit, where: { condition($0.screen) }) == nil else { return }
        let now = display.now
        let bytes = String(decoding: now.written.suffix(400), as: UTF8.self).debugDescription
        throw ProcessFleet.Unexpected(
            description: "waited for: \(what); on the screen:\n\(now.screen.text)\nlast: \(bytes)")
    }

    func until(sees text: String) async throws {
        try await until("“\(text)”") { $0.text.contains(text) }
    }

    // MARK: - User input

    /// Writes the text to the terminal, as if a user typed it.
    func type(_ text: String) {
        let bytes = Array(text.utf8)
        user.use { _ = write($0, bytes, bytes.count) }
    }

    /// Presses an arrow key: A is up, B down, C right, D left.
    func arrow(_ letter: Character) {
        type(screen.sendsApplicationKeys ? "\u{1b}O\(letter)" : "\u{1b}[\(letter)")
    }

    /// Resizes the window.
    func resize(columns: Int, rows: Int) {
        display.change { $0.screen.resize(columns: columns, rows: rows) }
        user.use { Self.setSize($0, columns, rows) }
    }

    /// Closes the window.
    func hangUp() { user.close() }

    /// The leader of the foreground process group.
    var foreground: pid_t { user.use(tcgetpgrp) ?? -1 }

    /// The current modes of the terminal.
    var modesNow: Modes? { user.use(Self.modes) }

    private func end() async throws {
        hangUp()
        defer { lockstep_reap(pid) }
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
