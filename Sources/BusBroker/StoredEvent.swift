import WireMessages
import ZeroMQ

/// A published event with its sequence, as the ring and the store hold it.
struct StoredEvent: Sendable, Hashable {
    var topic: Frame
    var header: BusHeader
    var payload: Frame

    /// The bytes that it counts for in a limit.
    var cost: Int { topic.count + BusHeader.length + payload.count }

    /// The three frames of `pub.sock`, also those of an entry of a replay or snapshot.
    func append(to message: inout Message) {
        message.append(topic)
        message.append(Frame(header.encoded))
        message.append(payload)
    }
}
