import CZeroMQ
import LibC

/// A descriptor with which another thread interrupts `zmq_poll`: an eventfd, or a pipe on systems without one.
struct WakeupDescriptor: Sendable {
    let readable: Int32
    private let writable: Int32

    init() throws(ZeroMQError) {
        #if os(Linux)
        let descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
        guard descriptor >= 0 else { throw ZeroMQError(call: "eventfd", endpoint: "", number: errno) }
        readable = descriptor
        writable = descriptor
        #else
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw ZeroMQError(call: "pipe", endpoint: "", number: errno) }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        readable = ends[0]
        writable = ends[1]
        #endif
    }

    func signal() {
        #if os(Linux)
        var one: UInt64 = 1
        while write(writable, &one, 8) < 0, errno == EINTR {}
        #else
        var one: UInt8 = 1
        while write(writable, &one, 1) < 0, errno == EINTR {}
        #endif
    }

    /// Makes the descriptor unreadable until the next signal.
    func clear() {
        #if os(Linux)
        var count: UInt64 = 0
        while read(readable, &count, 8) < 0, errno == EINTR {}
        #else
        var bytes: (UInt64, UInt64) = (0, 0)
        while true {
            let count = read(readable, &bytes, 16)
            if count < 16, !(count < 0 && errno == EINTR) { return }
        }
        #endif
    }

    func close() {
        closeDescriptor(readable)
        if writable != readable { closeDescriptor(writable) }
    }
}
