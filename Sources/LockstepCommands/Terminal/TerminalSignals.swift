import LibC

/// The descriptor that the handler writes to.
///
/// `unsafe`: a signal handler can’t acquire a lock. It is set before they are installed, and reset after their removal.
private nonisolated(unsafe) var handlerPipe: Int32 = -1

/// The signals that a screen handles in order.
///
/// They are caught, not blocked, because the runtime’s signal thread would receive blocked ones.
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

    /// Stops this process, as the terminal driver does on ^Z; returns when it continues.
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
