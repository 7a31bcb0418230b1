import FoundationEssentials
import GRDB
import WireMessages

/// The texts of episodes, and the full text index over them.
///
/// FTS5 collects indexed texts in memory, but flushes them when rowids aren’t ascending, and before any other statement
/// of the transaction that could fail. So texts are stored at once, and indexed together at the end of the
/// transaction, at a third of the cost.
struct EpisodeTexts {
    private struct Change {
        /// The indexed text, from which FTS5 determines the words to remove, because the index keeps no copy.
        var old: EpisodeText?
        var new: EpisodeText?
    }

    private let db: Database
    private var changes: [Int64: Change] = [:]

    init(db: Database) {
        self.db = db
    }

    /// Stores the text of an episode that has none.
    mutating func insert(_ text: EpisodeText, at rowID: Int64) throws {
        try db.cachedStatement(
            sql: "INSERT INTO episode_text (place, podcast, title, notes, description) VALUES (?, ?, ?, ?, ?)"
        ).execute(arguments: [rowID, text.podcast, text.title, text.notes, text.description])
        changes[rowID, default: Change()].new = text
    }

    /// Deletes a text, if it exists.
    mutating func remove(at rowID: Int64) throws {
        guard let old = try text(at: rowID) else { return }
        try db.cachedStatement(sql: "DELETE FROM episode_text WHERE place = ?").execute(arguments: [rowID])
        if changes[rowID]?.new == nil {
            changes[rowID] = Change(old: old)
        } else {
            changes[rowID]?.new = nil
        }
    }

    /// Replaces a text if it differs.
    mutating func update(_ new: EpisodeText, at rowID: Int64) throws {
        guard try text(at: rowID) != new else { return }
        try remove(at: rowID)
        try insert(new, at: rowID)
    }

    /// Applies `change` to each part of a text.
    ///
    /// - Returns: whether the text has changed.
    mutating func change(at rowID: Int64, _ change: (String) -> String) throws -> Bool {
        guard let old = try text(at: rowID) else { return false }
        var new = old
        new.title = change(old.title)
        new.notes = change(old.notes)
        new.description = old.description.map(change)
        try update(new, at: rowID)
        return new != old
    }

    /// Applies the collected changes to the full-text index.
    mutating func index() throws {
        guard !changes.isEmpty else { return }
        let deletion = try db.cachedStatement(
            sql: """
                INSERT INTO episode_search (episode_search, rowid, title, notes, podcast) VALUES ('delete', ?, ?, ?, ?)
                """)
        let insertion = try db.cachedStatement(
            sql: "INSERT INTO episode_search (rowid, title, notes, podcast) VALUES (?, ?, ?, ?)")
        for (rowID, change) in changes.sorted(by: { $0.key < $1.key }) {
            if let old = change.old {
                try deletion.execute(arguments: [rowID, old.title, old.notes, old.podcast])
            }
            if let new = change.new {
                try insertion.execute(arguments: [rowID, new.title, new.notes, new.podcast])
            }
        }
        changes = [:]
    }

    private func text(at rowID: Int64) throws -> EpisodeText? {
        let statement = try db.cachedStatement(
            sql: "SELECT podcast, title, notes, description FROM episode_text WHERE place = ?")
        return try Row.fetchOne(statement, arguments: [rowID]).map(EpisodeText.init)
    }
}

/// The searchable texts of an episode.
struct EpisodeText: Hashable {
    var podcast: String
    var title: String
    var notes: String
    /// The description; nil if it is the same as `notes`.
    var description: String?

    init(_ episode: WireEpisode) {
        podcast = episode.podcastID
        title = SearchText.indexed(episode.title)
        notes = SearchText.indexed(SearchText.plain(html: episode.description_p))
        description = notes == episode.description_p ? nil : episode.description_p
    }

    init(_ row: Row) {
        podcast = row[0]
        title = row[1]
        notes = row[2]
        description = row[3]
    }
}
