/// The content of a parsed feed.
public struct FeedDocument: Sendable, Hashable {
    /// The podcast that the feed describes.
    public var channel: FeedChannel
    /// The episodes that have audio, in the feed’s order.
    public var items: [FeedEpisode]
    /// The faults of the feed, each kind once.
    public var warnings: [FeedWarning]

    /// Whether episodes of the feed are missing, because it was cut off or has too many.
    public var isCut: Bool { warnings.contains { ["tooManyItems", "givenUp", "cutOff"].contains($0.code) } }

    /// Creates a document from its parts.
    public init(channel: FeedChannel, items: [FeedEpisode] = [], warnings: [FeedWarning] = []) {
        (self.channel, self.items, self.warnings) = (channel, items, warnings)
    }
}

/// The feed’s data about the podcast. A text is empty if the feed has none.
public struct FeedChannel: Sendable, Hashable {
    /// The title, as plain text.
    public var title = ""
    /// The authors’ names, as the feed lists them.
    public var author = ""
    /// The description, in the feed’s HTML.
    public var description = ""
    /// The address of its web page.
    public var link = ""
    /// A language tag, such as `en-us`.
    public var language = ""
    /// The address of its image.
    public var imageURL = ""
    /// The feed’s own address (`atom:link rel="self"`).
    public var selfURL = ""
    /// The address to which the feed has moved (`itunes:new-feed-url`).
    public var newFeedURL = ""
    /// Whether it is marked as explicit.
    public var isExplicit = false

    /// Creates a channel without data.
    public init() {}
}

/// The feed’s data about an episode. A text is empty if the feed has none.
public struct FeedEpisode: Sendable, Hashable {
    /// The GUID in the feed, which isn’t unique in every feed.
    public var guid = ""
    /// The title, as plain text.
    public var title = ""
    /// The show notes, in the feed’s HTML.
    public var description = ""
    /// The address of its web page.
    public var link = ""
    /// The address of its image.
    public var imageURL = ""
    /// The publication time.
    public var published: Timestamp?
    /// The length that the feed announces.
    public var duration: EpisodeDuration?
    /// The address of the audio: absolute once it is resolved against the feed’s own address.
    public var enclosureURL = ""
    /// The media type of the audio.
    public var enclosureType = ""
    /// The length of the audio in bytes; 0 if unknown.
    public var enclosureLength: UInt64 = 0
    /// The season; 0 if there is none.
    public var season: UInt32 = 0
    /// The number within the season or the podcast; 0 if there is none.
    public var number: UInt32 = 0
    /// Whether it is marked as explicit.
    public var isExplicit = false
    /// The address of a chapters file (`podcast:chapters`).
    public var chaptersURL = ""
    /// The address of a transcript (`podcast:transcript`).
    public var transcriptURL = ""
    /// The feed’s own chapters (Podlove simple chapters), after `ChapterMark.normalised`.
    public var chapters: [ChapterMark] = []

    /// Creates an item without data.
    public init() {}
}

/// A fault of a feed that could still be parsed.
public struct FeedWarning: Sendable, Hashable, CustomStringConvertible {
    /// A stable code in lowerCamelCase.
    public var code: String
    /// A sentence for users.
    public var message: String
    /// The number of occurrences, from 1.
    public var count: Int
    /// The first affected items, by their titles or as `item 3`; empty if the whole feed is affected.
    public var items: [String]

    /// The maximum number of items that a warning names.
    public static let itemLimit = 5

    /// Creates a warning, by default for one occurrence.
    public init(code: String, message: String, count: Int = 1, items: [String] = []) {
        (self.code, self.message, self.count, self.items) = (code, message, count, items)
    }

    /// The sentence with the number of occurrences.
    public var description: String { count > 1 ? "\(message) (\(count) times)" : message }
}
