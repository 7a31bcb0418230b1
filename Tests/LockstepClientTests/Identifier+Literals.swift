public import PodcastModel

// IDs as text. A test that writes one wrong ends at once.

extension PodcastID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension EpisodeID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension QueueEntryID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension AlertID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension LoadID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}

extension BookmarkID: ExpressibleByStringLiteral {
    /// The ID of this text; ends the test where it isn’t one.
    public init(stringLiteral text: String) {
        guard let id = Self(text) else { preconditionFailure("“\(text)” isn’t an ID of this kind") }
        self = id
    }
}
