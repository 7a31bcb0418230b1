import FoundationEssentials
import GRDB
import PodcastModel
import WireMessages

/// The episodes of a list: the conditions that they meet, and their order.
///
/// A list with a set of candidates (a podcast, a search, `Condition.candidates`) sorts these. Every other list follows
/// the index of its order, and a page examines a limited number of rows: a page with fewer matches ends early, with a
/// cursor.
struct EpisodeSelection {
    private let condition: EpisodeRule.Condition?
    private let podcast: String
    /// The FTS5 query.
    private let search: String?
    private let order: WireEpisodeOrder
    private let context: EpisodeRule.Context
    private let isRule: Bool

    /// The maximum number of rows that a page of a list by date without candidates examines.
    static let examinedLimit = 5_000
    /// The same for the other orders, whose rows are scattered over the table.
    static let scatteredLimit = 1_000

    /// Reads a query; nil if its search text has no words, so that nothing matches.
    ///
    /// - Throws: `invalidArgument` for an invalid rule or podcast ID.
    init?(_ query: WireEpisodesQuery, now: Timestamp) throws(Failure) {
        condition = try Self.condition(of: query)
        podcast = query.podcast
        order = query.order
        context = EpisodeRule.Context(now: now)
        isRule = !query.rule.isEmpty
        guard !query.search.allSatisfy(\.isWhitespace) else {
            search = nil
            return
        }
        search = SearchText.query(query.search, podcast: podcast.isEmpty ? nil : podcast)
        if search == nil { return nil }
    }

    /// The condition of a query’s rule and flags; nil if all episodes meet it.
    ///
    /// - Throws: `invalidArgument` for an invalid rule or podcast ID.
    static func condition(of query: WireEpisodesQuery) throws(Failure) -> EpisodeRule.Condition? {
        guard query.podcast.isEmpty || PodcastID(query.podcast) != nil else {
            throw Failure(.invalidArgument, "“\(query.podcast)” isn’t a valid podcast ID.")
        }
        var conditions: [EpisodeRule.Condition] = []
        if query.unplayedOnly { conditions.append(.not(.mark(.played))) }
        if query.downloadedOnly { conditions.append(.mark(.downloaded)) }
        if !query.rule.isEmpty { conditions.append(try EpisodeRule(query.rule).condition) }
        return conditions.isEmpty ? nil : EpisodeRule(.all(conditions)).condition
    }

    /// A position in a list: the key of a row by which the list is ordered, and what distinguishes equal keys.
    struct Cursor {
        var key: DatabaseValue
        var tie: DatabaseValue

        init(key: DatabaseValue, tie: DatabaseValue) { (self.key, self.tie) = (key, tie) }

        /// Parses a cursor; nil for an invalid one.
        init?(_ text: String) {
            let parts = text.split(separator: "\u{1F}", maxSplits: 1, omittingEmptySubsequences: false)
            guard let tie = Self.value(parts[0]) else { return nil }
            guard parts.count == 2 else {
                self.init(key: tie, tie: tie)
                return
            }
            guard let key = Self.value(parts[1]) else { return nil }
            self.init(key: key, tie: tie)
        }

        /// The form for messages; a row ID alone if that is the key.
        var text: String { key == tie ? Self.text(tie) : "\(Self.text(tie))\u{1F}\(Self.text(key))" }

        private static func text(_ value: DatabaseValue) -> String {
            if let number = Int64.fromDatabaseValue(value), value.storage.value is Int64 {
                return String(number, radix: 36)
            }
            return "=" + (String.fromDatabaseValue(value) ?? "")
        }

        private static func value(_ text: Substring) -> DatabaseValue? {
            // Bytes: a title may begin with a combining mark.
            if text.utf8.first == UInt8(ascii: "=") {
                return String(decoding: text.utf8.dropFirst(), as: UTF8.self).databaseValue
            }
            return Int64(text, radix: 36)?.databaseValue
        }
    }

    /// The columns of an order. Rows with an unknown key follow in `unknown`, if that isn’t nil.
    private struct Sort {
        var key: String
        var tie = "episode.place"
        var isDescending: Bool
        /// The clause that names the index in this order.
        var index: String
        /// The condition of rows with a known key, and of the others.
        var known = ""
        var unknown: String?

        var isByRowID: Bool { key == tie }
        private var direction: String { isDescending ? "DESC" : "ASC" }

        /// The ordering; with `sorting`, rows are sorted even if an index has this order.
        func ordering(sorting: Bool = false) -> String {
            // The unary plus keeps SQLite from using the index.
            let plus = sorting ? "+" : ""
            return isByRowID ? "\(key) \(direction)" : "\(plus)\(key) \(direction), \(plus)\(tie) \(direction)"
        }

        /// The row IDs between two positions; all if the order isn’t by row ID.
        func rows(after: Cursor?, upTo bound: Cursor?) -> ClosedRange<Int64> {
            func row(_ position: Cursor?) -> Int64? { position.flatMap { Int64.fromDatabaseValue($0.tie) } }
            guard isByRowID else { return RuleSQL.allRows }
            let first = isDescending ? row(bound) : row(after)
            let last = max(isDescending ? row(after) ?? .max : row(bound) ?? .max, first ?? .min)
            return (first ?? .min)...last
        }

        /// The condition of rows after a position, or, with `isUpTo`, of those up to it.
        func condition(
            _ position: Cursor, isUpTo: Bool = false
        ) -> (sql: String, arguments: [any DatabaseValueConvertible]) {
            let comparison = isUpTo ? (isDescending ? ">=" : "<=") : isDescending ? "<" : ">"
            return isByRowID
                ? ("\(key) \(comparison) ?", [position.tie])
                : ("(\(key), \(tie)) \(comparison) (?, ?)", [position.key, position.tie])
        }
    }

    private var sort: Sort {
        let byLength = "INDEXED BY episode_by_length"
        return switch order {
        case .oldest: Sort(key: "episode.place", isDescending: false, index: "NOT INDEXED")
        case .shortest:
            Sort(
                key: "episode.seconds", isDescending: false, index: byLength, known: "episode.seconds > 0",
                unknown: "episode.seconds = 0")
        case .longest: Sort(key: "episode.seconds", isDescending: true, index: byLength)
        case .title: Sort(key: "episode.title", isDescending: false, index: "INDEXED BY episode_by_title")
        case .heard:
            Sort(
                key: "h.heard_at", tie: "h.episode", isDescending: true, index: "INDEXED BY state_heard",
                known: "h.heard_at > 0")
        case .added: Sort(key: "episode.seen", isDescending: true, index: "INDEXED BY episode_by_seen")
        case .newest, .relevance, .UNRECOGNIZED:
            Sort(key: "episode.place", isDescending: true, index: "NOT INDEXED")
        }
    }

    private var isSmall: Bool { !podcast.isEmpty || search != nil || condition?.candidates != nil }

    /// A query under construction.
    private struct Query {
        var conditions: [String] = []
        var arguments: [any DatabaseValueConvertible] = []

        mutating func add(_ condition: String, _ values: [any DatabaseValueConvertible] = []) {
            conditions.append(condition)
            arguments += values
        }

        mutating func add(_ condition: (sql: String, arguments: [any DatabaseValueConvertible])) {
            add(condition.sql, condition.arguments)
        }

        var filter: String { conditions.isEmpty ? "" : "WHERE " + conditions.joined(separator: " AND ") }
        var statementArguments: StatementArguments { StatementArguments(arguments.map(\.databaseValue)) }
    }

    /// - Parameters:
    ///   - isPlain: whether only the row IDs of a search are needed, not the columns of its episodes.
    ///   - index: the clause that names the index to follow; empty if SQLite chooses one. It would begin with the index
    ///     of a condition such as `length < 20m`, and sort the many rows that it finds there.
    private func source(isPlain: Bool, index: String = "") -> String {
        if isPlain { return "episode_search" }
        if !index.isEmpty {
            return order == .heard
                ? "episode_state AS h \(index) CROSS JOIN episode ON episode.id = h.episode" : "episode \(index)"
        }
        let search =
            search == nil ? "episode" : "episode_search CROSS JOIN episode ON episode.place = episode_search.rowid"
        return order == .heard ? "\(search) JOIN episode_state AS h ON h.episode = episode.id" : search
    }

    /// Whether only the search selects episodes, so that the search index suffices.
    private var isPlainSearch: Bool {
        search != nil && condition == nil && sort.isByRowID
    }

    /// Prepares a query. Those of rules aren’t cached, because there is an unlimited number of them.
    private func statement(_ db: Database, _ sql: String) throws -> Statement {
        isRule ? try db.makeStatement(sql: sql) : try db.cachedStatement(sql: sql)
    }

    /// The conditions of the list, without a position.
    ///
    /// - Parameter rows: the rows that a page examines, if the list follows an index.
    private func query(testing rows: ClosedRange<Int64>? = nil) -> Query {
        var query = Query()
        if let search { query.add("episode_search MATCH ?", [search]) }
        // The query of a search selects its podcast itself.
        if !podcast.isEmpty, search == nil { query.add("episode.podcast = ?", [podcast]) }
        if search == nil, podcast.isEmpty, let candidates = condition?.candidates {
            query.add(candidates)
        }
        if let condition {
            let rule = RuleSQL(condition, context, testing: rows)
            query.add(rule.sql, rule.arguments)
        }
        return query
    }

    /// Returns the next rows and the position after which the next page begins; nil at the end.
    func rows(
        _ db: Database, after: Cursor?, limit: Int
    ) throws -> (rows: [(rowID: Int64, cursor: Cursor)], next: Cursor?) {
        let sort = sort
        // A cursor with an unknown key is in the second part of the list.
        let isInUnknown = sort.unknown != nil && after.map { $0.key == 0.databaseValue } ?? false
        var found: [(rowID: Int64, cursor: Cursor)] = []
        if !isInUnknown {
            let part = try rows(db, sort, after: after, limit: limit)
            found = part.rows
            if let next = part.next { return (found, next) }
        }
        guard let unknown = sort.unknown else { return (found, nil) }
        if found.count == limit { return (found, found.last?.cursor) }
        let rest = Sort(key: sort.key, isDescending: true, index: sort.index, known: unknown)
        let part = try rows(db, rest, after: isInUnknown ? after : nil, limit: limit - found.count)
        return (found + part.rows, part.next)
    }

    private func rows(
        _ db: Database, _ sort: Sort, after: Cursor?, limit: Int
    ) throws -> (rows: [(rowID: Int64, cursor: Cursor)], next: Cursor?) {
        // An index contains the unplayed episodes alone.
        let isIndexed = condition == nil || sort.isByRowID && condition == .not(.mark(.played))
        let isFilter = !isSmall && !isIndexed
        let bound = isFilter ? try bound(db, sort, after: after) : nil
        var query = query(testing: isFilter ? sort.rows(after: after, upTo: bound) : nil)
        if !sort.known.isEmpty { query.add(sort.known) }
        var sort = sort
        // The row ID of a search is its own column, by which FTS5 returns matches in order.
        if search != nil, sort.isByRowID { (sort.key, sort.tie) = ("episode_search.rowid", "episode_search.rowid") }
        if let after { query.add(sort.condition(after)) }
        if let bound { query.add(sort.condition(bound, isUpTo: true)) }
        query.arguments.append(limit + 1)
        let sql = """
            SELECT \(isPlainSearch ? "episode_search.rowid" : "episode.place"), \(sort.key), \(sort.tie)
            FROM \(source(isPlain: isPlainSearch, index: isFilter ? sort.index : "")) \(query.filter)
            ORDER BY \(sort.ordering(sorting: isSmall)) LIMIT ?
            """
        let rows = try Row.fetchAll(
            statement(db, sql), arguments: query.statementArguments
        ).map { (rowID: $0[0] as Int64, cursor: Cursor(key: $0[1], tie: $0[2])) }
        if rows.count > limit { return (Array(rows.prefix(limit)), limit > 0 ? rows[limit - 1].cursor : after) }
        return (rows, bound)
    }

    /// The position of the last row that a page examines; nil if the list ends before.
    private func bound(_ db: Database, _ sort: Sort, after: Cursor?) throws -> Cursor? {
        var query = Query()
        if !sort.known.isEmpty { query.add(sort.known) }
        let table = order == .heard ? "episode_state AS h" : "episode"
        if let after { query.add(sort.condition(after)) }
        let sql = """
            SELECT \(sort.key), \(sort.tie) FROM \(table) \(query.filter)
            ORDER BY \(sort.ordering()) LIMIT 1 OFFSET \((sort.isByRowID ? Self.examinedLimit : Self.scatteredLimit) - 1)
            """
        let row = try Row.fetchOne(db.cachedStatement(sql: sql), arguments: query.statementArguments)
        return row.map { Cursor(key: $0[0], tie: $0[1]) }
    }

    // MARK: Totals

    /// Adds the number of matches if it is known without reading all episodes, or if `withLengths`, and then also their
    /// length.
    func addTotals(to page: inout WireEpisodesPage, withLengths: Bool, _ db: Database) throws {
        let isUnplayed = condition == .not(.mark(.played))
        if search == nil, order != .heard, condition == nil || isUnplayed {
            page.total = try storedCount(db, isUnplayed: isUnplayed)
            if withLengths { try addLengths(to: &page, isUnplayed: isUnplayed, db) }
        } else if withLengths || isSmall {
            var query = query()
            // The order leaves rows with an unknown key out, unless it lists them separately.
            if sort.unknown == nil, !sort.known.isEmpty { query.add(sort.known) }
            let sums = withLengths ? ", total(episode.seconds), total(\(RuleSQL.remaining))" : ""
            let row = try Row.fetchOne(
                statement(
                    db,
                    "SELECT count(*)\(sums) FROM \(source(isPlain: isPlainSearch && !withLengths)) \(query.filter)"),
                arguments: query.statementArguments)
            page.total = UInt32(clamping: row?[0] as Int64? ?? 0)
            if withLengths { (page.seconds, page.secondsLeft) = (row?[1] ?? 0, row?[2] ?? 0) }
        }
    }

    /// The number of episodes according to the podcasts’ counts.
    private func storedCount(_ db: Database, isUnplayed: Bool) throws -> UInt32 {
        let count = try Int64.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT coalesce(sum(episodes - CASE WHEN ?1 THEN played ELSE 0 END), 0) FROM podcast_count
                    WHERE ?2 = '' OR podcast = ?2
                    """), arguments: [isUnplayed, podcast])
        return UInt32(clamping: count ?? 0)
    }

    /// Adds the podcasts’ lengths, and subtracts the positions of the few started episodes.
    private func addLengths(to page: inout WireEpisodesPage, isUnplayed: Bool, _ db: Database) throws {
        let ofPodcast = podcast.isEmpty ? "" : "AND podcast = ?"
        let arguments = StatementArguments(podcast.isEmpty ? [] : [podcast])
        let sums = try Row.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT total(seconds), total(seconds - played_seconds) FROM podcast_count WHERE true \(ofPodcast)
                    """), arguments: arguments)
        let heard = try Double.fetchOne(
            db.cachedStatement(
                sql: """
                    SELECT total(min(s.position, episode.seconds)) FROM episode_state AS s
                    CROSS JOIN episode ON episode.id = s.episode WHERE s.started = 1 \(ofPodcast)
                    """), arguments: arguments)
        page.seconds = sums?[isUnplayed ? 1 : 0] ?? 0
        page.secondsLeft = max(0, (sums?[1] ?? 0) - (heard ?? 0))
    }
}
