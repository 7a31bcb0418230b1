import CCurl
import LibC
import NIOConcurrencyHelpers

/// Passes the messages of callers to the client’s thread. The thread starts with the first request and ends after an
/// idle timeout, so that an idle process has neither a thread nor connections.
final class TransferMailbox: Sendable {
    enum Message {
        case start(WebRequest, Exchange)
        /// The reader of a paused transfer has read most of its buffer.
        case resume(UInt64)
        case cancel(UInt64)
    }

    /// libcurl’s multi handle, for waking the thread that waits on it.
    private struct WakeupHandle: @unchecked Sendable {
        // Sendable because the handle is used for curl_multi_wakeup only, which any thread may call while the handle
        // exists. Calls are made under the lock, and the thread removes the handle under the lock before it frees it.
        let multi: UnsafeMutableRawPointer
    }

    private struct State {
        var messages: [Message] = []
        var handle: WakeupHandle?
        /// Whether a thread handles messages.
        var isRunning = false
        /// The newest thread, until it is joined.
        var thread: SystemThread?
        /// The number of threads that are closing their connections and handle no messages.
        var closing = 0
        var isShut = false
        /// The calls of `shutdown` that wait until no thread has connections.
        var shutdowns: [CheckedContinuation<Void, Never>] = []

        func wake() {
            if let handle { _ = ccurl_multi_wakeup(handle.multi) }
        }
    }

    /// The work of the thread, until `close` has returned true.
    private let body: @Sendable (TransferMailbox) -> Void
    private let state = NIOLockedValueBox(State())

    convenience init(options: WebClientOptions) {
        self.init { TransferLoop(mailbox: $0, options: options).run() }
    }

    init(body: @escaping @Sendable (TransferMailbox) -> Void) {
        self.body = body
    }

    deinit {
        // The client was released without `shutdown`.
        state.withLockedValue(\.thread)?.detach()
    }

    // MARK: Callers

    /// Sends a message to the thread. After `shutdown`, and without a thread, a request fails.
    func post(_ message: Message) {
        let refusal = state.withLockedValue { state -> WebFailure? in
            if state.isShut { return .cancelled }
            if !state.isRunning {
                // Only a request needs a thread.
                guard case .start = message else { return nil }
                // TLS libraries need more stack than the 64 KiB of other threads.
                let thread = SystemThread(stackSize: 512 << 10) { [self] in
                    body(self)
                    closed()
                }
                guard let thread else { return .unavailable("no thread could be started") }
                // The previous thread is about to end.
                state.thread?.detach()
                state.thread = thread
                state.isRunning = true
            }
            state.messages.append(message)
            if state.messages.count == 1 { state.wake() }
            return nil
        }
        if let refusal, case .start(_, let exchange) = message { exchange.fail(refusal) }
    }

    /// Returns when all transfers and the thread have ended. Later requests fail. Afterwards the process may exit, because
    /// no thread uses a library that cleans up at exit.
    func shutdown() async {
        await withCheckedContinuation { continuation in
            let isOpen = state.withLockedValue { state in
                state.isShut = true
                guard state.isRunning || state.closing > 0 else { return false }
                state.shutdowns.append(continuation)
                state.wake()
                return true
            }
            if !isOpen { continuation.resume() }
        }
        let thread = state.withLockedValue { state in
            defer { state.thread = nil }
            return state.thread
        }
        thread?.join()
    }

    // MARK: Thread

    /// Registers `multi`, on which the thread waits, so that messages wake it.
    func opened(_ multi: UnsafeMutableRawPointer) {
        state.withLockedValue { $0.handle = WakeupHandle(multi: multi) }
    }

    /// Returns the messages since the last call, and whether the thread must end.
    func removeMessages() -> (messages: [Message], isShut: Bool) {
        state.withLockedValue { state in
            defer { state.messages = [] }
            return (state.messages, state.isShut)
        }
    }

    /// Returns true if the thread must end, because there are no messages; it may then free `multi`.
    func close() -> Bool {
        state.withLockedValue { state in
            guard state.messages.isEmpty else { return false }
            (state.handle, state.isRunning) = (nil, false)
            state.closing += 1
            return true
        }
    }

    /// Records that all connections of a thread are closed.
    private func closed() {
        let waiters = state.withLockedValue { state -> [CheckedContinuation<Void, Never>] in
            state.closing -= 1
            guard !state.isRunning, state.closing == 0 else { return [] }
            defer { state.shutdowns = [] }
            return state.shutdowns
        }
        for waiter in waiters { waiter.resume() }
    }
}
