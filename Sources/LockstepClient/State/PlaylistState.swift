public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A playlist without its items, which `PlaylistClient.items` returns.
public struct PlaylistState: Sendable, Hashable {
    package let wire: WirePlaylist

    package init(_ wire: WirePlaylist) {
        self.wire = wire
    }

    /// The playlist’s ID; that of the favourites is `favourites`.
    public var id: String { wire.id }
    /// The display name.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The playlist’s revision, which increases with every change.
    public var revision: UInt64 { wire.revision }
    /// The number of items.
    public var count: Int { Int(wire.items) }
    /// The length of all items in seconds; items of unknown length count as 0.
    public var duration: Double { wire.duration }
    /// The time of creation; 0 for the favourites.
    public var createdAt: Timestamp { Timestamp(milliseconds: wire.createdAt) }
    /// The time of the last change.
    public var updatedAt: Timestamp { Timestamp(milliseconds: wire.updatedAt) }
    /// Whether playing adds the items after the first one, too.
    public var isContinuous: Bool { wire.continuous }
    /// Whether playing adds the items in random order.
    public var isShuffled: Bool { wire.shuffle }
    /// The rule that chooses the items; nil if commands add them.
    public var smart: SmartPlaylist? { wire.hasSmart ? SmartPlaylist(wire.smart) : nil }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

/// The rule by which a smart playlist chooses its episodes, always anew: the first ones of an order that meet it.
public struct SmartPlaylist: Sendable, Hashable {
    /// The text of the rule.
    public var rule: String
    /// The order of the episodes.
    public var order: EpisodeOrder
    /// The maximum number of episodes; 0 for the default, 100.
    public var limit: Int
    /// The queue to which an episode is added once it meets the rule; nil for none.
    public var queue: String?

    /// Creates a rule, which the queue service checks.
    public init(rule: String, order: EpisodeOrder = .newest, limit: Int = 0, queue: String? = nil) {
        (self.rule, self.order, self.limit, self.queue) = (rule, order, limit, queue)
    }

    init(_ wire: WireSmartList) {
        rule = DisplayText.sanitised(wire.rule)
        order = EpisodeOrder(wire.order) ?? .newest
        limit = Int(wire.limit)
        queue = wire.queue.isEmpty ? nil : wire.queue
    }

    var wire: WireSmartList {
        .with {
            ($0.rule, $0.order, $0.limit, $0.queue) = (rule, order.wire, UInt32(clamping: limit), queue ?? "")
        }
    }
}
