public import PodcastModel
import SwiftProtobuf
import WireMessages

extension LibraryClient {
    /// The newest play sessions, the newest first.
    ///
    /// - Parameters:
    ///   - episode: the episode; nil for all.
    ///   - limit: the maximum number of sessions; nil for all.
    public func history(of episode: EpisodeID? = nil, limit: Int?) async throws(Failure) -> [PlaySession] {
        var sessions: [PlaySession] = []
        var cursor = ""
        while true {
            let page = try await historyPage(
                of: episode, after: cursor, limit: min(RequestSizes.episodes, max(1, (limit ?? .max) - sessions.count)))
            sessions += page.sessions
            guard !page.next.isEmpty, sessions.count < limit ?? .max else { return sessions }
            cursor = page.next
        }
    }

    /// A page of the play sessions, the newest first, and the cursor of the following page; empty after the last one.
    ///
    /// - Parameters:
    ///   - cursor: the cursor of the page; empty for the first one.
    ///   - limit: the maximum number of sessions, at most 500.
    public func historyPage(
        of episode: EpisodeID? = nil, after cursor: String = "", limit: Int
    ) async throws(Failure) -> (sessions: [PlaySession], next: String) {
        let query = WirePlayHistoryQuery.with {
            ($0.episode, $0.after, $0.limit) = (episode?.text ?? "", cursor, UInt32(clamping: limit))
        }
        let page = try await ask({ $0.history = query }, { $0.history })
        let current = fleet.state.isStale(.player) ? "" : fleet.state.player.wire.playSession
        let sessions = page.sessions.compactMap(PlaySession.init).map { session in
            var session = session
            session.isPlaying = session.id.text == current
            return session
        }
        return (sessions, page.next == cursor ? "" : page.next)
    }

    /// Sums over the play sessions that were started since a time.
    ///
    /// - Parameters:
    ///   - first: the time.
    ///   - limit: the maximum number of podcasts or episodes, at most 500.
    /// - Throws: `invalidArgument` if the time is in the future, or by day more than 400 days ago.
    public func statistics(
        by grouping: ListeningStatistics.Grouping, since first: Timestamp, limit: Int = 20,
        now: Timestamp = SystemClocks.wall()
    ) async throws(Failure) -> ListeningStatistics {
        guard first <= now else {
            throw Failure(.invalidArgument, "The statistics can’t begin in the future.")
        }
        var query = WireStatisticsQuery()
        // The period has no end: a clock that was set back has left sessions in the future.
        (query.from, query.to) = (first.milliseconds, 0)
        query.limit = UInt32(clamping: limit)
        switch grouping {
        case .podcast: query.by = .podcast
        case .episode: query.by = .episode
        case .day:
            query.by = .day
            guard let days = LocalTime.days(from: first, through: now, limit: 400) else {
                throw Failure(.invalidArgument, "Statistics by day reach back at most 400 days.")
            }
            // The same period: what is before the time doesn’t count, and what is in the future counts as today.
            query.days =
                [first.milliseconds] + days.dropFirst().dropLast().map(\.milliseconds) + [Int64.max]
        }
        let asked = query
        return ListeningStatistics(
            try await ask({ $0.statistics = asked }, { $0.statistics }), grouping, from: first, to: now)
    }
}
