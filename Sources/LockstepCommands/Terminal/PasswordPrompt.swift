import CNcurses
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// Asks for a password: on a terminal without showing it, else as the first line of standard input.
enum PasswordPrompt {
    private static let interrupt: Character = "\u{3}"

    /// - Throws: `invalidArgument` when there is no line, or the user gives up.
    static func read(for user: String) throws(Failure) -> String {
        guard isatty(STDIN_FILENO) == 1 else { return try line() }
        var settings = termios()
        guard tcgetattr(STDIN_FILENO, &settings) == 0 else { return try line() }
        var hidden = settings
        // ^C and ^Z come as characters, so that no end leaves the terminal without its echo.
        hidden.c_lflag &= ~tcflag_t(ECHO | ISIG)
        show("Password for \(DisplayText.sanitised(user)): ")
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            show("\n")
        }
        let password = try line()
        guard !password.contains(interrupt) else { throw Failure(.invalidArgument, "No password was given.") }
        return password
    }

    /// Standard output is for the command’s own.
    private static func show(_ text: String) {
        _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }

    private static func line() throws(Failure) -> String {
        guard let line = readLine(strippingNewline: true) else {
            throw Failure(.invalidArgument, "No password was given.")
        }
        return line
    }
}
