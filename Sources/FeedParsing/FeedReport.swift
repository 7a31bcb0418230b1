package import PodcastModel

/// The report of `feed check` about a feed.
package struct FeedReport: Sendable, Hashable {
    package var channel: FeedChannel
    /// The number of different episodes with audio.
    package var episodes: Int
    /// The oldest publication date.
    package var oldest: Timestamp?
    /// The newest publication date.
    package var newest: Timestamp?
    /// Episodes that are known by a GUID; the others stand on their audio's address or their title.
    package var withGUID: Int
    /// Episodes whose length the feed announces.
    package var withDuration: Int
    /// Episodes that name a chapters file.
    package var withChapters: Int
    /// The problems of the feed.
    package var warnings: [FeedWarning]
    /// The newest episodes by their dates, at most five; where there are no dates, the first of the feed.
    package var newestItems: [FeedItem]
    /// The oldest episode, unless it is among the newest.
    package var oldestItem: FeedItem?

    /// The report on a document.
    package init(_ document: FeedDocument) {
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
        let dated = items.map(\.item).enumerated().sorted {
            ($1.element.published?.milliseconds ?? 0, $0.offset) < ($0.element.published?.milliseconds ?? 0, $1.offset)
        }.map(\.element)
        newestItems = Array(dated.prefix(5))
        oldestItem = dated.count > 5 ? dated.last : nil
    }
}
