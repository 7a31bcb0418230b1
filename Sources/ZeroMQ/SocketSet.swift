import CZeroMQ

/// The ID of a socket within its thread; it is never reused.
package struct SocketID: Sendable, Hashable {
    let number: Int
}

/// The sockets of one poll thread. Only that thread’s handler uses it, and only within a callback.
package final class SocketSet {
    private let context: ZeroMQContext
    private(set) var boxes: [Box] = []
    private var nextNumber = 0

    /// Boxes a socket, because arrays can’t hold values that can’t be copied.
    final class Box {
        let id: SocketID
        var socket: Socket
        var wantsWritable = false

        init(id: SocketID, socket: consuming Socket) {
            self.id = id
            self.socket = socket
        }
    }

    init(context: ZeroMQContext) {
        self.context = context
    }

    /// Opens a socket with linger 0 and these options.
    package func open(_ kind: SocketKind, options: [SocketOption] = []) throws(ZeroMQError) -> SocketID {
        let socket = try Socket(kind, in: context, options: options)
        let id = SocketID(number: nextNumber)
        nextNumber += 1
        boxes.append(Box(id: id, socket: socket))
        return id
    }

    package func bind(_ id: SocketID, to endpoint: IPCEndpoint) throws(ZeroMQError) {
        try box(id, "zmq_bind").socket.bind(endpoint)
    }

    package func connect(_ id: SocketID, to endpoint: IPCEndpoint) throws(ZeroMQError) {
        try box(id, "zmq_connect").socket.connect(endpoint)
    }

    package func set(_ option: SocketOption, on id: SocketID) throws(ZeroMQError) {
        try box(id, "zmq_setsockopt").socket.set(option)
    }

    /// Sends a message without blocking.
    package func send(_ message: Message, on id: SocketID) throws(ZeroMQError) -> SendOutcome {
        try box(id, "zmq_send").socket.send(message)
    }

    /// Sends a message of three frames without blocking and without allocating the middle one.
    package func send(
        _ first: Frame, _ middle: UnsafeRawBufferPointer, _ last: Frame, on id: SocketID
    ) throws(ZeroMQError) -> SendOutcome {
        try box(id, "zmq_send").socket.send(first, middle, last)
    }

    /// Sets whether each turn notifies the handler that the socket is writable. Set it only while messages wait.
    package func notifyWritable(_ wanted: Bool, on id: SocketID) throws(ZeroMQError) {
        try box(id, "zmq_poll").wantsWritable = wanted
    }

    /// Closes a socket at once; unread and unsent messages are dropped. Closing a closed one does nothing.
    package func close(_ id: SocketID) {
        guard let index = boxes.firstIndex(where: { $0.id == id }) else { return }
        boxes[index].socket.close()
        boxes.remove(at: index)
    }

    func closeAll() {
        for box in boxes { box.socket.close() }
        boxes.removeAll()
    }

    /// Receives the next message of a socket; false if there is none, or the socket is closed.
    func receive(into message: inout ReceivedMessage, from id: SocketID) throws(ZeroMQError) -> Bool {
        guard let box = boxes.first(where: { $0.id == id }) else { return false }
        return try box.socket.receive(into: &message)
    }

    /// Fills `items` with one entry for each socket, after the caller’s `reserved` entries, and `names` with their IDs.
    func fill(_ items: inout [zmq_pollitem_t], after reserved: Int, names: inout [SocketID]) {
        items.removeSubrange(reserved...)
        names.removeAll(keepingCapacity: true)
        for box in boxes {
            let events = Int16(ZMQ_POLLIN) | (box.wantsWritable ? Int16(ZMQ_POLLOUT) : 0)
            items.append(zmq_pollitem_t(socket: box.socket.handle, fd: 0, events: events, revents: 0))
            names.append(box.id)
        }
    }

    private func box(_ id: SocketID, _ call: String) throws(ZeroMQError) -> Box {
        guard let box = boxes.first(where: { $0.id == id }) else {
            throw ZeroMQError(call: call, endpoint: "a closed socket", number: ENOTSOCK)
        }
        return box
    }
}
