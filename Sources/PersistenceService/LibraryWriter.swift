import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The number and the length of a podcast’s episodes.
private struct PodcastCount {
    private(set) var episodes = 0
    private(set) var played = 0
    private(set) var seconds: Int64 = 0
    private(set) var playedSeconds: Int64 = 0

    mutating func add(_ length: Int64, isPlayed: Bool) {
        episodes += 1
        seconds += length
        guard isPlayed else { return }
        played += 1
        playedSeconds += length
    }
}

/// Writes podcasts, episodes, their states and aliases, and updates the full-text index with them.
///
/// It serves one transaction; `finish` must be called before its end.
struct LibraryWriter {
    let db: Database
    let now: Timestamp
    private var texts: EpisodeTexts
    /// The added episodes that the podcasts’ counts don’t include yet.
    private var added: [String: PodcastCount] = [:]
    /// Podcasts that are known to exist.
    private var podcasts: Set<String> = []
    /// An upper bound for the aliases of each episode to which this transaction has added some.
    private var aliasCounts: [String: Int] = [:]

    /// The maximum number of aliases of an episode; the newest are kept.
    static let aliasLimit = 8
    /// The bits of the `place` column below the publication date, for episodes of the same millisecond.
    static let rowIDBits = 20
    /// The latest publication date that a row ID can contain, in ms since 1970.
    static let latestDate = Int64(1) << 42

    init(db: Database, now: Timestamp) {
        self.db = db
        self.now = now
        texts = EpisodeTexts(db: db)
    }

    /// Updates the search index and the counts.
    mutating func finish() throws {
        try texts.index()
        let statement = try db.cachedStatement(
            sql: """
                UPDATE podcast_count SET episodes = episodes + ?, played = played + ?, seconds = seconds + ?,
                    played_seconds = played_seconds + ? WHERE podcast = ?
                """)
        for (podcast, count) in added {
            try statement.execute(
                arguments: [count.episodes, count.played, count.seconds, count.playedSeconds, podcast])
        }
        added = [:]
    }

    /// Stores a podcast; returns the one that it replaces, or nil if there was none or it can’t be read.
    @discardableResult func put(_ podcast: WirePodcast) throws -> WirePodcast? {
        guard PodcastID(podcast.id) != nil else {
            throw Failure(.invalidArgument, "“\(podcast.id)” isn’t a valid podcast ID.")
        }
        var stored = podcast
        stored.unplayedCount = 0
        let old = try Data.fetchOne(
            db.cachedStatement(sql: "SELECT value FROM podcast WHERE id = ?"), arguments: [podcast.id])
        try db.cachedStatement(
            sql: """
                INSERT INTO podcast (id, title, subscribed, value) VALUES (?, ?, ?, ?)
                ON CONFLICT (id) DO UPDATE SET
                    title = excluded.title, subscribed = excluded.subscribed, value = excluded.value
                """
        ).execute(arguments: [podcast.id, Self.folded(podcast.title), podcast.subscribed, stored.wireData])
        try PodcastAddresses(db).put(podcast)
        let replaced = old.flatMap { try? WirePodcast(serializedBytes: $0) }
        // The table is read as a whole, since it has no index by podcast: not at every refresh, and not for a new
        // podcast without tags.
        if old == nil ? !podcast.tags.isEmpty : replaced?.tags != podcast.tags { try PodcastTags(db).put(podcast) }
        return replaced
    }

    /// Deletes a podcast, if it exists, with its episodes, their states and aliases. Play sessions stay, so that the
    /// statistics don’t change.
    mutating func deletePodcast(_ id: String) throws {
        try finish()
        podcasts.remove(id)
        try db.execute(
            sql: """
                INSERT INTO episode_search (episode_search, rowid, title, notes, podcast)
                SELECT 'delete', place, title, notes, podcast FROM episode_text
                WHERE place IN (SELECT place FROM episode WHERE podcast = :id);
                DELETE FROM episode_text WHERE place IN (SELECT place FROM episode WHERE podcast = :id);
                DELETE FROM episode_state WHERE episode IN (SELECT id FROM episode WHERE podcast = :id);
                DELETE FROM alias WHERE podcast = :id;
                DELETE FROM podcast_address WHERE podcast = :id;
                DELETE FROM podcast_tag WHERE podcast = :id;
                DELETE FROM episode WHERE podcast = :id;
                DELETE FROM podcast WHERE id = :id;
                """, arguments: ["id": id])
    }

    /// Stores an episode of an existing podcast. The publication date determines its order.
    ///
    /// - Throws: `invalidArgument` for an episode that belongs to another podcast: IDs are derived from feeds, so a
    ///   hostile feed can produce an existing ID.
    mutating func put(_ episode: WireEpisode) throws {
        guard EpisodeID(episode.id) != nil else {
            throw Failure(.invalidArgument, "“\(episode.id)” isn’t a valid episode ID.")
        }
        let known = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT place, podcast, flags FROM episode WHERE id = ?"), arguments: [episode.id])
        guard let known else { return try insert(episode) }
        let oldRowID: Int64 = known[0]
        let podcast: String = known[1]
        guard podcast == episode.podcastID else {
            throw Failure(
                .invalidArgument,
                "The episode \(episode.id) belongs to the podcast \(podcast); \(episode.podcastID) can’t change it.")
        }
        if oldRowID >> Self.rowIDBits != Self.date(of: episode) {
            try texts.remove(at: oldRowID)
            try db.cachedStatement(sql: "DELETE FROM episode WHERE place = ?").execute(arguments: [oldRowID])
            return try insert(episode, flags: EpisodeFlags(rawValue: known[2]))
        }
        try db.cachedStatement(
            sql: """
                UPDATE episode SET title = ?, value = ?, seconds = ?, seen = ?, season = ?, flags = flags & ~? | ?
                WHERE place = ?
                """
        ).execute(
            arguments: [
                Self.folded(episode.title), Self.stored(episode), try playback(of: episode).seconds,
                episode.firstSeen, Int(episode.season), EpisodeFlags.ofMessage.rawValue, EpisodeFlags(episode).rawValue,
                oldRowID,
            ])
        try texts.update(EpisodeText(episode), at: oldRowID)
    }

    /// Deletes an episode, if it exists, with its state and aliases.
    mutating func deleteEpisode(_ id: String) throws {
        let rowID = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT place FROM episode WHERE id = ?"), arguments: [id])
        guard let rowID else { return }
        try texts.remove(at: rowID)
        try db.cachedStatement(sql: "DELETE FROM episode WHERE place = ?").execute(arguments: [rowID])
        try db.cachedStatement(sql: "DELETE FROM episode_state WHERE episode = ?").execute(arguments: [id])
        try db.cachedStatement(sql: "DELETE FROM alias WHERE episode = ?").execute(arguments: [id])
        aliasCounts[id] = 0
    }

    /// Stores the state of an episode, which need not be in the library.
    func put(_ state: WireEpisodeState) throws {
        guard EpisodeID(state.episode) != nil else {
            throw Failure(.invalidArgument, "“\(state.episode)” isn’t a valid episode ID.")
        }
        guard PlaybackPosition(seconds: state.position) != nil, PlaybackPosition(seconds: state.duration) != nil else {
            throw Failure(.invalidArgument, "The state of \(state.episode) has an invalid position.")
        }
        if try putPosition(state) { return }
        try db.cachedStatement(
            sql: """
                INSERT INTO episode_state (episode, played, value, position, heard_at, completed_at, started)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (episode) DO UPDATE SET
                    played = excluded.played, value = excluded.value, position = excluded.position,
                    heard_at = excluded.heard_at, completed_at = excluded.completed_at, started = excluded.started
                """
        ).execute(
            arguments: [
                state.episode, state.played, state.wireData, state.position, state.heardAt, state.completedAt,
                state.isStarted,
            ])
        try db.cachedStatement(sql: "UPDATE episode SET played = ?1 WHERE id = ?2 AND played <> ?1")
            .execute(arguments: [state.played, state.episode])
        guard state.duration > 0 else { return }
        try db.cachedStatement(sql: "UPDATE episode SET seconds = ?1 WHERE id = ?2 AND seconds <> ?1")
            .execute(arguments: [EpisodeFactColumns.seconds(state.duration), state.episode])
    }

    /// The maximum age, in ms, of the time in the index of an episode that is being played back.
    private static let heardPrecision: Int64 = 300_000

    /// Stores a state that differs from the stored one only in its position and in the time of the last playback, as
    /// every few seconds of playback, without writing the pages of indexes; returns whether it does.
    ///
    /// The order by the last playback stays exact, because the time of only the newest episode isn’t.
    private func putPosition(_ state: WireEpisodeState) throws -> Bool {
        try db.cachedStatement(
            sql: """
                UPDATE episode_state SET value = ?2, position = ?3
                WHERE episode = ?1 AND played = ?4 AND completed_at = ?5 AND started = ?6
                    AND heard_at BETWEEN ?7 - \(Self.heardPrecision) AND ?7
                    AND heard_at = (SELECT max(heard_at) FROM episode_state INDEXED BY state_heard WHERE heard_at > 0)
                    AND NOT EXISTS (SELECT 1 FROM episode WHERE id = ?1 AND seconds <> ?8 AND ?8 > 0)
                """
        ).execute(
            arguments: [
                state.episode, state.wireData, state.position, state.played, state.completedAt, state.isStarted,
                state.heardAt, EpisodeFactColumns.seconds(state.duration),
            ])
        return db.changesCount > 0
    }

    /// Changes flags of episodes; unknown episodes are ignored. The flags that messages determine don’t change.
    func set(_ change: WireSetFlags) throws {
        let own = UInt32(EpisodeFlags.ofMessage.rawValue)
        let (set, clear) = (Int(change.set & ~own), Int(change.clear & ~own))
        let update = "UPDATE episode SET flags = flags & ~?1 | ?2 WHERE"
        if change.all {
            // An index contains the episodes with the first flag, which is usually the one to clear.
            let filter = clear == EpisodeFlags.new.rawValue && set == 0 ? EpisodeFlags.isNew : "true"
            try db.cachedStatement(sql: "\(update) \(filter)").execute(arguments: [clear, set])
        }
        if change.unlisted {
            try db.cachedStatement(sql: "\(update) \(EpisodeFlags.isNew) AND NOT \(RuleSQL.isInInbox)")
                .execute(arguments: [clear, set])
        }
        let statement = try db.cachedStatement(sql: "\(update) id = ?3")
        for id in change.episodes { try statement.execute(arguments: [clear, set, id]) }
    }

    /// Stores an alias, and deletes the oldest beyond the limit: some feeds have new GUIDs at each fetch.
    mutating func put(_ alias: WireEpisodeAlias) throws {
        guard PodcastID(alias.podcast) != nil, EpisodeID(alias.episode) != nil, !alias.alias.isEmpty else {
            throw Failure(.invalidArgument, "An alias needs a podcast, a name and an episode.")
        }
        try db.cachedStatement(
            sql: """
                INSERT INTO alias (podcast, alias, episode, at) VALUES (?, ?, ?, ?)
                ON CONFLICT (podcast, alias) DO UPDATE SET episode = excluded.episode, at = excluded.at
                """
        ).execute(arguments: [alias.podcast, alias.alias, alias.episode, now.milliseconds])
        // An existing alias is counted twice; the count is corrected when it reaches the limit.
        if let known = aliasCounts[alias.episode], known < Self.aliasLimit {
            aliasCounts[alias.episode] = known + 1
            return
        }
        let count = try Int.fetchOne(
            db.cachedStatement(sql: "SELECT count(*) FROM alias WHERE episode = ?"), arguments: [alias.episode])
        aliasCounts[alias.episode] = count ?? 0
        guard let count, count > Self.aliasLimit else { return }
        try db.cachedStatement(
            sql: """
                DELETE FROM alias WHERE episode = ?1 AND (podcast, alias) NOT IN (
                    SELECT podcast, alias FROM alias WHERE episode = ?1 ORDER BY at DESC, alias LIMIT \(Self.aliasLimit)
                )
                """
        ).execute(arguments: [alias.episode])
    }

    /// Returns the form in which titles are compared and ordered.
    static func folded(_ title: String) -> String { title.lowercased() }

    /// The publication date in ms, within the range of the `place` column; unknown dates are ordered last.
    private static func date(of episode: WireEpisode) -> Int64 {
        min(max(episode.published, 0), latestDate)
    }

    /// An episode without the parts that are stored elsewhere.
    private static func stored(_ episode: WireEpisode) -> Data {
        var stored = episode
        stored.clearState()
        stored.podcastTitle = ""
        stored.flags = 0
        stored.description_p = ""
        return stored.wireData
    }

    /// The played mark of an episode, and its length in whole seconds: the player’s measurement, or else the announced
    /// one; 0 if unknown.
    private func playback(of episode: WireEpisode) throws -> (isPlayed: Bool, seconds: Int64) {
        let state = try Row.fetchOne(
            db.cachedStatement(sql: "SELECT played, value FROM episode_state WHERE episode = ?"),
            arguments: [episode.id])
        guard let state else { return (false, EpisodeFactColumns.seconds(episode.duration)) }
        // A damaged state must not prevent refreshes of the podcast.
        let measured = (try? WireEpisodeState(serializedBytes: state[1] as Data).duration) ?? 0
        return (state[0], EpisodeFactColumns.seconds(measured > 0 ? measured : episode.duration))
    }

    /// - Parameter flags: the flags of the row that this one replaces.
    private mutating func insert(_ episode: WireEpisode, flags: EpisodeFlags = []) throws {
        guard try hasPodcast(episode.podcastID) else {
            throw Failure(.invalidArgument, "There is no podcast \(episode.podcastID) for the episode \(episode.id).")
        }
        let first = Self.date(of: episode) << Self.rowIDBits
        let last = first + (1 << Self.rowIDBits) - 1
        let taken = try Int64.fetchOne(
            db.cachedStatement(sql: "SELECT max(place) FROM episode WHERE place BETWEEN ? AND ?"),
            arguments: [first, last])
        let rowID = taken.map { $0 + 1 } ?? first
        guard rowID <= last else { throw Failure(.limitReached, "Too many episodes have the same publication date.") }
        let (played, seconds) = try playback(of: episode)
        try db.cachedStatement(
            sql: """
                INSERT INTO episode (place, id, podcast, played, title, value, seconds, seen, season, flags)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
        ).execute(
            arguments: [
                rowID, episode.id, episode.podcastID, played, Self.folded(episode.title), Self.stored(episode),
                seconds, episode.firstSeen, Int(episode.season),
                (flags.subtracting(.ofMessage).union(EpisodeFlags(episode))).rawValue,
            ])
        added[episode.podcastID, default: PodcastCount()].add(seconds, isPlayed: played)
        try texts.insert(EpisodeText(episode), at: rowID)
    }

    private mutating func hasPodcast(_ id: String) throws -> Bool {
        if podcasts.contains(id) { return true }
        let found = try Int.fetchOne(
            db.cachedStatement(sql: "SELECT 1 FROM podcast WHERE id = ?"), arguments: [id])
        if found != nil { podcasts.insert(id) }
        return found != nil
    }
}

extension WirePodcast {
    /// Whether both have the same ID, URL, titles, tags and subscription; the next refresh restores the other fields.
    func isSameInSnapshot(as other: WirePodcast) -> Bool {
        (id, url, title, feedTitle, tags, subscribed)
            == (other.id, other.url, other.title, other.feedTitle, other.tags, other.subscribed)
    }
}
