import CZeroMQ

/// The kinds of socket that the bus and its peers use, with their names in libzmq.
package enum SocketKind: String, Sendable {
    /// Receives messages with the subscribed topics.
    case subscribe = "SUB"
    /// Sends to all subscribers, and receives the subscriptions in-band.
    case extendedPublish = "XPUB"
    /// Works like `subscribe`, but sends subscriptions as messages.
    case extendedSubscribe = "XSUB"
    /// Sends to its peers round-robin; the requesting side of a `router`.
    case dealer = "DEALER"
    /// Sends to the peer that the first frame names.
    case router = "ROUTER"
    /// Connects exactly two peers, in both directions.
    case pair = "PAIR"

    var number: Int32 {
        switch self {
        case .subscribe: ZMQ_SUB
        case .extendedPublish: ZMQ_XPUB
        case .extendedSubscribe: ZMQ_XSUB
        case .dealer: ZMQ_DEALER
        case .router: ZMQ_ROUTER
        case .pair: ZMQ_PAIR
        }
    }
}

/// A socket option; all but the subscriptions apply to later binds and connects.
package enum SocketOption: Sendable, Hashable {
    /// The time in milliseconds for which a closed socket still tries to send. The default is 0.
    case linger(Int32)
    /// The maximum number of messages (not bytes) that wait to be sent to one peer; 0 for no limit.
    case sendHighWaterMark(Int32)
    /// The maximum number of messages (not bytes) of one peer that wait to be read; 0 for no limit.
    case receiveHighWaterMark(Int32)
    /// The maximum size of an accepted frame, in bytes; a peer that sends a larger one is disconnected. −1 for any.
    case maximumMessageSize(Int64)
    /// Whether messages are queued only for completed connections.
    case immediate(Bool)
    /// Whether a ROUTER reports an unknown peer instead of dropping the message.
    case routerMandatory(Bool)
    /// The name, 1 to 255 bytes and not beginning with 0, by which a ROUTER identifies this socket.
    case routingID([UInt8])
    /// Whether an XPUB also delivers repeated subscriptions.
    case xpubVerbose(Bool)
    /// The wait before a lost connection is retried, in milliseconds.
    case reconnectInterval(Int32)
    /// The maximum number of connections that wait to be accepted.
    case backlog(Int32)
    /// Adds a subscription to every topic that begins with these bytes.
    case subscribe([UInt8])
    /// Removes one subscription to these bytes.
    case unsubscribe([UInt8])
    /// The timeout of a blocking receive in milliseconds; −1 for none.
    case receiveTimeout(Int32)

    var name: String { setting.name }

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
