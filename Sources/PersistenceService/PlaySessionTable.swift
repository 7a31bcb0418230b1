import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Reads and writes play sessions.
struct PlaySessionTable {
    let db: Database

    private static let columns =
        "id, episode, podcast, started, ended, began, left_at, heard, wall, silence, device"

    /// Stores a session, or what has been heard since it was last stored.
    ///
    /// - Throws: `invalidArgument` for an invalid ID, time, position or length.
    func put(_ session: WirePlaySession) throws {
        guard PlaySessionID(session.id) != nil, EpisodeID(session.episode) != nil,
            session.podcast.isEmpty || PodcastID(session.podcast) != nil
        else {
            throw Failure(.invalidArgument, "A play session has an invalid ID (“\(session.id)”, “\(session.episode)”).")
        }
        let seconds = [session.began, session.leftAt, session.heard, session.wall, session.silence]
        guard session.started >= 0, session.ended >= session.started,
            seconds.allSatisfy({ PlaybackPosition(seconds: $0) != nil }), session.device.utf8.count <= 512
        else {
            throw Failure(.invalidArgument, "The play session \(session.id) has an invalid time, length or device.")
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO play_session (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET ended = excluded.ended, left_at = excluded.left_at,
                    heard = excluded.heard, wall = excluded.wall, silence = excluded.silence
                """
        ).execute(
            arguments: [
                session.id, session.episode, session.podcast, session.started, session.ended, session.began,
                session.leftAt, session.heard, session.wall, session.silence, session.device,
            ])
    }

    /// Returns the sessions before a cursor, the newest first.
    func sessions(of episode: String, before cursor: (started: Int64, id: String), limit: Int) throws
        -> [WirePlaySession]
    {
        var arguments: StatementArguments = [cursor.started, cursor.id]
        if !episode.isEmpty { arguments += [episode] }
        arguments += [limit]
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT \(Self.columns) FROM play_session WHERE (started, id) < (?, ?)
                    \(episode.isEmpty ? "" : "AND episode = ?") ORDER BY started DESC, id DESC LIMIT ?
                    """), arguments: arguments)
        return rows.map { row in
            .with {
                ($0.id, $0.episode, $0.podcast) = (row[0], row[1], row[2])
                ($0.started, $0.ended) = (row[3], row[4])
                ($0.began, $0.leftAt) = (row[5], row[6])
                ($0.heard, $0.wall, $0.silence, $0.device) = (row[7], row[8], row[9], row[10])
            }
        }
    }

    /// The sums of the sessions that were started in a period, in groups of the column `key`; the most heard first.
    func sums(_ period: Range<Int64>, by key: String = "''") throws -> [WireStatistics.Row] {
        let rows = try Row.fetchAll(
            db.cachedStatement(
                sql: """
                    SELECT \(key), total(heard), total(wall), total(silence), count(*) FROM play_session
                    WHERE started >= ? AND started < ? GROUP BY 1 ORDER BY 2 DESC, 1
                    """), arguments: [period.lowerBound, period.upperBound])
        return rows.map { row in
            .with {
                ($0.key, $0.heard, $0.wall, $0.silence) = (row[0], row[1], row[2], row[3])
                $0.sessions = UInt32(clamping: row[4] as Int64)
            }
        }
    }
}

extension Store {
    /// The maximum number of days in one query.
    private static let dayLimit = 400

    /// A page of play sessions, the newest first.
    func history(_ query: WirePlayHistoryQuery) throws(Failure) -> WirePlayHistory {
        guard query.episode.isEmpty || EpisodeID(query.episode) != nil else {
            throw Failure(.invalidArgument, "“\(query.episode)” isn’t a valid episode ID.")
        }
        // A cursor is the start of the last session and its ID.
        let parts = query.after.split(separator: "/", maxSplits: 1)
        let cursor = parts.count == 2 ? Int64(parts[0]).map { (started: $0, id: String(parts[1])) } : nil
        guard query.after.isEmpty || cursor != nil else {
            throw Failure(.invalidArgument, "“\(query.after)” isn’t a valid position in the history.")
        }
        let limit = query.limit == 0 ? 20 : min(Int(query.limit), Self.rowLimit)
        return try read("listing the history") { db in
            var titles = LibraryTitles(db)
            var page = WirePlayHistory()
            let found = try PlaySessionTable(db: db).sessions(
                of: query.episode, before: cursor ?? (.max, ""), limit: limit + 1)
            for (index, session) in found.enumerated() {
                guard index < limit, titles.size < Self.pageLimit else {
                    page.next = page.sessions.last.map { "\($0.started)/\($0.id)" } ?? ""
                    break
                }
                var session = session
                session.title = try titles.episode(session.episode).title
                session.podcastTitle = try titles.podcast(session.podcast)
                page.sessions.append(session)
            }
            return page
        }
    }

    /// Sums of play sessions.
    func statistics(_ query: WireStatisticsQuery) throws(Failure) -> WireStatistics {
        let isByDay = query.by == .day
        let bounds = isByDay ? query.days : [query.from, query.to == 0 ? .max : query.to]
        guard bounds.count >= 2, bounds.count <= Self.dayLimit + 1, zip(bounds, bounds.dropFirst()).allSatisfy(<=)
        else {
            throw Failure(
                .invalidArgument, "Statistics need a period, or at most \(Self.dayLimit) days in ascending order.")
        }
        let limit = query.limit == 0 ? 20 : min(Int(query.limit), Self.rowLimit)
        return try read("adding up the history") { db in
            let table = PlaySessionTable(db: db)
            var statistics = WireStatistics()
            statistics.total = try table.sums(bounds[0]..<bounds[bounds.count - 1]).first ?? WireStatistics.Row()
            switch query.by {
            case .day:
                for (start, end) in zip(bounds, bounds.dropFirst()) {
                    var row = try table.sums(start..<end).first ?? WireStatistics.Row()
                    row.day = start
                    statistics.rows.append(row)
                }
                statistics.groups = UInt32(statistics.rows.count)
            case .podcast, .episode:
                let key = query.by == .podcast ? "podcast" : "episode"
                let rows = try table.sums(bounds[0]..<bounds[1], by: key)
                statistics.groups = UInt32(clamping: rows.count)
                var titles = LibraryTitles(db)
                for var row in rows.prefix(limit) where titles.size < Self.pageLimit {
                    if query.by == .podcast {
                        row.title = try titles.podcast(row.key)
                    } else {
                        let episode = try titles.episode(row.key)
                        (row.title, row.podcastTitle) = (episode.title, try titles.podcast(episode.podcastID))
                    }
                    statistics.rows.append(row)
                }
            case .total, .UNRECOGNIZED: break
            }
            return statistics
        }
    }
}

/// The titles of podcasts and episodes; empty if they were deleted.
private struct LibraryTitles {
    private let db: Database
    private var podcasts: PodcastTitles
    private var episodes: [String: WireEpisode] = [:]
    /// The size of the rows for which titles were read, roughly, in bytes.
    private(set) var size = 0

    init(_ db: Database) {
        self.db = db
        podcasts = PodcastTitles(db)
    }

    /// The episode with its title and podcast only.
    mutating func episode(_ id: String) throws -> WireEpisode {
        let episode: WireEpisode
        if let known = episodes[id] {
            episode = known
        } else {
            let value = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT value FROM episode WHERE id = ?"), arguments: [id])
            let stored = try value.map { try WireEpisode(serializedBytes: $0) } ?? WireEpisode()
            episode = .with { ($0.title, $0.podcastID) = (stored.title, stored.podcastID) }
            episodes[id] = episode
        }
        size += episode.title.utf8.count + 256
        return episode
    }

    mutating func podcast(_ id: String) throws -> String {
        let title = try podcasts.title(of: id)
        size += title.utf8.count + 64
        return title
    }
}
