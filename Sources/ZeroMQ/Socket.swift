import CZeroMQ
import LibC

/// The outcome of sending a message on a socket.
package enum SendOutcome: Sendable, Hashable {
    /// libzmq accepted the message, which can still be lost with the connection.
    case sent
    /// The peer’s buffer is full, or a dealer has no peer: nothing was sent.
    case wouldBlock
    /// A ROUTER with `routerMandatory` has no peer of that name: nothing was sent.
    case unreachable
}

/// A socket that is opened, used and closed by one thread.
///
/// It isn’t copyable, so that it has one owner that closes it, and not `Sendable`, because libzmq’s sockets aren’t
/// thread-safe. Its `deinit` closes it like `close()`.
package struct Socket: ~Copyable {
    /// The last endpoint to which the socket was bound or connected, or its kind, for error messages.
    package private(set) var endpoint: String
    var handle: UnsafeMutableRawPointer?
    /// The buffer for receives that return a copy.
    private var received = ReceivedMessage()

    /// The maximum number of frames in a message, more than any message of the bus has; further frames are dropped.
    package static let maximumFrames = 4_096

    /// Opens a socket for the calling thread, with linger 0.
    package init(_ kind: SocketKind, in context: ZeroMQContext, options: [SocketOption] = []) throws(ZeroMQError) {
        let handle = try context.makeSocket(kind)
        for option in [.linger(0)] + options where option.apply(to: handle) != 0 {
            let error = ZeroMQError.last("zmq_setsockopt(\(option.name))", kind.rawValue)
            _ = zmq_close(handle)
            throw error
        }
        self.handle = handle
        endpoint = kind.rawValue
    }

    deinit {
        if let handle { _ = zmq_close(handle) }
    }

    /// Closes the socket at once and drops unsent messages. Every later call except `close()` fails with ENOTSOCK.
    package mutating func close() {
        guard let open = handle else { return }
        handle = nil
        _ = zmq_close(open)
    }

    /// Sets an option on the open socket.
    package mutating func set(_ option: SocketOption) throws(ZeroMQError) {
        guard let handle else { throw closed(option.name) }
        guard option.apply(to: handle) == 0 else { throw .last("zmq_setsockopt(\(option.name))", endpoint) }
    }

    /// Accepts connections at an endpoint. A second bind to an ipc path silently replaces the first: hold a lock.
    package mutating func bind(_ endpoint: IPCEndpoint) throws(ZeroMQError) {
        guard let handle else { throw closed("zmq_bind") }
        guard zmq_bind(handle, endpoint.text) == 0 else { throw .last("zmq_bind", endpoint.text) }
        self.endpoint = endpoint.text
    }

    /// Connects to an endpoint, and reconnects whenever the connection is lost.
    package mutating func connect(_ endpoint: IPCEndpoint) throws(ZeroMQError) {
        guard let handle else { throw closed("zmq_connect") }
        guard zmq_connect(handle, endpoint.text) == 0 else { throw .last("zmq_connect", endpoint.text) }
        self.endpoint = endpoint.text
    }

    /// Sends one message of one or more frames, whole or not at all. It blocks only if `wait` is set.
    package mutating func send(_ message: Message, wait: Bool = false) throws(ZeroMQError) -> SendOutcome {
        var outcome = SendOutcome.sent
        for index in message.indices {
            let next = try sendPart(message[index], more: index < message.count - 1, wait: wait)
            guard next != .sent else { continue }
            // After the first frame libzmq rolls the message back and drops the remaining frames.
            outcome = next
            if index == 0 { return outcome }
        }
        return outcome
    }

    /// Sends one message of three frames without allocating a frame for the middle one.
    package mutating func send(
        _ first: Frame, _ middle: UnsafeRawBufferPointer, _ last: Frame
    ) throws(ZeroMQError) -> SendOutcome {
        let outcome = try sendPart(first, more: true, wait: false)
        guard outcome == .sent else { return outcome }
        let second = try sendPart(middle, more: true, wait: false)
        let third = try sendPart(last, more: false, wait: false)
        return second == .sent ? third : second
    }

    /// Sends one message of three frames that are copied from memory.
    package mutating func send(
        _ first: UnsafeRawBufferPointer, _ middle: UnsafeRawBufferPointer, _ last: UnsafeRawBufferPointer,
        wait: Bool = false
    ) throws(ZeroMQError) -> SendOutcome {
        let outcome = try sendPart(first, more: true, wait: wait)
        guard outcome == .sent else { return outcome }
        let second = try sendPart(middle, more: true, wait: wait)
        let third = try sendPart(last, more: false, wait: wait)
        return second == .sent ? third : second
    }

    private func sendPart(_ frame: Frame, more: Bool, wait: Bool) throws(ZeroMQError) -> SendOutcome {
        if frame.count >= SharedFrame.minimum { return try sendShared(frame, more: more, wait: wait) }
        let result = frame.withUnsafeBytes { bytes -> Result<SendOutcome, ZeroMQError> in
            do throws(ZeroMQError) { return .success(try sendPart(bytes, more: more, wait: wait)) } catch {
                return .failure(error)
            }
        }
        return try result.get()
    }

    /// Sends a long frame without copying it: the queues of all sockets and peers share its bytes.
    private func sendShared(_ frame: Frame, more: Bool, wait: Bool) throws(ZeroMQError) -> SendOutcome {
        guard let handle else { throw closed("zmq_msg_send") }
        let flags = (wait ? 0 : ZMQ_DONTWAIT) | (more ? ZMQ_SNDMORE : 0)
        var message = zmq_msg_t()
        guard SharedFrame.fill(&message, with: frame) else { throw .last("zmq_msg_init_data", endpoint) }
        while zmq_msg_send(&message, handle, flags) < 0 {
            let number = zmq_errno()
            if number == EINTR { continue }
            _ = zmq_msg_close(&message)
            return try outcome(of: number)
        }
        return .sent
    }

    private func outcome(of number: Int32) throws(ZeroMQError) -> SendOutcome {
        switch number {
        case 0: return .sent
        case EAGAIN: return .wouldBlock
        case EHOSTUNREACH: return .unreachable
        default: throw ZeroMQError(call: "zmq_send", endpoint: endpoint, number: number)
        }
    }

    private func sendPart(
        _ bytes: UnsafeRawBufferPointer, more: Bool, wait: Bool
    ) throws(ZeroMQError) -> SendOutcome {
        guard let handle else { throw closed("zmq_send") }
        let flags = (wait ? 0 : ZMQ_DONTWAIT) | (more ? ZMQ_SNDMORE : 0)
        return try outcome(of: Self.send(bytes, handle, flags))
    }

    /// Sends one frame; returns 0 or the error number.
    private static func send(_ bytes: UnsafeRawBufferPointer, _ handle: UnsafeMutableRawPointer, _ flags: Int32)
        -> Int32
    {
        while true {
            if zmq_send(handle, bytes.baseAddress, bytes.count, flags) >= 0 { return 0 }
            let number = zmq_errno()
            if number != EINTR { return number }
        }
    }

    /// Receives the next whole message; nil if there is none (with `wait`, none within the receive timeout).
    package mutating func receive(wait: Bool = false) throws(ZeroMQError) -> Message? {
        guard let handle else { throw closed("zmq_msg_recv") }
        guard try isReceived(received.receive(from: handle, wait: wait)) else { return nil }
        defer { received.clear() }
        return received.message
    }

    /// Receives the next whole message without copying it; false if there is none.
    package mutating func receive(
        into message: inout ReceivedMessage, wait: Bool = false
    ) throws(ZeroMQError) -> Bool {
        guard let handle else { throw closed("zmq_msg_recv") }
        return try isReceived(message.receive(from: handle, wait: wait))
    }

    private func isReceived(_ number: Int32) throws(ZeroMQError) -> Bool {
        switch number {
        case 0: return true
        case EAGAIN: return false
        default: throw ZeroMQError(call: "zmq_msg_recv", endpoint: endpoint, number: number)
        }
    }

    private func closed(_ call: String) -> ZeroMQError {
        ZeroMQError(call: call, endpoint: endpoint, number: ENOTSOCK)
    }
}
