import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Finds the new episodes of podcasts whose setting enqueues them automatically.
///
/// Events on the stream can be missed, so a rule stores, for each podcast, the newest episodes that it has handled.
/// Episodes that the library first saw after those are new; those that exist when a rule is set, or when a podcast
/// appears, are not. The library is queried for one podcast at a time.
package struct AutoEnqueue: Sendable {
    /// The number of a query to the library. A reply to an earlier query is ignored.
    package typealias CheckID = UInt64

    /// The new episodes of a podcast.
    struct News: Sendable {
        var mark: WireQueueRuleRecord
        var episodes: [WireEpisode]
        /// The new episodes that are too old to be enqueued.
        var old: [WireEpisode]
    }

    /// The number of newest episodes of a podcast that are searched for new ones.
    private static let window = UInt32(RequestSizes.episodes)
    /// An episode belongs to the back catalogue if it was published more than this many milliseconds before the newest
    /// handled episode was first seen.
    private static let backCatalogueAge: Int64 = 7 * 24 * 3_600 * 1_000

    /// The podcasts that wait for a check; a pending query is about the first one.
    private var waiting: [String] = []
    private var pendingCheck: CheckID?
    private var lastCheck: CheckID = 0
    /// The last known number of episodes of each subscribed podcast.
    private var episodeCounts: [String: UInt32] = [:]

    /// The subscribed podcasts, in order of their IDs.
    var podcasts: [String] { episodeCounts.keys.sorted() }

    func isSubscribed(_ podcast: String) -> Bool { episodeCounts[podcast] != nil }

    /// Records the number of episodes of a subscribed podcast. Returns whether it has changed.
    mutating func update(_ podcast: String, episodeCount: UInt32) -> Bool {
        episodeCounts.updateValue(episodeCount, forKey: podcast) != episodeCount
    }

    /// Removes a podcast, and ignores the reply to a pending query about it.
    mutating func drop(_ podcast: String) {
        episodeCounts[podcast] = nil
        if waiting.first == podcast { pendingCheck = nil }
        waiting.removeAll { $0 == podcast }
    }

    /// Queues a check of a subscribed podcast, also while its query is pending: more episodes may have been added since
    /// the query was sent.
    mutating func check(_ podcast: String) {
        guard isSubscribed(podcast), !waiting.dropFirst(pendingCheck == nil ? 0 : 1).contains(podcast) else { return }
        waiting.append(podcast)
    }

    /// Queues a check of a podcast, unless one is queued, after its new episodes couldn’t be read or saved.
    mutating func checkAgain(_ podcast: String) {
        if isSubscribed(podcast), !waiting.contains(podcast) { waiting.append(podcast) }
    }

    /// Returns the next query to the library; nil while one is pending or no podcast waits.
    mutating func nextQuery() -> (check: CheckID, query: WireEpisodesQuery)? {
        guard pendingCheck == nil, let podcast = waiting.first else { return nil }
        lastCheck += 1
        pendingCheck = lastCheck
        let query = WireEpisodesQuery.with {
            $0.podcast = podcast
            $0.limit = Self.window
        }
        return (lastCheck, query)
    }

    /// Ends the query of a check, and returns its podcast; nil if the query is outdated.
    mutating func answered(_ check: CheckID) -> String? {
        guard check == pendingCheck, !waiting.isEmpty else { return nil }
        pendingCheck = nil
        return waiting.removeFirst()
    }

    /// Returns the new ones among a podcast’s newest episodes; nil if nothing has changed since `mark`.
    ///
    /// - Parameter mark: The record of the newest handled episodes; nil for a new rule, which treats the existing ones
    ///   as handled.
    static func news(
        among episodes: [WireEpisode], since mark: WireQueueRuleRecord?, isQueued: (String) -> Bool
    ) -> News? {
        guard let since = episodes.map(\.firstSeen).max() else { return nil }
        var next = WireQueueRuleRecord()
        next.since = max(since, mark?.since ?? 0)
        next.dealt = episodes.filter { $0.firstSeen == next.since }.map(\.id)
        if let mark, next.since == mark.since { next.dealt = Array(Set(next.dealt + mark.dealt)).sorted() }
        guard next != mark else { return nil }
        guard let mark else { return News(mark: next, episodes: [], old: []) }
        let dealt = Set(mark.dealt)
        let found = episodes.filter {
            ($0.firstSeen > mark.since || $0.firstSeen == mark.since && !dealt.contains($0.id))
                && !$0.state.played && !$0.enclosureURL.isEmpty && !isQueued($0.id)
        }.sorted { ($0.published, $0.id) < ($1.published, $1.id) }
        // The newest episode isn’t part of the back catalogue, even if the feed lists it late.
        let newest = episodes.map(\.published).max() ?? 0
        func isOld(_ episode: WireEpisode) -> Bool {
            episode.published != 0 && episode.published < mark.since - backCatalogueAge && episode.published != newest
        }
        return News(mark: next, episodes: found.filter { !isOld($0) }, old: found.filter(isOld))
    }
}
