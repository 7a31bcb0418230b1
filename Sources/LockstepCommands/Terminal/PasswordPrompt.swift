import CNcurses
import LibC
import LockstepClient
import PodcastModel

/// Reads a password: on a terminal without an echo, else as the first line of standard input.
enum PasswordPrompt {
    /// - Throws: `invalidArgument` if there is no line, or the user cancels with ^C or ^D.
    static func read(for user: String) throws(Failure) -> String {
        var settings = termios()
        guard isatty(STDIN_FILENO) == 1, tcgetattr(STDIN_FILENO, &settings) == 0 else {
            guard let line = readLine() else { throw none }
            return line
        }
        var hidden = settings
        // ^C and ^Z are read as characters: otherwise the program could end or stop while the echo is off.
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
            case .entered(let password): return password
            case .cancelled: throw none
            }
        }
    }

    private static let none = Failure(
        .invalidArgument, "No password was given. Type it at the prompt, or write it to standard input.")

    /// Reads one byte of standard input; returns 0 or less at its end.
    private static func readByte(_ byte: inout UInt8) -> Int {
        while true {
            let count = LibC.read(STDIN_FILENO, &byte, 1)
            guard count < 0, errno == EINTR else { return count }
        }
    }

    /// Writes text to standard error; standard output is reserved for results.
    private static func show(_ text: String) {
        _ = text.withCString { write(STDERR_FILENO, $0, strlen($0)) }
    }
}

struct TypedPassword {
    enum Outcome: Equatable {
        case more
        case entered(String)
        case cancelled
    }

    private var bytes: [UInt8] = []

    /// Handles a byte of a key: it may end the line, cancel, or delete a character or the line.
    mutating func press(_ byte: UInt8) -> Outcome {
        switch byte {
        case 0x0a, 0x0d: return .entered(String(decoding: bytes, as: UTF8.self))
        case 0x03: return .cancelled
        case 0x04: return bytes.isEmpty ? .cancelled : .entered(String(decoding: bytes, as: UTF8.self))
        case 0x08, 0x7f:
            // All bytes of the last character are removed.
            while let last = bytes.popLast(), last & 0xc0 == 0x80 {}
        case 0x15: bytes = []
        default: bytes.append(byte)
        }
        return .more
    }
}
