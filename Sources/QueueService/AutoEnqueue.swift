import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Finds the new episodes that enter a queue by themselves, where the listener has said so.
///
/// The news of them on the stream can be missed; so a rule remembers, for each podcast, which episodes it has dealt with,
/// and what counts is the library: whatever was first seen after those is new. What is there when a rule begins, or when a
/// podcast is first met, is not. The library is asked about one podcast at a time.
struct AutoEnqueue: Sendable {
    /// An answer of the library.
    enum Answer: Sendable {
        case episodes([WireEpisode], of: String)
        case failed(Failure, podcast: String)
        /// The library can be asked again later.
        case retry
        /// Nobody is interested in it any more.
        case void
    }

    /// The new episodes of a podcast, and the mark after them.
    struct News: Sendable {
        var mark: WireQueueRuleRecord
        /// The episodes that enter, the oldest first.
        var episodes: [WireEpisode]
        /// Those that are too old to be news.
        var old: [WireEpisode]
    }

    /// The newest episodes of a podcast among which new ones are looked for.
    private static let window = UInt32(RequestSizes.episodes)
    /// What was published so long before the last new episode is no news, but a feed that shows its past; in ms.
    private static let newsAge: Int64 = 7 * 24 * 3_600 * 1_000

    /// Podcasts whose new episodes are to be looked for; while the library is asked, the first is the one it is asked about.
    private var waiting: [String] = []
    private var question: CallID?
    /// How many episodes each subscribed podcast had when it was last seen.
    private var episodeCounts: [String: UInt32] = [:]

    /// The podcasts that are subscribed to, in order of their IDs.
    var podcasts: [String] { episodeCounts.keys.sorted() }

    /// Whether it is subscribed to, as far as is known.
    func knows(_ podcast: String) -> Bool { episodeCounts[podcast] != nil }

    // MARK: Checking

    /// A podcast that is subscribed to has so many episodes. Returns whether that is news.
    mutating func update(_ podcast: String, episodeCount: UInt32) -> Bool {
        episodeCounts.updateValue(episodeCount, forKey: podcast) != episodeCount
    }

    /// Nobody is interested in a podcast’s episodes any more, nor in an answer about them that is under way.
    mutating func drop(_ podcast: String) {
        episodeCounts[podcast] = nil
        if waiting.first == podcast { question = nil }
        waiting.removeAll { $0 == podcast }
    }

    /// Has a podcast that is subscribed to checked; `ask` puts the question. One that is being asked about may have got more
    /// since, and is checked once more.
    mutating func check(_ podcast: String) {
        guard knows(podcast), !waiting.dropFirst(question == nil ? 0 : 1).contains(podcast) else { return }
        waiting.append(podcast)
    }

    /// Has a podcast checked again unless that is to come anyway: what was found of it could not be saved.
    mutating func checkAgain(_ podcast: String) {
        if knows(podcast), !waiting.contains(podcast) { waiting.append(podcast) }
    }

    /// The next question; nil while one is under way or no podcast waits.
    mutating func ask(as call: CallID) -> Call? {
        guard question == nil, let podcast = waiting.first else { return nil }
        var request = WirePersistenceRequest()
        request.episodes.podcast = podcast
        request.episodes.limit = Self.window
        question = call
        return Call(id: call, to: .persistence, payload: request.wireBytes)
    }

    /// The library has answered, or refused. Nil: the call was another one.
    mutating func answered(_ result: Result<[UInt8], Failure>, to call: CallID) -> Answer? {
        guard call == question else { return nil }
        question = nil
        guard let podcast = waiting.first else { return .void }
        do {
            let episodes = try WirePersistenceReply(wireBytes: result.get()).episodes.episodes
            waiting.removeFirst()
            return .episodes(episodes, of: podcast)
        } catch {
            let failure = error as? Failure ?? Failure(.malformed, "The database’s answer cannot be read: \(error)")
            if failure.retry { return .retry }
            waiting.removeFirst()
            return .failed(failure, podcast: podcast)
        }
    }

    // MARK: Judging

    /// What is new among a podcast's newest episodes; nil: nothing that the mark does not know.
    ///
    /// - Parameters:
    ///   - mark: which episodes were dealt with; nil: the rule begins with what is there.
    ///   - isQueued: whether an episode stands in a queue already.
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
        func isNew(_ episode: WireEpisode) -> Bool {
            episode.firstSeen > mark.since || episode.firstSeen == mark.since && !dealt.contains(episode.id)
        }
        // The newest of all is news, however late its feed shows it.
        let newest = episodes.map(\.published).max() ?? 0
        func isOld(_ episode: WireEpisode) -> Bool {
            episode.published != 0 && episode.published < mark.since - newsAge && episode.published != newest
        }
        let found = episodes.filter { episode in
            isNew(episode) && !episode.state.played && !episode.enclosureURL.isEmpty && !isQueued(episode.id)
        }.sorted { ($0.published, $0.id) < ($1.published, $1.id) }
        return News(mark: next, episodes: found.filter { !isOld($0) }, old: found.filter(isOld))
    }
}
