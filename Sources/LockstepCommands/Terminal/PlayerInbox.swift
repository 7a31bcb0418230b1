import LockstepClient
import NIOConcurrencyHelpers
import PodcastModel

/// What comes to a screen from elsewhere: the stream, and the ends of what its keys asked for.
final class PlayerInbox: Sendable {
    /// A piece of news.
    enum Item: Sendable {
        case update(FleetUpdate)
        /// What a key asked for has been done, or not, and what there is to say of it.
        case finished(PlayerTask, Failure?, said: String?)
        /// The connection has ended for good.
        case ended(Failure?)
    }

    private let pipe = WakePipe()
    private let items = NIOLockedValueBox<[Item]>([])

    /// What to poll.
    var descriptor: Int32 { pipe.descriptor }

    deinit { pipe.close() }

    /// Puts an item in; from any thread.
    func post(_ item: Item) {
        let wasEmpty = items.withLockedValue { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty { pipe.wake() }
    }

    /// Puts in the updates of a fleet, until the connection ends.
    func follow(_ fleet: Fleet) async {
        for await update in fleet.updates() { post(.update(update)) }
        if case .ended(let failure) = fleet.state.connection { post(.ended(failure)) }
    }

    /// All that waits, in order.
    func takeAll() -> [Item] {
        while pipe.next() != nil {}
        return items.withLockedValue { items in
            defer { items = [] }
            return items
        }
    }
}

/// What a key asks a service for; one of each kind is under way at a time.
enum PlayerTask: Sendable, Hashable {
    case seek(load: LoadID, to: Double)
    case speed(Double)
    case volume(Double)
    case command(PlayerIntent)
}
