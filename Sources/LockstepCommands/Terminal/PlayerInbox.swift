import BusKit
import NIOConcurrencyHelpers
import PodcastModel

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#else
import Darwin
#endif

/// What comes to a screen from elsewhere: the stream, and the ends of what its keys asked for.
final class PlayerInbox: Sendable {
    /// A piece of news.
    enum Item: Sendable {
        /// The stream.
        case update(ReplicaUpdate)
        /// What a key asked for has been done, or not.
        case finished(PlayerTask, Failure?)
        /// The connection has ended for good.
        case ended(Failure?)
    }

    /// What to poll.
    let descriptor: Int32
    private let writing: Int32
    private let items = NIOLockedValueBox<[Item]>([])

    /// An empty inbox.
    init() {
        var ends: [Int32] = [-1, -1]
        _ = pipe(&ends)
        for end in ends {
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
        }
        descriptor = ends[0]
        writing = ends[1]
    }

    deinit {
        close(descriptor)
        close(writing)
    }

    /// Puts an item in; from any thread.
    func post(_ item: Item) {
        let wasEmpty = items.withLockedValue { items in
            items.append(item)
            return items.count == 1
        }
        if wasEmpty {
            var byte: UInt8 = 1
            _ = write(writing, &byte, 1)
        }
    }

    /// All that waits, in order.
    func takeAll() -> [Item] {
        var bytes = [UInt8](repeating: 0, count: 64)
        while read(descriptor, &bytes, bytes.count) == bytes.count {}
        return items.withLockedValue { items in
            defer { items = [] }
            return items
        }
    }
}

/// What a key asks a service for; one of each kind is under way at a time.
enum PlayerTask: Sendable, Hashable {
    case seek(load: String, to: Double)
    case speed(Double)
    case volume(Double)
    case command(PlayerIntent)
}
