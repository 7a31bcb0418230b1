extension EpisodeRule {
    /// The facts besides the episodes of feeds that can change whether an episode meets a rule.
    public struct Dependencies: OptionSet, Sendable, Hashable {
        /// The bits of the set.
        public let rawValue: Int
        /// Creates a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }

        /// Episodes are started, played or marked.
        public static let marks = Dependencies(rawValue: 1)
        /// Positions, which change during playback.
        public static let positions = Dependencies(rawValue: 2)
        /// The contents of queues and playlists.
        public static let lists = Dependencies(rawValue: 4)
        /// The downloaded files.
        public static let downloads = Dependencies(rawValue: 8)
        /// The bookmarks of episodes.
        public static let bookmarks = Dependencies(rawValue: 16)
    }

    /// The facts that can change the rule’s result.
    public var dependencies: Dependencies { terms.reduce(into: []) { $0.formUnion($1.dependencies) } }

    /// The names of the queues and playlists in the rule.
    public var lists: [String] {
        terms.compactMap { if case .list(let name) = $0 { name } else { nil } }
    }

    /// The IDs or titles of podcasts in the rule.
    public var podcasts: [String] {
        terms.compactMap { if case .podcast(let name) = $0 { name } else { nil } }
    }

    /// The tags in the rule.
    public var tags: [String] {
        terms.compactMap { if case .tag(let tag) = $0 { tag } else { nil } }
    }

    /// The rule with other names of queues and playlists.
    ///
    /// - Throws: what `name` throws.
    public func replacingLists<Refusal: Error>(
        _ name: (String) throws(Refusal) -> String
    ) throws(Refusal) -> EpisodeRule {
        EpisodeRule(try condition.replacingLists(name))
    }

    /// The rule with another name of a queue or playlist.
    public func renaming(list name: String, to new: String) -> EpisodeRule {
        replacingLists { $0 == name ? new : $0 }
    }

    /// The shortest age in the rule, in seconds; nil if the passing of time doesn’t change its result.
    public var shortestAge: Double? {
        terms.compactMap { if case .age(_, _, let seconds) = $0 { seconds } else { nil } }.min()
    }

    /// The comparisons and properties in the rule.
    private var terms: [Condition] { condition.terms }
}

extension EpisodeRule.Condition {
    fileprivate var terms: [Self] {
        switch self {
        case .not(let inner): inner.terms
        case .all(let parts), .any(let parts): parts.flatMap(\.terms)
        default: [self]
        }
    }

    fileprivate func replacingLists<Refusal: Error>(
        _ name: (String) throws(Refusal) -> String
    ) throws(Refusal) -> Self {
        switch self {
        case .list(let list): .list(try name(list))
        case .not(let inner): .not(try inner.replacingLists(name))
        case .all(let parts): .all(try parts.map { part throws(Refusal) in try part.replacingLists(name) })
        case .any(let parts): .any(try parts.map { part throws(Refusal) in try part.replacingLists(name) })
        default: self
        }
    }

    fileprivate var dependencies: EpisodeRule.Dependencies {
        switch self {
        case .mark(.played), .mark(.started): .marks
        case .mark(.new): [.marks, .lists]
        case .mark(.downloaded): .downloads
        case .mark(.queued), .mark(.favourite), .list: .lists
        case .mark(.bookmarked): .bookmarks
        case .length(.remaining, _, _), .age(.heard, _, _), .day(.heard, _, _): [.marks, .positions]
        default: []
        }
    }
}
