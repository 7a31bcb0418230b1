import CZeroMQ

/// The kinds of socket that the bus is made of.
package enum SocketKind: Sendable, Hashable, CaseIterable {
    /// Sends to all that subscribed; receives nothing.
    case publish
    /// Receives what it subscribed to.
    case subscribe
    /// As `publish`, and receives the subscriptions in-band.
    case extendedPublish
    /// As `subscribe`, and sends subscriptions as messages.
    case extendedSubscribe
    /// Sends to its peers in turn; the asking side of a `router`.
    case dealer
    /// Sends to the peer that the first frame names.
    case router
    /// One peer, both ways.
    case pair

    var number: Int32 { entry.number }
    var name: String { entry.name }

    private var entry: (number: Int32, name: String) {
        switch self {
        case .publish: (ZMQ_PUB, "PUB")
        case .subscribe: (ZMQ_SUB, "SUB")
        case .extendedPublish: (ZMQ_XPUB, "XPUB")
        case .extendedSubscribe: (ZMQ_XSUB, "XSUB")
        case .dealer: (ZMQ_DEALER, "DEALER")
        case .router: (ZMQ_ROUTER, "ROUTER")
        case .pair: (ZMQ_PAIR, "PAIR")
        }
    }
}

/// A setting of a socket; all but the subscriptions act on the binds and connects that follow.
package enum SocketOption: Sendable, Hashable {
    /// How long a closed socket still tries to send, in milliseconds; 0 not at all. Sockets start with 0.
    case linger(Int32)
    /// How many messages (not bytes) may wait to be sent to one peer; 0 for no limit.
    case sendHighWaterMark(Int32)
    /// How many messages (not bytes) of one peer may wait to be read; 0 for no limit.
    case receiveHighWaterMark(Int32)
    /// The largest frame that is accepted, in bytes; a peer that sends a larger one is disconnected. −1 for any.
    case maximumMessageSize(Int64)
    /// Whether only completed connections take messages.
    case immediate(Bool)
    /// Whether a ROUTER says when it knows no such peer, rather than dropping the message.
    case routerMandatory(Bool)
    /// The name, 1 to 255 bytes and not beginning with 0, under which a ROUTER knows this socket.
    case routingID([UInt8])
    /// Whether an XPUB hands on repeated subscriptions too.
    case xpubVerbose(Bool)
    /// Milliseconds before a lost connection is tried again.
    case reconnectInterval(Int32)
    /// How many connections may wait to be accepted.
    case backlog(Int32)
    /// Adds a subscription to every topic that begins with these bytes.
    case subscribe([UInt8])
    /// Takes one such subscription back.
    case unsubscribe([UInt8])
    /// How long a blocking receive waits, in milliseconds; −1 for ever.
    case receiveTimeout(Int32)

    /// The name of the option in libzmq.
    var name: String { setting.name }

    /// Sets the option on a socket; libzmq’s result, 0 for success.
    func apply(to socket: UnsafeMutableRawPointer?) -> Int32 {
        let setting = setting
        return setting.value.withUnsafeBytes { zmq_setsockopt(socket, setting.number, $0.baseAddress, $0.count) }
    }

    private var setting: (name: String, number: Int32, value: [UInt8]) {
        switch self {
        case .linger(let value): ("ZMQ_LINGER", ZMQ_LINGER, Self.bytes(value))
        case .sendHighWaterMark(let value): ("ZMQ_SNDHWM", ZMQ_SNDHWM, Self.bytes(value))
        case .receiveHighWaterMark(let value): ("ZMQ_RCVHWM", ZMQ_RCVHWM, Self.bytes(value))
        case .maximumMessageSize(let value): ("ZMQ_MAXMSGSIZE", ZMQ_MAXMSGSIZE, Self.bytes(value))
        case .immediate(let value): ("ZMQ_IMMEDIATE", ZMQ_IMMEDIATE, Self.bytes(Int32(value ? 1 : 0)))
        case .routerMandatory(let value):
            ("ZMQ_ROUTER_MANDATORY", ZMQ_ROUTER_MANDATORY, Self.bytes(Int32(value ? 1 : 0)))
        case .routingID(let value): ("ZMQ_ROUTING_ID", ZMQ_ROUTING_ID, value)
        case .xpubVerbose(let value): ("ZMQ_XPUB_VERBOSE", ZMQ_XPUB_VERBOSE, Self.bytes(Int32(value ? 1 : 0)))
        case .reconnectInterval(let value): ("ZMQ_RECONNECT_IVL", ZMQ_RECONNECT_IVL, Self.bytes(value))
        case .backlog(let value): ("ZMQ_BACKLOG", ZMQ_BACKLOG, Self.bytes(value))
        case .subscribe(let value): ("ZMQ_SUBSCRIBE", ZMQ_SUBSCRIBE, value)
        case .unsubscribe(let value): ("ZMQ_UNSUBSCRIBE", ZMQ_UNSUBSCRIBE, value)
        case .receiveTimeout(let value): ("ZMQ_RCVTIMEO", ZMQ_RCVTIMEO, Self.bytes(value))
        }
    }

    private static func bytes(_ value: some BitwiseCopyable) -> [UInt8] { withUnsafeBytes(of: value) { Array($0) } }
}
