import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

extension FleetView {
    /// The queue that is there from the beginning, and meant where none is named.
    package static let usualQueue = QueueName.usual

    /// A queue by its name. The usual one is there even if nothing has been heard of it.
    ///
    /// - Throws: `notFound`, which names the nearest one.
    package func queue(_ name: String) throws(Failure) -> WireQueueState {
        if let queue = queues[name] { return queue }
        guard name != Self.usualQueue else { return WireQueueState.with { $0.name = name } }
        let advice = NearestWord.among(queues.keys.sorted(), to: name).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no queue “\(name)”. \(advice)`lockstep queues` lists them.")
    }

    /// Lists the usual queue before the others.
    package static func isQueue(_ name: String, before other: String) -> Bool {
        guard (name == usualQueue) == (other == usualQueue) else { return name == usualQueue }
        return name < other
    }

    /// The queue that goes on when what is loaded ends: the one that holds it, or from which it was loaded; else the usual
    /// one. The queue service decides by the same.
    package var playingQueue: WireQueueState {
        let entry = player?.queueEntry ?? ""
        let home = queues[player?.queue ?? ""] ?? mainQueue ?? WireQueueState.with { $0.name = Self.usualQueue }
        guard !entry.isEmpty, home.current != entry else { return home }
        let named = [home] + queues.values.sorted { $0.name < $1.name }
        return named.first { queue in queue.entries.contains { $0.id == entry } } ?? home
    }

    /// The queues that may be meant where `play` names none: Up Next, and before it the queue that is playing if that is
    /// another one.
    package var queuesToPlayFrom: [WireQueueState] {
        let main = mainQueue ?? WireQueueState.with { $0.name = Self.usualQueue }
        let playing = playingQueue
        return isIdle || playing.name == main.name ? [main] : [playing, main]
    }

    /// Whether nothing is loaded.
    package var isIdle: Bool { player.map { !$0.hasEpisode || $0.status == .idle } ?? true }

    /// Whether something follows in its queue what is loaded, when that is passed over. The queue service decides by the
    /// same.
    package var hasFollower: Bool {
        guard let player else { return false }
        let queue = playingQueue
        let others = queue.entries.contains { $0.id != player.queueEntry }
        // The mark stands elsewhere already, or its place is not known any more.
        guard let index = queue.entries.firstIndex(where: { $0.id == player.queueEntry }) else { return others }
        if !queue.current.isEmpty, queue.current != player.queueEntry { return true }
        return index + 1 < queue.entries.count || queue.modes.repeat == .all && others
    }
}

extension WireQueueState {
    /// As sentences name a queue: Up Next, or by its name.
    package static func shownName(_ name: String) -> String { QueueName.shown(name) }

    /// With the place that the player is at, and the length that it knows: the queue takes them over when it is no longer
    /// loaded.
    package func withPosition(of player: WirePlaybackState?) -> WireQueueState {
        guard let player, player.hasEpisode, player.status != .finished else { return self }
        var queue = self
        for index in queue.entries.indices where queue.entries[index].episode.id == player.episode.id {
            queue.entries[index].episode.position = player.position(
                at: SystemClocks.now(), bootID: SystemClocks.bootID)
            if player.duration > 0 { queue.entries[index].episode.duration = player.duration }
        }
        return queue
    }

    /// As sentences name it.
    package var shownName: String { Self.shownName(name.isEmpty ? FleetView.usualQueue : name) }
}

extension WireRepeat {
    /// The word for it.
    package var word: String {
        switch self {
        case .off, .UNRECOGNIZED: "off"
        case .all: "all"
        case .one: "one"
        }
    }
}

extension WireQueueModes {
    /// What differs from the usual, in words.
    package var words: [String] {
        var words: [String] = []
        switch `repeat` {
        case .all: words.append("repeats all")
        case .one: words.append("repeats one")
        default: break
        }
        if keep { words.append("keeps what has ended") }
        if limit > 0, limit < Self.standardLimit { words.append("holds \(limit) at most") }
        return words
    }

    package var json: JSONValue {
        .object([
            "repeat": .string(`repeat`.word), "consume": .bool(!keep),
            "limit": .integer(Int64(limit == 0 ? Self.standardLimit : limit)),
        ])
    }

    /// How many entries a queue takes that has no limit of its own.
    package static let standardLimit = UInt32(RequestSizes.queueEntries)
}
