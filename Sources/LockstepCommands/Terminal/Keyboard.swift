import LibC

/// Reads keys from standard input’s terminal, with the echo off.
final class Keyboard {
    private var saved = termios()
    private var sequence = KeySequence()

    init() { tcgetattr(STDIN_FILENO, &saved) }

    /// Whether this program may read the keyboard: in the background it would be stopped.
    static var isOurs: Bool { isatty(STDIN_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp() }

    func acquire() {
        var mode = saved
        mode.c_lflag &= ~tcflag_t(ICANON | ECHO)
        withUnsafeMutableBytes(of: &mode.c_cc) { characters in
            characters[Int(VMIN)] = 0
            characters[Int(VTIME)] = 0
        }
        tcsetattr(STDIN_FILENO, TCSADRAIN, &mode)
    }

    func giveBack() { tcsetattr(STDIN_FILENO, TCSADRAIN, &saved) }

    func next() -> PlayerKey? {
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) == 1 {
            if let key = sequence.handle(byte) { return key }
        }
        sequence.end()
        return nil
    }
}
