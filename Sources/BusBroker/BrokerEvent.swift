package import WireMessages
package import ZeroMQ

/// An event for the bus’s machine. Its messages aren’t validated yet.
package enum BrokerEvent: Sendable {
    /// A message from `svc.sock`; the first frame is the routing ID.
    case service(Message)
    /// A message from `cli.sock`; the first frame is the routing ID.
    case client(Message)
    /// A subscription (first byte 1) or its end (first byte 0) from `pub.sock`.
    case subscription(Message)
    case undelivered(BrokerDelivery, SendOutcome)
    /// The turn has ended: all waiting messages are handled, or the deadline is reached.
    case turnEnded
}

/// The kind of a message to a service, which decides what happens if it is lost.
package enum BrokerDelivery: Sendable, Hashable {
    case request(UInt64)
    /// An acknowledgement or a status for this routing ID; if it is lost, the service must register again.
    case needed(Frame)
    /// A message that the service requests again if it is lost.
    case other
}

/// An effect of the bus’s machine. Effects are performed in order.
package enum BrokerEffect: Sendable {
    /// Sends a topic, header and payload on `pub.sock`.
    case publish(topic: Frame, header: BusHeader, payload: Frame)
    /// Sends a message on `svc.sock`; the first frame is the routing ID.
    case toService(Message, BrokerDelivery)
    /// Sends on `cli.sock`; the first frame is the routing ID. It is buffered, within limits, if the client is slow.
    case toClient(Message)
    /// Sends the reply to a fetch on `cli.sock` in chunks, as fast as the client reads.
    case answer(FetchAnswer)
    case warn(String)
}
