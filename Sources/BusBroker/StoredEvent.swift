import WireMessages
import ZeroMQ

/// An event with its place, as it was published: what the ring and the store hold.
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
