import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel

/// Queues the events for a screen: updates of the state, and ended tasks of keys.
final class PlayerInbox: Sendable {
    enum Item: Sendable {
        case update(FleetUpdate)
        /// A task has ended or failed; `effect` describes its effect in a sentence.
        case finished(PlayerTask, Failure?, effect: String?)
        /// A task of the library’s pages has ended.
        case library(LibraryTask, Result<LibraryResult, Failure>)
        /// The connection has ended permanently.
        case ended(Failure?)
    }

    private let pipe = WakePipe()
    private let items = NIOLockedValueBox<[Item]>([])

    var descriptor: Int32 { pipe.descriptor }

    deinit { pipe.close() }

    /// Posts an item; any thread may call it.
    func post(_ item: Item) {
        let wasEmpty = items.withLockedValue { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { pipe.wake() }
    }

    /// Posts the updates of a fleet until the connection ends.
    func follow(_ fleet: Fleet) async {
        for await update in fleet.updates() { post(.update(update)) }
        if case .ended(let failure) = fleet.state.connection { post(.ended(failure)) }
    }

    func takeAll() -> [Item] {
        while pipe.next() != nil {}
        return items.withLockedValue { items in
            defer { items = [] }
            return items
        }
    }
}

/// A key’s request to a service; one of each kind is in flight at a time.
enum PlayerTask: Sendable, Hashable {
    case seek(load: LoadID, to: Double)
    case speed(Double)
    case volume(Double)
    case command(PlayerIntent)
    case library(LibraryTask)
}
