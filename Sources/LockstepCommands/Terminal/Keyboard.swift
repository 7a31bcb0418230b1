import LibC

/// The keys of the terminal of standard input, one by one and without an echo.
final class Keyboard {
    private var saved = termios()
    private var sequence = KeySequence()

    /// A keyboard that is still the shell's.
    init() {
        tcgetattr(STDIN_FILENO, &saved)
    }

    /// Whether there is a keyboard that this program may take: in the background it would be stopped.
    static var isOurs: Bool { isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() }

    /// Lets each key through at once.
    func take() {
        var mode = saved
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            characters[Int(VMIN)] = 0
            characters[Int(VTIME)] = 0
        }
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
    }

    /// Gives the terminal back as it was.
    func giveBack() {
        tcsetattr(STDIN_FILENO, TCSADRAIN, &saved)
    }

    /// The next key that waits; nil: none.
    func next() -> PlayerKey? {
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) == 1 {
            if let key = sequence.take(byte) { return key }
        }
        sequence.end()
        return nil
    }
}
