public import WireMessages
public import ZeroMQ

/// What happens to the bus. The messages are as the sockets gave them; nothing about them is trusted.
public enum BrokerEvent: Sendable {
    /// From `svc.sock`; the first frame is the routing id.
    case service(Message)
    /// From `cli.sock`; the first frame is the routing id.
    case client(Message)
    /// From `pub.sock`: a subscription, its first byte 1, or the end of one, 0.
    case subscription(Message)
    /// A message to a service was not sent.
    case undelivered(BrokerDelivery, SendOutcome)
    /// All that was waiting has been handed over, or the deadline has come: acknowledgements and heartbeats go out.
    case turnEnded
}

/// What a message to a service is about, to know what its loss means.
public enum BrokerDelivery: Sendable, Hashable {
    /// A request; its ticket.
    case request(UInt64)
    /// An acknowledgement or a status, to this routing id: without it the service waits for ever, so it must start over.
    case needed(Frame)
    /// A message that the service asks for again by itself.
    case other
}

/// What the bus wants done. Effects are performed in order.
public enum BrokerEffect: Sendable {
    /// Send on `pub.sock`: topic, header, payload.
    case publish(topic: Frame, header: BusHeader, payload: Frame)
    /// Send on `svc.sock`; the first frame is the routing id.
    case toService(Message, BrokerDelivery)
    /// Send on `cli.sock`; the first frame is the routing id. One that cannot be sent is dropped: the client asks again.
    case toClient(Message)
    /// A line for the log.
    case warn(String)
}

extension [BrokerEffect] {
    /// Leaves out, from `index` on, the parts of an answer of which an earlier part could not be sent: its reader would
    /// take the rest for the whole. It waits in vain and asks again.
    mutating func dropParts(after lost: Message, from index: Int) {
        guard lost.count > 2, index < count else { return }
        let kept = self[index...].filter { effect in
            guard case .toClient(let message) = effect, message.count > 2 else { return true }
            return message[0] != lost[0] || message[2] != lost[2]
        }
        replaceSubrange(index..., with: kept)
    }
}
