import LibC

/// The descriptor that the handler writes to.
///
/// `unsafe`: a signal handler can’t take a lock. It is set before the handlers are, and reset after they are removed.
private nonisolated(unsafe) var handlerPipe: Int32 = -1

/// The signals that a screen handles in order.
///
/// They are caught and not blocked, since a thread that the runtime keeps for signals would receive them.
final class TerminalSignals: Sendable {
    private let pipe = WakePipe()

    var descriptor: Int32 { pipe.descriptor }

    private static let numbers = [SIGWINCH, SIGTSTP, SIGCONT, SIGHUP, SIGTERM, SIGINT]

    /// Installs the handlers. Only one object may do so at a time.
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

    func next() -> Int32? { pipe.next().map { Int32($0) } }

    /// Stops this process like the terminal’s driver; returns when it continues.
    func stopProcess() {
        // The signal is sent to this thread, which would otherwise continue briefly while another one stops.
        raise(SIGSTOP)
    }

    func close() {
        for number in Self.numbers { _ = signal(number, SIG_DFL) }
        handlerPipe = -1
        pipe.close()
    }
}
