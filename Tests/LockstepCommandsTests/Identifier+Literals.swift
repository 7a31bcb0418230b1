public import PodcastModel

// Literals for IDs; an invalid one traps.

extension Identifier where Self: ExpressibleByStringLiteral {
    /// Creates the ID of this text; traps if it isn’t valid.
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
