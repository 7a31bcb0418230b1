import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

extension Store {
    /// The maximum number of podcasts or episodes on one page.
    static let rowLimit = RequestSizes.episodes

    /// A page of podcasts in order of their titles, each with its counts.
    func podcasts(_ query: WirePodcastsQuery) throws(Failure) -> WirePodcastsPage {
        let limit = query.limit == 0 ? 100 : min(Int(query.limit), Self.rowLimit)
        // A cursor is the title and the ID of the last podcast; the ID follows the last separator.
        let cursor = query.after.split(separator: "\u{1F}", omittingEmptySubsequences: false)
        let id = cursor.last.map(String.init) ?? ""
        let title = cursor.dropLast().joined(separator: "\u{1F}")
        return try read("listing podcasts") { db in
            let rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: """
                        SELECT podcast.value, episodes, played, title, id
                        FROM podcast JOIN podcast_count ON podcast_count.podcast = podcast.id
                        WHERE (title, id) > (?, ?) AND (? OR subscribed) ORDER BY title, id LIMIT ?
                        """), arguments: [title, id, query.includeUnsubscribed, limit + 1])
            var page = WirePodcastsPage()
            var size = 0
            var last = ""
            while let row = try rows.next() {
                let value: Data = row[0]
                size += value.count + 16
                if page.podcasts.count == limit || size > Self.pageLimit && !page.podcasts.isEmpty {
                    page.next = last
                    break
                }
                page.podcasts.append(try Self.podcast(row))
                last = "\(row[3] as String)\u{1F}\(row[4] as String)"
            }
            return page
        }
    }

    /// Decodes a podcast from a row that begins with value, episodes, played.
    static func podcast(_ row: Row) throws -> WirePodcast {
        let value: Data = row[0]
        let episodes: Int64 = row[1]
        let played: Int64 = row[2]
        var podcast = try WirePodcast(serializedBytes: value)
        podcast.episodeCount = UInt32(clamping: episodes)
        podcast.unplayedCount = UInt32(clamping: episodes - played)
        return podcast
    }

    /// A page of episodes, newest first: of one podcast or of all, all or unplayed, with or without a search.
    func episodes(_ query: WireEpisodesQuery) throws(Failure) -> WireEpisodesPage {
        let limit = query.limit == 0 ? 20 : min(Int(query.limit), Self.rowLimit)
        guard let after = query.after.isEmpty ? Int64.max : Int64(query.after, radix: 36) else {
            throw Failure(.invalidArgument, "“\(query.after)” isn’t a valid position in a list of episodes.")
        }
        guard query.podcast.isEmpty || PodcastID(query.podcast) != nil else {
            throw Failure(.invalidArgument, "“\(query.podcast)” isn’t a valid podcast ID.")
        }
        let search = SearchText.query(query.search, podcast: query.podcast.isEmpty ? nil : query.podcast)
        let isSearch = !query.search.allSatisfy(\.isWhitespace)
        if isSearch, search == nil { return .with { $0.downloadedOnly = query.downloadedOnly } }
        var selection = EpisodeSelection(
            podcast: query.podcast, unplayedOnly: query.unplayedOnly, search: isSearch ? search : nil)
        return try read("listing episodes") { db in
            var page = WireEpisodesPage()
            page.downloadedOnly = query.downloadedOnly
            if query.downloadedOnly { selection.ids = try EpisodeSelection.downloadedIDs(db) }
            if query.after.isEmpty { page.total = try selection.count(db) }
            let rowIDs = try selection.rowIDs(db, before: after, limit: limit + 1)
            var reader = EpisodeReader(db: db, withDescription: query.withDescription)
            for (index, rowID) in rowIDs.enumerated() {
                if index == limit { break }
                guard let episode = try reader.episode(at: rowID) else { continue }
                if reader.size > Self.pageLimit, index > 0 { break }
                page.episodes.append(episode)
                page.next = String(rowID, radix: 36)
            }
            if page.episodes.count == rowIDs.count { page.next = "" }
            return page
        }
    }

    /// Returns episodes by ID, in the requested order, with the show notes and chapters that fit.
    func episodes(_ query: WireEpisodesByID) throws(Failure) -> WireEpisodesPage {
        guard query.ids.count <= Self.rowLimit else {
            throw Failure(
                .invalidArgument, "The query names \(query.ids.count) episodes; at most \(Self.rowLimit) are allowed.")
        }
        return try read("looking up episodes") { db in
            var reader = EpisodeReader(db: db, withDescription: !query.brief)
            var page = WireEpisodesPage()
            for id in query.ids {
                reader.withDescription = !query.brief && reader.size < Self.pageLimit / 2
                reader.withChapters = reader.withDescription
                if let episode = try reader.episode(id) { page.episodes.append(episode) }
            }
            page.total = UInt32(clamping: page.episodes.count)
            return page
        }
    }

    /// Returns aliases of a podcast’s episodes: the requested ones, or all in pages.
    func aliases(_ query: WireAliasQuery) throws(Failure) -> WireAliasMatches {
        try read("looking up aliases") { db in
            var matches = WireAliasMatches()
            func append(_ alias: String, _ episode: String) {
                let match = WireEpisodeAlias.with {
                    $0.podcast = query.podcast
                    $0.alias = alias
                    $0.episode = episode
                }
                matches.aliases.append(match)
            }
            if !query.ids.isEmpty {
                let other = try db.cachedStatement(sql: "SELECT 1 FROM episode WHERE id = ? AND podcast <> ?")
                matches.taken = try query.ids.filter {
                    try Int.fetchOne(other, arguments: [$0, query.podcast]) != nil
                }
            }
            if !query.aliases.isEmpty {
                // An alias never refers to an episode of another podcast.
                let one = try db.cachedStatement(
                    sql: """
                        SELECT alias.episode FROM alias LEFT JOIN episode ON episode.id = alias.episode
                        WHERE alias.podcast = ?1 AND alias = ?2 AND coalesce(episode.podcast, ?1) = ?1
                        """)
                for alias in Set(query.aliases).sorted() {
                    let episode = try String.fetchOne(one, arguments: [query.podcast, alias])
                    if let episode { append(alias, episode) }
                }
            }
            guard query.aliases.isEmpty, query.ids.isEmpty else { return matches }
            let rows = try Row.fetchCursor(
                db.cachedStatement(
                    sql: "SELECT alias, episode FROM alias WHERE podcast = ? AND alias > ? ORDER BY alias"),
                arguments: [query.podcast, query.after])
            var size = 0
            while let row = try rows.next() {
                let (alias, episode): (String, String) = (row[0], row[1])
                size += alias.utf8.count + episode.utf8.count + query.podcast.utf8.count + 16
                if size > Self.pageLimit, let last = matches.aliases.last {
                    matches.next = last.alias
                    break
                }
                append(alias, episode)
            }
            return matches
        }
    }
}

/// The filters of a page of episodes.
private struct EpisodeSelection {
    var podcast: String
    var unplayedOnly: Bool
    var search: String?
    /// The IDs to which the page is limited, as a JSON array; nil: no limit.
    var ids: String?

    /// The IDs of the downloaded episodes, as a JSON array.
    static func downloadedIDs(_ db: Database) throws -> String {
        let records = try Data.fetchCursor(
            db.cachedStatement(sql: "SELECT value FROM record WHERE owner = 'downloads' AND collection = 'download'"))
        var ids: [String] = []
        while let record = try records.next() {
            // An unreadable record, which the downloads service reports, isn’t counted as a download.
            guard let download = try? WireDownload(serializedBytes: record) else { continue }
            if download.state == .downloaded { ids.append(download.episode) }
        }
        return String(decoding: try JSONEncoder().encode(ids), as: UTF8.self)
    }

    /// Selects `columns` of the episodes with these IDs.
    private func amongIDs(_ columns: String, before: Int64, _ ending: String = "") -> SQLRequest<Int64> {
        SQLRequest(
            sql: """
                SELECT \(columns) FROM episode WHERE id IN (SELECT value FROM json_each(?)) AND place < ?
                \(podcast.isEmpty ? "" : "AND podcast = ?") \(unplayedOnly ? "AND played = 0" : "")
                \(search == nil ? "" : "AND place IN (SELECT rowid FROM episode_search WHERE episode_search MATCH ?)")
                \(ending)
                """,
            arguments: StatementArguments(
                [ids, before] + (podcast.isEmpty ? [] : [podcast]) + (search.map { [$0] } ?? [])),
            cached: true)
    }

    func count(_ db: Database) throws -> UInt32 {
        let count: Int64?
        if ids != nil {
            count = try amongIDs("count(*)", before: .max).fetchOne(db)
        } else if let search {
            count = try Int64.fetchOne(
                db.cachedStatement(sql: "SELECT count(*) \(matches)"), arguments: [search])
        } else {
            count = try Int64.fetchOne(
                db.cachedStatement(
                    sql: """
                        SELECT coalesce(sum(episodes - CASE WHEN ?1 THEN played ELSE 0 END), 0) FROM podcast_count
                        WHERE ?2 = '' OR podcast = ?2
                        """), arguments: [unplayedOnly, podcast])
        }
        return UInt32(clamping: count ?? 0)
    }

    /// Returns the row IDs (`place`) of the next episodes, newest first.
    func rowIDs(_ db: Database, before: Int64, limit: Int) throws -> [Int64] {
        if ids != nil {
            return try amongIDs("place", before: before, "ORDER BY place DESC LIMIT \(limit)").fetchAll(db)
        }
        if let search {
            let sql = """
                SELECT episode_search.rowid \(matches) AND episode_search.rowid < ?
                ORDER BY episode_search.rowid DESC LIMIT ?
                """
            return try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: [search, before, limit])
        }
        let sql = """
            SELECT place FROM episode WHERE \(podcast.isEmpty ? "" : "podcast = ? AND") place < ?
            \(unplayedOnly ? "AND played = 0" : "") ORDER BY place DESC LIMIT ?
            """
        let arguments = StatementArguments(podcast.isEmpty ? [] : [podcast]) + [before, limit]
        return try Int64.fetchAll(db.cachedStatement(sql: sql), arguments: arguments)
    }

    /// The clauses that select what the search matches.
    private var matches: String {
        unplayedOnly
            ? """
            FROM episode_search CROSS JOIN episode ON episode.place = episode_search.rowid
            WHERE episode_search MATCH ? AND episode.played = 0
            """ : "FROM episode_search WHERE episode_search MATCH ?"
    }
}

/// Reads episodes with everything that is stored about them.
struct EpisodeReader {
    let db: Database
    var withDescription: Bool
    var withChapters = true
    /// The number of bytes that have been read.
    private(set) var size = 0
    var titles: [String: String] = [:]

    mutating func episode(_ id: String) throws -> WireEpisode? {
        let rowID = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT place FROM episode WHERE id = ?"), arguments: [id])
        return try rowID.flatMap { try episode(at: $0) }
    }

    mutating func episode(at rowID: Int64) throws -> WireEpisode? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT episode.value, episode_state.value, download.value, chapters.value FROM episode
                LEFT JOIN episode_state ON episode_state.episode = episode.id
                LEFT JOIN record AS download ON download.owner = 'downloads' AND download.collection = 'download'
                    AND download.key = episode.id
                LEFT JOIN document AS chapters ON chapters.owner = 'feeds'
                    AND chapters.collection = 'chapters/' || episode.podcast AND chapters.key = episode.id
                WHERE place = ?
                """)
        guard let row = try Row.fetchOne(statement, arguments: [rowID]) else { return nil }
        let value: Data = row[0]
        let (state, download, fetched): (Data?, Data?, Data?) = (row[1], row[2], row[3])
        var episode = try WireEpisode(serializedBytes: value)
        if !withChapters { episode.chapters = [] }
        episode.podcastTitle = try title(of: episode.podcastID)
        if let state { episode.state = try WireEpisodeState(serializedBytes: state) }
        if withDescription {
            episode.description_p =
                try String.fetchOne(
                    db.cachedStatement(sql: "SELECT coalesce(description, notes) FROM episode_text WHERE place = ?"),
                    arguments: [rowID]) ?? ""
        }
        // The downloads service reports an unreadable record.
        if let download = download.flatMap({ try? WireDownload(serializedBytes: $0) }) { episode.download = download }
        if let fetched {
            let record = try WireChaptersRecord(serializedBytes: fetched)
            if withChapters, !record.chapters.isEmpty { episode.chapters = record.chapters }
            episode.chaptersFetched = record.fetchedAt
        }
        if withDescription, withChapters, episode.chapters.isEmpty { try addChaptersOfFile(&episode) }
        size +=
            (download?.count ?? 0) + (fetched?.count ?? 0) + value.count + (state?.count ?? 0)
            + episode.description_p.utf8.count
            + episode.podcastTitle.utf8.count + 32
        return episode
    }

    /// Adds the chapters in the episode’s file, which the player stores after it has opened the file.
    private mutating func addChaptersOfFile(_ episode: inout WireEpisode) throws {
        let value = try Data.fetchOne(
            db.cachedStatement(
                sql: "SELECT value FROM record WHERE owner = 'playback' AND collection = 'chapters' AND key = ?"),
            arguments: [episode.id])
        guard let value else { return }
        episode.chapters = try WirePlaybackChaptersRecord(serializedBytes: value).chapters
        episode.chaptersOfFile = true
        size += value.count
    }

    private mutating func title(of podcast: String) throws -> String {
        if let title = titles[podcast] { return title }
        let value = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM podcast WHERE id = ?"), arguments: [podcast])
        let title = try value.map { try WirePodcast(serializedBytes: $0).title } ?? ""
        titles[podcast] = title
        return title
    }
}
