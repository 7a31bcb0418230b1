import FoundationEssentials
import GRDB
import PodcastModel
import WireMessages

extension Store {
    /// The episodes that a search finds, with the parts of their notes around the matches, and the podcasts.
    ///
    /// - Throws: `invalidArgument` for a text without words or with too many.
    func search(_ query: WireEpisodesQuery, now: Timestamp) throws(Failure) -> WireEpisodesPage {
        let search = try EpisodeSearch(query, now: now)
        let limit = query.limit == 0 ? 20 : min(Int(query.limit), RequestSizes.searchResults)
        return try read("searching") { db in
            var page = WireEpisodesPage()
            (page.downloadedOnly, page.ruleApplied) = (query.downloadedOnly, true)
            let (places, total) = try search.places(db, limit: limit)
            page.total = UInt32(clamping: total)
            let snippets = query.searchOptions.snippets ? try search.snippets(db, of: places) : [:]
            var reader = EpisodeReader(db: db, withDescription: query.withDescription)
            reader.withChapters = false
            var details = WireSearchDetails()
            for place in places {
                guard let episode = try reader.episode(at: place) else { continue }
                if reader.size > Self.pageLimit, !page.episodes.isEmpty { break }
                page.episodes.append(episode)
                details.snippets.append(snippets[place]?.wire ?? WireSnippet())
            }
            if !query.searchOptions.snippets { details.snippets = [] }
            details.podcasts = try search.podcasts(db, limit: Int(query.searchOptions.podcasts))
            page.searchDetails = details
            return page
        }
    }
}

/// A search for episodes among the newest `examinedLimit` matches, and for podcasts.
struct EpisodeSearch {
    /// The maximum number of matches that are ranked or filtered.
    static let examinedLimit = 20_000
    static let podcastLimit = 5

    private let terms: [SearchText.Term]
    /// The FTS5 query.
    private let match: String
    /// The texts that a title may contain instead of the words; empty if words suffice.
    private let titles: [String]
    private let scope: WireSearchScope
    private let isRanked: Bool
    private let podcast: String
    private let condition: EpisodeRule.Condition?
    private let context: EpisodeRule.Context

    init(_ query: WireEpisodesQuery, now: Timestamp) throws(Failure) {
        guard [.newest, .relevance].contains(query.order), query.after.isEmpty else {
            throw Failure(.invalidArgument, "A search has one page, by relevance or with the newest episodes first.")
        }
        condition = try EpisodeSelection.condition(of: query)
        context = EpisodeRule.Context(now: now)
        podcast = query.podcast
        scope = query.searchOptions.scope
        isRanked = query.order == .relevance
        terms = try SearchText.searchTerms(query.search)
        let columns =
            switch scope {
            case .titles: "title"
            case .notes: "notes"
            case .titlesAndNotes, .UNRECOGNIZED: "title notes"
            }
        match = SearchText.query(terms, podcast: podcast.isEmpty ? nil : podcast, columns: columns) ?? ""
        let isUnsegmented = scope != .notes && terms.contains(where: \.isUnsegmented)
        titles = isUnsegmented ? terms.map { LibraryWriter.folded($0.text) } : []
    }

    /// The rows of the best or newest episodes, and the number of all.
    func places(_ db: Database, limit: Int) throws -> (places: [Int64], total: Int) {
        var (matches, arguments) = matches
        var source = "matched"
        if let condition {
            let rule = RuleSQL(condition, context, testing: RuleSQL.allRows)
            source += " CROSS JOIN episode ON episode.place = matched.place WHERE \(rule.sql)"
            arguments += rule.arguments
        }
        let sql = """
            WITH matched AS MATERIALIZED (\(matches))
            SELECT matched.place, count(*) OVER () FROM \(source)
            ORDER BY \(isRanked ? "matched.score," : "") matched.place DESC LIMIT ?
            """
        arguments.append(limit)
        let rows = try Row.fetchAll(
            db.makeStatement(sql: sql), arguments: StatementArguments(arguments.map(\.databaseValue)))
        var total = rows.first?[1] as Int? ?? 0
        if total == Self.examinedLimit, condition == nil, titles.isEmpty {
            let statement = try db.cachedStatement(
                sql: "SELECT count(*) FROM episode_search WHERE episode_search MATCH ?")
            total = try Int.fetchOne(statement, arguments: [match]) ?? total
        }
        return (rows.map { $0[0] }, total)
    }

    /// The query for the rows that match, and their scores: smaller is better.
    private var matches: (sql: String, arguments: [any DatabaseValueConvertible]) {
        let score = isRanked ? "bm25(episode_search, 8.0, 1.0, 0.0)" : "0.0"
        let words = """
            SELECT rowid AS place, \(score) AS score FROM episode_search WHERE episode_search MATCH ?
            ORDER BY rowid DESC LIMIT \(Self.examinedLimit)
            """
        guard !titles.isEmpty else { return (words, [match]) }
        // The unary plus makes SQLite read the titles from their index, which is a tenth of the table.
        let parts = titles.map { _ in "instr(title, ?) > 0" } + (podcast.isEmpty ? [] : ["podcast = ?"])
        let sql = """
            SELECT place, min(score) AS score FROM (
                SELECT * FROM (\(words))
                UNION ALL
                SELECT * FROM (
                    SELECT place, 0.0 FROM episode WHERE \(parts.joined(separator: " AND "))
                    ORDER BY +place DESC LIMIT \(Self.examinedLimit)
                )
            ) GROUP BY place
            """
        return (sql, [match] + titles + (podcast.isEmpty ? [] : [podcast]))
    }

    /// The parts of the notes around the matches, by row; without the rows whose notes don’t match.
    func snippets(_ db: Database, of places: [Int64]) throws -> [Int64: SearchSnippet] {
        guard scope != .titles, let first = places.min(), let last = places.max() else { return [:] }
        // One pass over the matches is faster than a search for each row. The unary plus prevents the latter.
        let sql = """
            SELECT rowid, CAST(snippet(episode_search, 1, ?, ?, '…', \(SearchSnippet.words)) AS BLOB)
            FROM episode_search WHERE episode_search MATCH ? AND rowid BETWEEN ? AND ?
            AND +rowid IN (\(places.map(String.init).joined(separator: ",")))
            """
        let rows = try Row.fetchCursor(
            db.makeStatement(sql: sql),
            arguments: [Data([SearchSnippet.opening]), Data([SearchSnippet.closing]), match, first, last])
        var snippets: [Int64: SearchSnippet] = [:]
        while let row = try rows.next() { snippets[row[0]] = SearchSnippet(marked: row[1]) }
        return snippets
    }

    /// The first podcasts whose titles have all words, the subscribed ones first.
    func podcasts(_ db: Database, limit: Int) throws -> [WirePodcast] {
        guard limit > 0, scope != .notes else { return [] }
        let words = try SearchWords(db)
        let wanted = try terms.map { (words: try words($0.text), term: $0) }
        let rows = try Row.fetchCursor(
            db.cachedStatement(sql: "SELECT id, title FROM podcast ORDER BY subscribed DESC, title, id"))
        var ids: [String] = []
        while ids.count < min(limit, Self.podcastLimit), let row = try rows.next() {
            let title: String = row[1]
            let found = try words(title)
            let matches = wanted.allSatisfy { words, term in
                SearchWords.occurs(words, in: found, isPrefix: term.isPrefix)
                    || term.isUnsegmented && title.contains(LibraryWriter.folded(term.text))
            }
            if matches { ids.append(row[0]) }
        }
        return try ids.compactMap { try Store.podcast($0, db) }
    }
}

/// Splits texts into words as the search index does: without case, accents and punctuation.
struct SearchWords {
    private let tokenizer: any FTS5Tokenizer

    init(_ db: Database) throws { tokenizer = try db.makeTokenizer(.unicode61(diacritics: .remove)) }

    func callAsFunction(_ text: String) throws -> [String] {
        try tokenizer.tokenize(document: SearchText.indexed(text)).map(\.token)
    }

    /// Whether words occur together and in order.
    static func occurs(_ phrase: [String], in words: [String], isPrefix: Bool) -> Bool {
        guard let last = phrase.last, words.count >= phrase.count else { return false }
        return (0...words.count - phrase.count).contains { start in
            let end = start + phrase.count - 1
            return words[start..<end].elementsEqual(phrase.dropLast())
                && (words[end] == last || isPrefix && words[end].hasPrefix(last))
        }
    }
}
