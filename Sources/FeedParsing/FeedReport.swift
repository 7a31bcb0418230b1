package import PodcastModel

/// The report of `feed check` about a feed.
package struct FeedReport: Sendable, Hashable {
    package var channel: FeedChannel
    /// The number of different episodes with audio.
    package var episodes: Int
    /// The publication dates of the oldest and the newest episode.
    package var oldest: Timestamp?
    package var newest: Timestamp?
    /// The number of episodes with a GUID; the others are identified by their audio’s address or their title.
    package var withGUID: Int
    package var withDuration: Int
    package var withChapters: Int
    package var warnings: [FeedWarning]
    /// The newest episodes by their dates, at most five; without dates, the first of the feed.
    package var newestItems: [FeedEpisode]
    /// The oldest episode, unless it is among the newest.
    package var oldestItem: FeedEpisode?

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
