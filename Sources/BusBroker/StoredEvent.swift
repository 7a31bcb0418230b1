import WireMessages
import ZeroMQ

/// A published event with its sequence, as the ring and the store contain it.
struct StoredEvent: Sendable, Hashable {
    var topic: Frame
    var header: BusHeader
    var payload: Frame

    /// The number of bytes that the event counts toward a limit.
    var cost: Int { topic.count + BusHeader.length + payload.count }

    /// Appends the three frames of `pub.sock`, which are also an entry of a replay or snapshot.
    func append(to message: inout Message) {
        message.append(topic)
        message.append(Frame(header.encoded))
        message.append(payload)
    }
}
