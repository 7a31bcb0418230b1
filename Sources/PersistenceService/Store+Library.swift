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
                // A damaged one must not hide the others; the feeds service reports it at its start.
                if let podcast = try? Self.podcast(row) { page.podcasts.append(podcast) }
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

    /// A page of the episodes that a query selects, in its order.
    func episodes(_ query: WireEpisodesQuery, now: Timestamp) throws(Failure) -> WireEpisodesPage {
        if query.hasSearchOptions { return try search(query, now: now) }
        let limit = query.limit == 0 ? 20 : min(Int(query.limit), Self.rowLimit)
        let list = try EpisodeSelection(query, now: now)
        let after = EpisodeSelection.Cursor(query.after)
        guard after != nil || query.after.isEmpty else {
            throw Failure(.invalidArgument, "“\(query.after)” isn’t a valid position in a list of episodes.")
        }
        return try read("listing episodes") { db in
            var page = WireEpisodesPage()
            page.downloadedOnly = query.downloadedOnly
            page.ruleApplied = true
            guard let list else { return page }
            if query.after.isEmpty { try list.addTotals(to: &page, withLengths: query.withTotals, db) }
            let found = try list.rows(db, after: after, limit: limit)
            var reader = EpisodeReader(db: db, withDescription: query.withDescription)
            for (index, row) in found.rows.enumerated() {
                guard let episode = try reader.episode(at: row.rowID) else { continue }
                if reader.size > Self.pageLimit, index > 0 { return page }
                page.episodes.append(episode)
                page.next = row.cursor.text
            }
            page.next = found.next?.text ?? ""
            return page
        }
    }

    /// Returns episodes by ID, in the requested order, with the show notes and chapters that fit. Once the page is full,
    /// the reply says how many IDs it answers.
    func episodes(_ query: WireEpisodesByID) throws(Failure) -> WireEpisodesPage {
        guard query.ids.count <= Self.rowLimit else {
            throw Failure(
                .invalidArgument, "The query names \(query.ids.count) episodes; at most \(Self.rowLimit) are allowed.")
        }
        return try read("looking up episodes") { db in
            var reader = EpisodeReader(db: db, withDescription: !query.brief)
            var page = WireEpisodesPage()
            for (index, id) in query.ids.enumerated() {
                if reader.size >= Self.pageLimit {
                    page.answered = UInt32(index)
                    break
                }
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

/// Reads episodes with everything that is stored about them.
struct EpisodeReader {
    let db: Database
    var withDescription: Bool
    var withChapters = true
    /// The number of bytes that have been read.
    private(set) var size = 0
    private var titles: PodcastTitles

    init(db: Database, withDescription: Bool) {
        self.db = db
        self.withDescription = withDescription
        titles = PodcastTitles(db)
    }

    mutating func episode(_ id: String) throws -> WireEpisode? {
        let rowID = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT place FROM episode WHERE id = ?"), arguments: [id])
        return try rowID.flatMap { try episode(at: $0) }
    }

    mutating func episode(at rowID: Int64) throws -> WireEpisode? {
        let statement = try db.cachedStatement(
            sql: """
                SELECT episode.value, episode_state.value, download.value, chapters.value, episode.flags FROM episode
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
        // A damaged one must not hide the others; the next refresh that changes it replaces it.
        guard var episode = try? WireEpisode(serializedBytes: value) else { return nil }
        var bytes = value.count
        if !withChapters, !episode.chapters.isEmpty {
            episode.chapters = []
            bytes = episode.wireBytes.count
        }
        episode.flags = UInt32(clamping: row[4] as Int64)
        episode.podcastTitle = try titles.title(of: episode.podcastID)
        if let state = state.flatMap({ try? WireEpisodeState(serializedBytes: $0) }) { episode.state = state }
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
            bytes + (download?.count ?? 0) + (withChapters ? fetched?.count ?? 0 : 0) + (state?.count ?? 0)
            + episode.description_p.utf8.count + episode.podcastTitle.utf8.count + 32
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
}

/// The titles of podcasts, each read once; empty if a podcast doesn’t exist.
struct PodcastTitles {
    private let db: Database
    private var titles: [String: String] = [:]

    init(_ db: Database) {
        self.db = db
    }

    mutating func title(of podcast: String) throws -> String {
        if let title = titles[podcast] { return title }
        let value = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM podcast WHERE id = ?"), arguments: [podcast])
        let title = value.flatMap { try? WirePodcast(serializedBytes: $0).title } ?? ""
        titles[podcast] = title
        return title
    }
}
