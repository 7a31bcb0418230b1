import NIOConcurrencyHelpers

/// The state that a request’s task, which reads the response, shares with the client’s thread, which receives it. When
/// the buffer of the body is full, the thread pauses the transfer; the reader resumes it.
final class Exchange: Sendable {
    private enum Ending {
        case complete
        case failed(WebFailure)
    }

    private struct State {
        var head: ResponseHead?
        /// The received bytes, of which the first `consumed` have been read.
        var bytes: [UInt8] = []
        var consumed = 0
        var ending: Ending?
        var isPaused = false
        /// The continuation of the task that waits for bytes or for the head.
        var waiter: CheckedContinuation<Void, Never>?
        var waitsForBody = false

        var isReady: Bool { ending != nil || (waitsForBody ? unread > 0 : head != nil) }
        var unread: Int { bytes.count - consumed }

        mutating func consume(atMost limit: Int) -> [UInt8] {
            guard consumed > 0 || unread > limit else {
                defer { bytes = [] }
                return bytes
            }
            let end = consumed + min(limit, unread)
            defer {
                consumed = end
                if unread == 0 { (bytes, consumed) = ([], 0) }
            }
            return Array(bytes[consumed..<end])
        }

        mutating func append(_ more: UnsafeRawBufferPointer) {
            if consumed > bytes.count / 2 {
                bytes.removeFirst(consumed)
                consumed = 0
            }
            bytes.append(contentsOf: more)
        }
    }

    /// The number of unread bytes at which the transfer is paused; libcurl may still deliver one more block.
    private static let bufferLimit = 256 << 10

    /// The ID of the transfer on the client’s thread.
    let number: UInt64
    private let mailbox: TransferMailbox
    private let state = NIOLockedValueBox(State())

    init(number: UInt64, mailbox: TransferMailbox) {
        self.number = number
        self.mailbox = mailbox
    }

    // MARK: Caller

    func head() async throws(WebFailure) -> ResponseHead {
        await wait(forBody: false)
        let (head, ending) = state.withLockedValue { ($0.head, $0.ending) }
        if let head { return head }
        guard case .failed(let failure)? = ending else { throw .cancelled }
        throw failure
    }

    /// Waits for bytes, and returns at most `limit` of them; nil if the body is complete.
    func next(atMost limit: Int) async throws(WebFailure) -> [UInt8]? {
        await wait(forBody: true)
        let (bytes, ending, resumes) = state.withLockedValue { state in
            let bytes = state.consume(atMost: max(1, limit))
            let resumes = state.isPaused && state.unread <= Self.bufferLimit / 2
            if resumes { state.isPaused = false }
            return (bytes, state.ending, resumes)
        }
        if resumes { mailbox.post(.resume(number)) }
        if !bytes.isEmpty { return bytes }
        guard case .failed(let failure)? = ending else { return nil }
        throw failure
    }

    /// Ends the transfer and drops the unread bytes. The body is then never complete.
    func cancel() {
        let (waiter, isRunning) = state.withLockedValue { state in
            let isRunning = state.ending == nil
            if isRunning || state.unread > 0 { state.ending = .failed(.cancelled) }
            (state.bytes, state.consumed) = ([], 0)
            defer { state.waiter = nil }
            return (state.waiter, isRunning)
        }
        if isRunning { mailbox.post(.cancel(number)) }
        waiter?.resume()
    }

    private func wait(forBody: Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isReady = state.withLockedValue { state in
                    precondition(state.waiter == nil, "a response is read by one task")
                    state.waitsForBody = forBody
                    if !state.isReady { state.waiter = continuation }
                    return state.isReady
                }
                if isReady { continuation.resume() }
            }
        } onCancel: {
            cancel()
        }
    }

    // MARK: Thread

    func deliver(_ head: ResponseHead) { update { $0.head = head } }

    func append(_ bytes: UnsafeRawBufferPointer) {
        update { state in
            if state.ending == nil { state.append(bytes) }
        }
    }

    func finish() { update { $0.ending = $0.ending ?? .complete } }

    func fail(_ failure: WebFailure) { update { $0.ending = $0.ending ?? .failed(failure) } }

    /// Whether the transfer waits for the reader.
    var isPaused: Bool { state.withLockedValue(\.isPaused) }

    /// Whether the buffer is full: the transfer must then be paused until a `resume` is posted.
    func pausesIfFull() -> Bool {
        state.withLockedValue { state in
            guard !state.isPaused, state.unread >= Self.bufferLimit else { return false }
            state.isPaused = true
            return true
        }
    }

    private func update(_ change: (inout State) -> Void) {
        let waiter = state.withLockedValue { state -> CheckedContinuation<Void, Never>? in
            change(&state)
            guard state.isReady else { return nil }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }
}

/// Ends the transfer when the last reference to the body is released.
final class ExchangeOwner: Sendable {
    let exchange: Exchange

    init(_ exchange: Exchange) { self.exchange = exchange }

    deinit { exchange.cancel() }
}
