public import PodcastModel
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
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}
