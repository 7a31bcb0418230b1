import CZeroMQ
import LibC

/// A running thread, joined or detached exactly once by its mailbox.
struct PollThreadHandle: @unchecked Sendable {
    // Sendable because a pthread_t is a name that any thread of the process may use; it is a pointer on some systems.
    let thread: pthread_t

    func join() { _ = pthread_join(thread, nil) }
    func detach() { _ = pthread_detach(thread) }
}

/// Starts threads with a name and a stack of a chosen size.
enum PollThreadStart {
    private final class Body {
        let name: String
        let run: @Sendable () -> Void

        init(name: String, run: @escaping @Sendable () -> Void) {
            self.name = name
            self.run = run
        }
    }

    static func launch(
        name: String,
        stackSize: Int,
        run: @escaping @Sendable () -> Void
    ) throws(ZeroMQError) -> PollThreadHandle {
        let body = Unmanaged.passRetained(Body(name: name, run: run))
        #if canImport(Darwin)
        var created: pthread_t?
        #else
        var created = pthread_t()
        #endif
        let status = create(&created, stackSize, body.toOpaque())
        let thread: pthread_t? = created
        guard status == 0, let thread else {
            body.release()
            throw ZeroMQError(call: "pthread_create", endpoint: name, number: status)
        }
        return PollThreadHandle(thread: thread)
    }

    #if canImport(Darwin)
    private typealias Created = pthread_t?
    #else
    private typealias Created = pthread_t
    #endif

    private static func create(_ thread: inout Created, _ stackSize: Int, _ body: UnsafeMutableRawPointer) -> Int32 {
        var attributes = pthread_attr_t()
        _ = pthread_attr_init(&attributes)
        defer { _ = pthread_attr_destroy(&attributes) }
        _ = pthread_attr_setstacksize(&attributes, stackSize)
        return pthread_create(&thread, &attributes, pollThreadMain, body)
    }

    fileprivate static func main(_ opaque: UnsafeMutableRawPointer) {
        let body = Unmanaged<Body>.fromOpaque(opaque).takeRetainedValue()
        setName(body.name)
        blockSignals()
        body.run()
    }

    private static func setName(_ name: String) {
        #if canImport(Darwin)
        _ = pthread_setname_np(name)
        #else
        lockstep_name_this_thread(name)
        #endif
    }

    /// Leaves the process's signals to other threads; what a fault of this thread raises stays with it, and so does
    /// SIGPROF, with which the runtime halts each thread for a crash report: those that block it are missing there.
    private static func blockSignals() {
        var signals = sigset_t()
        _ = sigfillset(&signals)
        let own = [SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF]
        for signal in own { _ = sigdelset(&signals, signal) }
        _ = pthread_sigmask(SIG_BLOCK, &signals, nil)
    }
}

#if canImport(Darwin)
private func pollThreadMain(_ body: UnsafeMutableRawPointer) -> UnsafeMutableRawPointer? {
    PollThreadStart.main(body)
    return nil
}
#else
private func pollThreadMain(_ body: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    if let body { PollThreadStart.main(body) }
    return nil
}
#endif
