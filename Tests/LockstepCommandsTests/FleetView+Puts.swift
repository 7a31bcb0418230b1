import BusKit
import LockstepClient
import SwiftProtobuf
import WireMessages

extension FleetView {
    /// What a screen has seen when these values stand on the stream.
    init(puts: [(Topic, any SwiftProtobuf.Message)]) {
        var replica = Replica()
        for (index, (topic, message)) in puts.enumerated() {
            replica.apply(
                StreamEvent(
                    topic: topic, header: BusHeader(.put, epoch: 1, sequence: UInt64(index + 1)),
                    payload: message.wireBytes))
        }
        self.init()
        apply(.snapshot(replica))
    }
}
