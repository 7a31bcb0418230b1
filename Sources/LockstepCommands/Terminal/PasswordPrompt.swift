import CNcurses
import LibC
import LockstepClient
import PodcastModel

/// Asks for a password: on a terminal without showing it, else as the first line of standard input.
enum PasswordPrompt {
    /// - Throws: `invalidArgument` when there is no line, or the user gives up with ^C or ^D.
    static func read(for user: String) throws(Failure) -> String {
        var settings = termios()
        guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 else {
            guard let line = readLine() else { throw none }
            return line
        }
        var hidden = settings
        // Also ^C and ^Z come as characters: else they would leave the terminal without its echo.
        hidden.c_lflag &= ~tcflag_t(ECHO | ISIG | ICANON | IEXTEN)
        tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden)
        show("Password for \(DisplayText.sanitised(user)): ")
        defer {
            tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
            show("\n")
        }
        var typed = TypedPassword()
        var byte: UInt8 = 0
        while true {
            guard readByte(&byte) > 0 else { throw none }
            switch typed.press(byte) {
            case .more: continue
            case .given(let password): return password
            case .cancelled: throw none
            }
        }
    }

    private static let none = Failure(.invalidArgument, "No password was given.")

    /// One byte of standard input; 0 or less at its end.
    private static func readByte(_ byte: inout UInt8) -> Int {
        while true {
            let count = LibC.read(STDIN_FILENO, &byte, 1)
            guard count < 0, errno == EINTR else { return count }
        }
    }

    /// Standard output is for results.
    private static func show(_ text: String) {
        _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }
}

struct TypedPassword {
    enum Outcome: Equatable {
        case more
        case given(String)
        case cancelled
    }

    private var bytes: [UInt8] = []

    /// Handles a byte of a key: the usual ones end the line, give up, and delete a character or everything.
    mutating func press(_ byte: UInt8) -> Outcome {
        switch byte {
        case 0x0a, 0x0d: return .given(String(decoding: bytes, as: UTF8.self))
        case 0x03: return .cancelled
        case 0x04: return bytes.isEmpty ? .cancelled : .given(String(decoding: bytes, as: UTF8.self))
        case 0x08, 0x7f:
            // All bytes of the last character.
            while let last = bytes.popLast(), last & 0xc0 == 0x80 {}
        case 0x15: bytes = []
        default: bytes.append(byte)
        }
        return .more
    }
}
