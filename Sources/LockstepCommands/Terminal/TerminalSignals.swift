import LibC

/// Where the handler writes.
///
/// `unsafe`: a handler can take no lock. It is set before the first handler is, and taken back after the last one.
private nonisolated(unsafe) var handlerPipe: Int32 = -1

/// The signals that a screen must answer in order, read like keys.
///
/// They are caught rather than held back: a thread that the runtime keeps for signals would let them through.
final class TerminalSignals: Sendable {
    private let pipe = WakePipe()

    /// What to poll.
    var descriptor: Int32 { pipe.descriptor }

    private static let numbers = [SIGWINCH, SIGTSTP, SIGCONT, SIGHUP, SIGTERM, SIGINT]

    /// Catches the screen's signals. There is one at a time.
    init() {
        handlerPipe = pipe.writing
        for number in Self.numbers {
            _ = signal(number) { number in
                let saved = errno
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(handlerPipe, &byte, 1)
                errno = saved
            }
        }
    }

    /// The next one that waits, or nil.
    func next() -> Int32? {
        pipe.next().map { Int32($0) }
    }

    /// Stops this process as the terminal's driver would have; returns when it goes on.
    func stopProcess() {
        // To this very thread, so that it does not run on for a moment while another one stops.
        raise(SIGSTOP)
    }

    /// Gives the signals their usual effects back.
    func close() {
        for number in Self.numbers { _ = signal(number, SIG_DFL) }
        handlerPipe = -1
        pipe.close()
    }
}
