#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// A thread for blocking code, which must not run on the threads of tasks. Its creator must join or detach it, once.
package struct SystemThread: @unchecked Sendable {
    // Sendable because a pthread_t is an ID that any thread of the process may use; it is a pointer on some systems.
    private let thread: pthread_t

    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread that ends when `body` returns. Returns nil on failure, with `errno`.
    package init?(stackSize: Int, _ body: @escaping @Sendable () -> Void) {
        let retained = Unmanaged.passRetained(Body(body))
        var attributes = pthread_attr_t()
        _ = pthread_attr_init(&attributes)
        defer { _ = pthread_attr_destroy(&attributes) }
        _ = pthread_attr_setstacksize(&attributes, stackSize)
        #if canImport(Darwin)
        var created: pthread_t?
        #else
        var created = pthread_t()
        #endif
        let status = pthread_create(
            &created, &attributes,
            { argument in
                // The argument isn’t optional on every system.
                let given: UnsafeMutableRawPointer? = argument
                guard let argument = given else { return nil }
                let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                SystemThread.blockSignals()
                body.run()
                return nil
            }, retained.toOpaque())
        let thread: pthread_t? = created
        guard status == 0, let thread else {
            retained.release()
            errno = status
            return nil
        }
        self.thread = thread
    }

    /// Waits for the thread’s end.
    package func join() { _ = pthread_join(thread, nil) }

    /// Detaches the thread: the system releases it when it ends.
    package func detach() { _ = pthread_detach(thread) }

    /// Blocks the process’s signals, including SIGPIPE of a write to a closed connection. Signals of this
    /// thread’s faults stay unblocked, and so does SIGPROF, with which the runtime stops each thread for a crash
    /// report: the report lacks threads that block it.
    private static func blockSignals() {
        var signals = sigset_t()
        _ = sigfillset(&signals)
        for signal in [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF] {
            _ = sigdelset(&signals, signal)
        }
        _ = pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}
