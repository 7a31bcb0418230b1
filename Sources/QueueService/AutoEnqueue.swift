import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Finds the new episodes that enter a queue by themselves, where a setting says so.
///
/// Their events on the stream can be missed; so a rule remembers, for each podcast, the newest episodes that it has handled.
/// Episodes that the library has first seen after those are new; those that exist when a rule begins, or when a podcast
/// appears, are not. The library is asked about one podcast at a time.
package struct AutoEnqueue: Sendable {
    /// The number of a question to the library: an answer to an earlier one doesn’t count.
    package typealias CheckID = UInt64

    /// The new episodes of a podcast, and the mark after them.
    struct News: Sendable {
        var mark: WireQueueRuleRecord
        var episodes: [WireEpisode]
        /// The new episodes that are too old to enter.
        var old: [WireEpisode]
    }

    /// The newest episodes of a podcast among which new ones are searched.
    private static let window = UInt32(RequestSizes.episodes)
    /// In ms: what was published longer than this before the last new episode isn’t new; its feed shows its past.
    private static let newsAge: Int64 = 7 * 24 * 3_600 * 1_000

    /// Podcasts that wait for a check; the first one is the subject of the question under way.
    private var waiting: [String] = []
    private var question: CheckID?
    private var lastQuestion: CheckID = 0
    /// The number of episodes that each subscribed podcast had when it was last seen.
    private var episodeCounts: [String: UInt32] = [:]

    /// The podcasts that are subscribed to, in order of their IDs.
    var podcasts: [String] { episodeCounts.keys.sorted() }

    func knows(_ podcast: String) -> Bool { episodeCounts[podcast] != nil }

    /// Records the number of episodes of a podcast that is subscribed to. Returns whether it is another one than before.
    mutating func update(_ podcast: String, episodeCount: UInt32) -> Bool {
        episodeCounts.updateValue(episodeCount, forKey: podcast) != episodeCount
    }

    /// Drops a podcast, and the answer about it that is under way.
    mutating func drop(_ podcast: String) {
        episodeCounts[podcast] = nil
        if waiting.first == podcast { question = nil }
        waiting.removeAll { $0 == podcast }
    }

    /// Queues a check of a podcast that is subscribed to. One that is being asked about may have got more episodes since, and is
    /// checked once more.
    mutating func check(_ podcast: String) {
        guard knows(podcast), !waiting.dropFirst(question == nil ? 0 : 1).contains(podcast) else { return }
        waiting.append(podcast)
    }

    /// Queues a check of a podcast, unless one is queued, after its new episodes could not be saved.
    mutating func checkAgain(_ podcast: String) {
        if knows(podcast), !waiting.contains(podcast) { waiting.append(podcast) }
    }

    /// The next question to the library; nil while one is under way or no podcast waits.
    mutating func nextQuestion() -> (check: CheckID, query: WireEpisodesQuery)? {
        guard question == nil, let podcast = waiting.first else { return nil }
        lastQuestion += 1
        question = lastQuestion
        let query = WireEpisodesQuery.with {
            $0.podcast = podcast
            $0.limit = Self.window
        }
        return (lastQuestion, query)
    }

    /// The podcast that an answer is about; nil: it is out of date. After a failure that may be retried it still waits.
    mutating func answered(_ result: Result<WirePersistenceReply, Failure>, to check: CheckID) -> String? {
        guard check == question, let podcast = waiting.first else { return nil }
        question = nil
        if case .failure(let failure) = result, failure.retry { return podcast }
        waiting.removeFirst()
        return podcast
    }

    /// Finds the new ones among a podcast's newest episodes; nil: there are none since the mark.
    ///
    /// - Parameter mark: the newest episodes that were handled; nil: the rule begins with those that exist.
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
        // The newest of all is new, however late its feed shows it.
        let newest = episodes.map(\.published).max() ?? 0
        func isOld(_ episode: WireEpisode) -> Bool {
            episode.published != 0 && episode.published < mark.since - newsAge && episode.published != newest
        }
        return News(mark: next, episodes: found.filter { !isOld($0) }, old: found.filter(isOld))
    }
}
