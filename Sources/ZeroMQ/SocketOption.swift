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

    var number: Int32 {
        switch self {
        case .publish: ZMQ_PUB
        case .subscribe: ZMQ_SUB
        case .extendedPublish: ZMQ_XPUB
        case .extendedSubscribe: ZMQ_XSUB
        case .dealer: ZMQ_DEALER
        case .router: ZMQ_ROUTER
        case .pair: ZMQ_PAIR
        }
    }

    var name: String {
        switch self {
        case .publish: "PUB"
        case .subscribe: "SUB"
        case .extendedPublish: "XPUB"
        case .extendedSubscribe: "XSUB"
        case .dealer: "DEALER"
        case .router: "ROUTER"
        case .pair: "PAIR"
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
    /// The limit, in milliseconds, up to which `reconnectInterval` doubles; 0 for no doubling.
    case reconnectIntervalMaximum(Int32)
    /// How many connections may wait to be accepted.
    case backlog(Int32)
    /// Adds a subscription to every topic that begins with these bytes.
    case subscribe([UInt8])
    /// Takes one such subscription back.
    case unsubscribe([UInt8])
    /// How long a blocking receive waits, in milliseconds; −1 for ever.
    case receiveTimeout(Int32)
    /// How long a blocking send waits, in milliseconds; −1 for ever.
    case sendTimeout(Int32)

    /// The option's name in libzmq.
    var name: String {
        switch self {
        case .linger: "ZMQ_LINGER"
        case .sendHighWaterMark: "ZMQ_SNDHWM"
        case .receiveHighWaterMark: "ZMQ_RCVHWM"
        case .maximumMessageSize: "ZMQ_MAXMSGSIZE"
        case .immediate: "ZMQ_IMMEDIATE"
        case .routerMandatory: "ZMQ_ROUTER_MANDATORY"
        case .routingID: "ZMQ_ROUTING_ID"
        case .xpubVerbose: "ZMQ_XPUB_VERBOSE"
        case .reconnectInterval: "ZMQ_RECONNECT_IVL"
        case .reconnectIntervalMaximum: "ZMQ_RECONNECT_IVL_MAX"
        case .backlog: "ZMQ_BACKLOG"
        case .subscribe: "ZMQ_SUBSCRIBE"
        case .unsubscribe: "ZMQ_UNSUBSCRIBE"
        case .receiveTimeout: "ZMQ_RCVTIMEO"
        case .sendTimeout: "ZMQ_SNDTIMEO"
        }
    }

    /// Sets the option on a socket; libzmq's result, 0 for success.
    func apply(to socket: UnsafeMutableRawPointer?) -> Int32 {
        switch self {
        case .linger(let value): Self.set(socket, ZMQ_LINGER, value)
        case .sendHighWaterMark(let value): Self.set(socket, ZMQ_SNDHWM, value)
        case .receiveHighWaterMark(let value): Self.set(socket, ZMQ_RCVHWM, value)
        case .maximumMessageSize(let value): Self.set(socket, ZMQ_MAXMSGSIZE, value)
        case .immediate(let value): Self.set(socket, ZMQ_IMMEDIATE, Int32(value ? 1 : 0))
        case .routerMandatory(let value): Self.set(socket, ZMQ_ROUTER_MANDATORY, Int32(value ? 1 : 0))
        case .routingID(let value): Self.set(socket, ZMQ_ROUTING_ID, value)
        case .xpubVerbose(let value): Self.set(socket, ZMQ_XPUB_VERBOSE, Int32(value ? 1 : 0))
        case .reconnectInterval(let value): Self.set(socket, ZMQ_RECONNECT_IVL, value)
        case .reconnectIntervalMaximum(let value): Self.set(socket, ZMQ_RECONNECT_IVL_MAX, value)
        case .backlog(let value): Self.set(socket, ZMQ_BACKLOG, value)
        case .subscribe(let value): Self.set(socket, ZMQ_SUBSCRIBE, value)
        case .unsubscribe(let value): Self.set(socket, ZMQ_UNSUBSCRIBE, value)
        case .receiveTimeout(let value): Self.set(socket, ZMQ_RCVTIMEO, value)
        case .sendTimeout(let value): Self.set(socket, ZMQ_SNDTIMEO, value)
        }
    }

    private static func set(_ socket: UnsafeMutableRawPointer?, _ option: Int32, _ value: some BitwiseCopyable) -> Int32
    {
        withUnsafeBytes(of: value) { zmq_setsockopt(socket, option, $0.baseAddress, $0.count) }
    }

    private static func set(_ socket: UnsafeMutableRawPointer?, _ option: Int32, _ value: [UInt8]) -> Int32 {
        value.withUnsafeBytes { zmq_setsockopt(socket, option, $0.baseAddress, $0.count) }
    }
}
