public import PodcastModel

// IDs as text. A test that writes one wrong ends at once.

extension Identifier where Self: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension PodcastID: ExpressibleByStringLiteral {}
extension EpisodeID: ExpressibleByStringLiteral {}
extension QueueEntryID: ExpressibleByStringLiteral {}
extension AlertID: ExpressibleByStringLiteral {}
extension LoadID: ExpressibleByStringLiteral {}
extension BookmarkID: ExpressibleByStringLiteral {}
