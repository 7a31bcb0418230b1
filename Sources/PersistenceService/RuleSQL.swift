import FoundationEssentials
import GRDB
import PodcastModel
import WireMessages

/// The SQL of a rule: a condition on the row `episode`, which is 0 or 1, never NULL.
struct RuleSQL {
    private(set) var sql = ""
    private(set) var arguments: [any DatabaseValueConvertible] = []
    private let context: EpisodeRule.Context
    private let rows: ClosedRange<Int64>?

    /// The range that contains every row.
    static let allRows = Int64.min...Int64.max

    /// - Parameter rows: the rows that the condition tests, if they are found in another way; nil if the condition may
    ///   find them.
    init(_ condition: EpisodeRule.Condition, _ context: EpisodeRule.Context, testing rows: ClosedRange<Int64>? = nil) {
        (self.context, self.rows) = (context, rows)
        append(condition)
    }

    /// The condition on the records of episodes with a property; nil if no record determines it.
    static func records(of mark: EpisodeRule.Mark) -> String? {
        switch mark {
        case .downloaded:
            "owner = 'downloads' AND collection = 'download' AND state = \(WireDownload.State.downloaded.rawValue)"
        case .queued: "owner = 'queue' AND collection >= 'entry/' AND collection < 'entry0'"
        case .favourite: "owner = 'queue' AND collection = 'item/favourites'"
        case .bookmarked: "owner = 'playback' AND collection = 'bookmark'"
        default: nil
        }
    }

    /// The condition on the records of a queue or playlist.
    static func records(ofList name: String) -> (sql: String, arguments: [String]) {
        ("owner = 'queue' AND collection IN (?, ?)", ["entry/\(name)", "item/\(name)"])
    }

    /// The condition that the podcast has this ID or title.
    static func isOf(podcast name: String) -> (sql: String, arguments: [String]) {
        (
            "episode.podcast IN (SELECT id FROM podcast WHERE id = ? UNION SELECT id FROM podcast WHERE title = ?)",
            [name, LibraryWriter.folded(name)]
        )
    }

    private static let started = """
        EXISTS (SELECT 1 FROM episode_state AS s WHERE s.episode = episode.id AND s.started = 1)
        """

    /// The condition that the episode has a record for which `condition` is true.
    private static func has(_ condition: String) -> String {
        "EXISTS (SELECT 1 FROM record AS r WHERE r.episode = episode.id AND \(condition))"
    }

    /// The condition that the episode is in the inbox.
    static let isInInbox = """
        (episode.\(EpisodeFlags.isNew) AND episode.played = 0 AND NOT \(started) \
        AND NOT \(records(of: .queued).map(has) ?? "0"))
        """

    private mutating func add(_ sql: String, _ values: any DatabaseValueConvertible...) { add((sql, values)) }

    private mutating func add(_ part: (sql: String, arguments: [any DatabaseValueConvertible])) {
        sql += part.sql
        arguments += part.arguments
    }

    private mutating func append(_ condition: EpisodeRule.Condition) {
        switch condition {
        case .mark(let mark): append(mark)
        case .tag(let tag):
            add(
                "EXISTS (SELECT 1 FROM podcast_tag AS t WHERE t.tag = ? AND t.podcast = episode.podcast)",
                PodcastTag.key(tag))
        case .podcast(let name): add(Self.isOf(podcast: name))
        case .list(let name):
            let records = Self.records(ofList: name)
            add((Self.has(records.sql), records.arguments))
        case .text(let field, let text): append(field, text)
        case .length(.length, let comparison, let seconds):
            add("(episode.seconds > 0 AND episode.seconds \(comparison.rawValue) ?)", seconds)
        case .length(.remaining, let comparison, let seconds):
            add("(episode.seconds > 0 AND \(Self.remaining) \(comparison.rawValue) ?)", seconds)
        case .age(let field, let comparison, let seconds):
            append(field, [(comparison.ofMoments, context.moment(before: seconds))])
        case .day(let field, let comparison, let day): append(field, context.bounds(comparison, day))
        case .season(let comparison, let number):
            add("(episode.season > 0 AND episode.season \(comparison.rawValue) ?)", number)
        // In this form the partial indexes of unplayed episodes apply.
        case .not(.mark(.played)): add("episode.played = 0")
        case .not(let inner):
            add("NOT (")
            append(inner)
            add(")")
        case .all(let parts): append(parts, joinedBy: " AND ")
        case .any(let parts): append(parts, joinedBy: " OR ")
        }
    }

    private mutating func append(_ parts: [EpisodeRule.Condition], joinedBy word: String) {
        add("(")
        for (index, part) in parts.enumerated() {
            if index > 0 { add(word) }
            append(part)
        }
        add(")")
    }

    private mutating func append(_ mark: EpisodeRule.Mark) {
        func flag(_ flag: EpisodeFlags) -> String { "(episode.flags & \(flag.rawValue) <> 0)" }
        if let records = Self.records(of: mark) { return add(Self.has(records)) }
        switch mark {
        case .played: add("episode.played = 1")
        case .started: add(Self.started)
        case .new: add(Self.isInInbox)
        case .gone: add(flag(.gone))
        case .explicit: add(flag(.explicit))
        case .video: add(flag(.video))
        case .chapters:
            add(
                """
                (\(flag(.chapters)) OR EXISTS (SELECT 1 FROM record AS r WHERE r.owner = 'playback' \
                AND r.collection = 'chapters' AND r.key = episode.id))
                """)
        case .transcript: add(flag(.transcript))
        case .downloaded, .queued, .favourite, .bookmarked: break
        }
    }

    private mutating func append(_ field: EpisodeRule.TextField, _ text: String) {
        if field == .title { return add("instr(episode.title, ?) > 0", LibraryWriter.folded(text)) }
        guard let query = SearchText.query(text, podcast: nil, columns: field == .notes ? "notes" : "title notes")
        else {
            return add("0")
        }
        let matches = "SELECT rowid FROM episode_search WHERE episode_search MATCH ?"
        guard let rows else { return add("episode.place IN (\(matches))", query) }
        // The unary plus keeps SQLite from looking each match up in the table.
        guard rows != Self.allRows else { return add("+episode.place IN (\(matches))", query) }
        add("+episode.place IN (\(matches) AND rowid BETWEEN ? AND ?)", query, rows.lowerBound, rows.upperBound)
    }

    /// The length after the position, in seconds.
    static let remaining = """
        CASE WHEN episode.played THEN 0 ELSE max(0, episode.seconds - coalesce(\
        (SELECT s.position FROM episode_state AS s WHERE s.episode = episode.id), 0)) END
        """

    private mutating func append(_ field: EpisodeRule.DateField, _ bounds: [(EpisodeRule.Comparison, Timestamp)]) {
        add("(")
        for (index, (comparison, moment)) in bounds.enumerated() {
            if index > 0 { add(" AND ") }
            switch field {
            case .published: appendPublished(comparison, moment)
            case .added: add("(episode.seen > 0 AND episode.seen \(comparison.rawValue) ?)", moment.milliseconds)
            case .heard:
                add(
                    """
                    EXISTS (SELECT 1 FROM episode_state AS s WHERE s.episode = episode.id AND s.heard_at > 0 \
                    AND s.heard_at \(comparison.rawValue) ?)
                    """, moment.milliseconds)
            }
        }
        add(")")
    }

    /// The publication date is the upper part of the row ID, so that a comparison is a range of rows.
    private mutating func appendPublished(_ comparison: EpisodeRule.Comparison, _ moment: Timestamp) {
        let day = min(max(moment.milliseconds, 0), LibraryWriter.latestDate)
        let (first, next) = (day << LibraryWriter.rowIDBits, (day + 1) << LibraryWriter.rowIDBits)
        let known = Int64(1) << LibraryWriter.rowIDBits
        switch comparison {
        case .less: add("(episode.place >= ? AND episode.place < ?)", known, first)
        case .lessOrEqual: add("(episode.place >= ? AND episode.place < ?)", known, next)
        case .equal: add("(episode.place >= ? AND episode.place < ?)", max(first, known), next)
        case .greaterOrEqual: add("episode.place >= ?", max(first, known))
        case .greater: add("episode.place >= ?", max(next, known))
        }
    }
}

extension EpisodeRule.Condition {
    /// The condition as a set that is small and has an index of its own: such a list begins there, not with all
    /// episodes. Nil if there is none.
    var candidates: (sql: String, arguments: [any DatabaseValueConvertible])? {
        func records(_ condition: String) -> String {
            "episode.id IN (SELECT episode FROM record WHERE episode IS NOT NULL AND \(condition))"
        }
        switch self {
        case .mark(.started):
            return ("episode.id IN (SELECT episode FROM episode_state WHERE started = 1)", [])
        case .mark(.new): return ("episode.\(EpisodeFlags.isNew)", [])
        case .mark(let mark): return RuleSQL.records(of: mark).map { (records($0), []) }
        case .list(let name):
            let list = RuleSQL.records(ofList: name)
            return (records(list.sql), list.arguments)
        case .tag(let tag):
            return ("episode.podcast IN (SELECT podcast FROM podcast_tag WHERE tag = ?)", [PodcastTag.key(tag)])
        case .podcast(let name): return RuleSQL.isOf(podcast: name)
        case .all(let parts): return parts.lazy.compactMap(\.candidates).first
        case .any(let parts):
            let sets = parts.compactMap(\.candidates)
            guard sets.count == parts.count else { return nil }
            // Each set is read by its index.
            let union = sets.map { "SELECT place FROM episode WHERE \($0.sql)" }.joined(separator: " UNION ")
            return ("episode.place IN (\(union))", sets.flatMap(\.arguments))
        default: return nil
        }
    }
}
