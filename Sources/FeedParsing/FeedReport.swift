public import PodcastModel

/// What `feed check` says about a feed.
public struct FeedReport: Sendable, Hashable {
    /// The podcast.
    public var channel: FeedChannel
    /// How many different episodes have audio.
    public var episodes: Int
    /// The oldest publication date.
    public var oldest: Timestamp?
    /// The newest publication date.
    public var newest: Timestamp?
    /// Episodes that are known by a GUID; the others stand on their audio's address or their title.
    public var withGUID: Int
    /// Episodes whose length the feed announces.
    public var withDuration: Int
    /// Episodes that name a chapters file.
    public var withChapters: Int
    /// What had to be forgiven.
    public var warnings: [FeedWarning]

    /// The report on a document.
    public init(_ document: FeedDocument) {
        let (items, duplicates) = document.identified()
        channel = document.channel
        episodes = items.count
        let dates = items.compactMap(\.item.published)
        oldest = dates.min()
        newest = dates.max()
        withGUID = items.count { if case .guid = $0.identity { true } else { false } }
        withDuration = items.count { $0.item.duration != nil }
        withChapters = items.count { !$0.item.chaptersURL.isEmpty || !$0.item.chapters.isEmpty }
        warnings = document.warnings + duplicates
    }
}
