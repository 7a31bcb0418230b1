import CZeroMQ
import LibC
import NIOConcurrencyHelpers

/// A libzmq context: its I/O thread and its sockets.
///
/// Only `terminate()` ends it, because termination waits for every socket and a `deinit` must not wait. A process must
/// not use a context that its parent created before `fork`.
package final class ZeroMQContext: Sendable {
    // Any thread may use a context (zmq_ctx_new(3)); the lock makes its termination visible to all threads.
    private let handle: NIOLockedValueBox<Handle?>

    private struct Handle: @unchecked Sendable {
        // Sendable because libzmq’s contexts are thread-safe; sockets aren’t, and are created by their thread.
        let pointer: UnsafeMutableRawPointer
    }

    /// Starts a context with one I/O thread, which is created with the first socket.
    /// - Parameter sockets: the maximum number of simultaneous sockets; nil for libzmq’s default, 1023.
    package init(sockets: Int? = nil) throws(ZeroMQError) {
        guard let pointer = zmq_ctx_new() else { throw ZeroMQError.last("zmq_ctx_new", "") }
        if let sockets, zmq_ctx_set(pointer, ZMQ_MAX_SOCKETS, Int32(clamping: sockets)) != 0 {
            let error = ZeroMQError.last("zmq_ctx_set(ZMQ_MAX_SOCKETS)", "")
            _ = zmq_ctx_term(pointer)
            throw error
        }
        handle = NIOLockedValueBox(Handle(pointer: pointer))
    }

    /// Creates a socket of this context, for the calling thread.
    func makeSocket(_ kind: SocketKind) throws(ZeroMQError) -> UnsafeMutableRawPointer {
        let outcome: Result<UnsafeMutableRawPointer, ZeroMQError> = handle.withLockedValue { handle in
            guard let handle else {
                return .failure(ZeroMQError(call: "zmq_socket", endpoint: kind.rawValue, number: ETERM))
            }
            guard let socket = zmq_socket(handle.pointer, kind.number) else {
                return .failure(ZeroMQError.last("zmq_socket", kind.rawValue))
            }
            return .success(socket)
        }
        return try outcome.get()
    }

    /// Makes every blocking call on the context’s sockets fail with ETERM; they can then only be closed.
    package func shutdown() {
        handle.withLockedValue { handle in
            if let handle { _ = zmq_ctx_shutdown(handle.pointer) }
        }
    }

    /// Ends the context and its threads. Blocks until all sockets are closed; a second call does nothing.
    package func terminate() {
        guard
            let ended = handle.withLockedValue({ handle in
                defer { handle = nil }
                return handle
            })
        else { return }
        while zmq_ctx_term(ended.pointer) != 0, zmq_errno() == EINTR {}
    }
}
