package import WireMessages
package import ZeroMQ

/// An event for the bus. The messages are as the sockets gave them; nothing about them is trusted.
package enum BrokerEvent: Sendable {
    /// From `svc.sock`; the first frame is the routing id.
    case service(Message)
    /// From `cli.sock`; the first frame is the routing id.
    case client(Message)
    /// From `pub.sock`: a subscription, its first byte 1, or the end of one, 0.
    case subscription(Message)
    case undelivered(BrokerDelivery, SendOutcome)
    /// All that was waiting has been handed over, or the deadline has come: acknowledgements and heartbeats go out.
    case turnEnded
}

/// The kind of a message to a service, which decides what its loss means.
package enum BrokerDelivery: Sendable, Hashable {
    case request(UInt64)
    /// An acknowledgement or a status, to this routing id: without it the service waits for ever, so it must start over.
    case needed(Frame)
    /// A message that the service asks for again by itself.
    case other
}

/// An effect of the bus’s machine. Effects are performed in order.
package enum BrokerEffect: Sendable {
    /// Send on `pub.sock`: topic, header, payload.
    case publish(topic: Frame, header: BusHeader, payload: Frame)
    /// Send on `svc.sock`; the first frame is the routing id.
    case toService(Message, BrokerDelivery)
    /// Send on `cli.sock`; the first frame is the routing id. One that its client doesn't take waits, within limits.
    case toClient(Message)
    /// Send on `cli.sock` in chunks, as fast as the client takes them.
    case answer(FetchAnswer)
    case warn(String)
}
