import BusKit
import SwiftProtobuf
import WireMessages

@testable import LockstepClient
@testable import LockstepCommands

extension FleetView {
    /// Returns the view of a screen after these values were published.
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

extension PlayerMachine {
    /// Shows the state after an update of the stream.
    mutating func apply(_ update: ReplicaUpdate) { apply((state ?? FleetState(FleetView())).after(update)) }
}

extension FleetState {
    /// Returns the state after an update of the stream.
    func after(_ update: ReplicaUpdate) -> FleetState {
        var view = view
        view.apply(update)
        return FleetState(view)
    }
}
