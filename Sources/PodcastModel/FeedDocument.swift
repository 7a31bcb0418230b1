/// The content of a feed that has been read.
public struct FeedDocument: Sendable, Hashable {
    /// The podcast that the feed describes.
    public var channel: FeedChannel
    /// The episodes that have audio, in the feed’s order.
    public var items: [FeedItem]
    /// The faults of the feed, each kind once.
    public var warnings: [FeedWarning]

    /// A document of these parts.
    public init(channel: FeedChannel, items: [FeedItem] = [], warnings: [FeedWarning] = []) {
        (self.channel, self.items, self.warnings) = (channel, items, warnings)
    }
}

/// The podcast as its feed describes it. Empty text: the feed says nothing.
public struct FeedChannel: Sendable, Hashable {
    /// The title, as plain text.
    public var title = ""
    /// The people who make it.
    public var author = ""
    /// The description; HTML as the feed has it.
    public var description = ""
    /// The address of its web page.
    public var link = ""
    /// A language tag, such as `en-us`.
    public var language = ""
    /// The address of its picture.
    public var imageURL = ""
    /// Where the feed says that it lives (`atom:link rel="self"`).
    public var selfURL = ""
    /// Where the feed says that it has moved (`itunes:new-feed-url`).
    public var newFeedURL = ""
    /// Whether it is marked as explicit.
    public var isExplicit = false

    /// A channel that says nothing.
    public init() {}
}

/// An episode as its feed describes it. Empty text: the feed says nothing.
public struct FeedItem: Sendable, Hashable {
    /// The feed’s own name for it; unique only where the feed keeps to the rules.
    public var guid = ""
    /// The title, as plain text.
    public var title = ""
    /// The show notes; HTML as the feed has it.
    public var description = ""
    /// The address of its web page.
    public var link = ""
    /// The address of its picture.
    public var imageURL = ""
    /// The time of its publication.
    public var published: Timestamp?
    /// The length that the feed announces.
    public var duration: EpisodeDuration?
    /// The audio: absolute once it has been resolved against the feed’s own address.
    public var enclosureURL = ""
    /// The audio’s media type.
    public var enclosureType = ""
    /// The audio’s length in bytes; 0: unknown.
    public var enclosureLength: UInt64 = 0
    /// The season; 0: none.
    public var season: UInt32 = 0
    /// The number within the season or the podcast; 0: none.
    public var number: UInt32 = 0
    /// Whether it is marked as explicit.
    public var isExplicit = false
    /// A chapters file (`podcast:chapters`).
    public var chaptersURL = ""
    /// The chapters that the feed itself names (Podlove simple chapters), as `ChapterMark.normalised` leaves them.
    public var chapters: [ChapterMark] = []

    /// An item that says nothing.
    public init() {}
}

/// A fault of a feed that didn’t keep it from being read.
public struct FeedWarning: Sendable, Hashable, CustomStringConvertible {
    /// A stable word in lowerCamelCase.
    public var code: String
    /// A sentence for people.
    public var message: String
    /// How often it occurred; at least 1.
    public var count: Int
    /// The first items that it is about, by their titles, else as `item 3`; empty where it is about the whole feed.
    public var items: [String]

    /// The maximum number of items that are named.
    public static let itemLimit = 5

    /// A warning that counts once.
    public init(code: String, message: String, count: Int = 1, items: [String] = []) {
        (self.code, self.message, self.count, self.items) = (code, message, count, items)
    }

    /// The sentence, and how often.
    public var description: String { count > 1 ? "\(message) (\(count) times)" : message }
}
