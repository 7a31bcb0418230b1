import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The bits of `episode.flags`.
struct EpisodeFlags: OptionSet {
    let rawValue: Int

    /// A refresh of a subscribed podcast found the episode, and the inbox wasn’t cleared since then.
    static let new = EpisodeFlags(rawValue: Int(WireEpisode.newFlag))
    /// The feed no longer contains the episode.
    static let gone = EpisodeFlags(rawValue: 2)
    static let chapters = EpisodeFlags(rawValue: 4)
    static let transcript = EpisodeFlags(rawValue: 8)
    static let explicit = EpisodeFlags(rawValue: 16)
    static let video = EpisodeFlags(rawValue: 32)

    /// The condition of new episodes, in the form to which the index `episode_new` applies.
    static let isNew = "flags & \(new.rawValue)"

    /// The flags that an episode’s message determines.
    static let ofMessage: EpisodeFlags = [.chapters, .transcript, .explicit, .video]

    init(rawValue: Int) { self.rawValue = rawValue }

    init(_ episode: WireEpisode) {
        self = []
        if !episode.chapters.isEmpty || !episode.chaptersURL.isEmpty { insert(.chapters) }
        if !episode.transcriptURL.isEmpty { insert(.transcript) }
        if episode.explicit { insert(.explicit) }
        if episode.enclosureType.lowercased().hasPrefix("video/") { insert(.video) }
    }
}

extension WireEpisodeState {
    /// Whether the episode was begun and isn’t played.
    var isStarted: Bool { position > 0 && !played }
    /// When the episode was last played back; 0 if never. A mark by hand of an episode that the player never opened, so
    /// that its length wasn’t measured, isn’t a playback.
    var heardAt: Int64 { position > 0 ? updatedAt : duration > 0 ? completedAt : 0 }
}

/// Fills the columns by which episodes are filtered and ordered from the stored messages of an older database.
struct EpisodeFactColumns {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    func fill() throws {
        var measured: [String: Double] = [:]
        try fillStates(&measured)
        try fillEpisodes(measured)
        try fillRecords()
        for row in try Row.fetchAll(db, sql: "SELECT value FROM podcast") {
            // A podcast that can’t be read is reported by the feeds service.
            guard let podcast = try? WirePodcast(serializedBytes: row[0] as Data) else { continue }
            try PodcastAddresses(db).put(podcast)
        }
    }

    private func fillStates(_ measured: inout [String: Double]) throws {
        let update = try db.makeStatement(
            sql: "UPDATE episode_state SET position = ?, heard_at = ?, completed_at = ? WHERE episode = ?")
        for id in try String.fetchAll(db, sql: "SELECT episode FROM episode_state") {
            let value = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT value FROM episode_state WHERE episode = ?"), arguments: [id])
            guard let value, let state = try? WireEpisodeState(serializedBytes: value) else { continue }
            try update.execute(arguments: [state.position, state.heardAt, state.completedAt, id])
            if state.duration > 0 { measured[id] = state.duration }
        }
    }

    private func fillEpisodes(_ measured: [String: Double]) throws {
        let update = try db.makeStatement(
            sql: "UPDATE episode SET seconds = ?, seen = ?, season = ?, flags = ? WHERE place = ?")
        for rowID in try Int64.fetchAll(db, sql: "SELECT place FROM episode") {
            let value = try Data.fetchOne(
                db.cachedStatement(sql: "SELECT value FROM episode WHERE place = ?"), arguments: [rowID])
            guard let value, let episode = try? WireEpisode(serializedBytes: value) else { continue }
            try update.execute(
                arguments: [
                    Self.seconds(measured[episode.id] ?? episode.duration), episode.firstSeen, Int(episode.season),
                    EpisodeFlags(episode).rawValue, rowID,
                ])
        }
    }

    /// Sets the episode of each record that is about one. Owners of this version name it in their changes.
    private func fillRecords() throws {
        func set(_ condition: String, _ subject: (String, Data) -> (episode: String, state: Int)?) throws {
            let value = try db.makeStatement(
                sql: "SELECT value FROM record WHERE owner = ? AND collection = ? AND key = ?")
            for row in try Row.fetchAll(db, sql: "SELECT owner, collection, key FROM record WHERE \(condition)") {
                let name: StatementArguments = [row[0] as String, row[1] as String, row[2] as String]
                guard let value = try Data.fetchOne(value, arguments: name), let subject = subject(row[2], value),
                    !subject.episode.isEmpty
                else { continue }
                try db.cachedStatement(
                    sql: """
                        UPDATE record SET episode = ?, state = ? WHERE owner = ? AND collection = ? AND key = ?
                        """
                ).execute(
                    arguments: [
                        subject.episode, subject.state, row[0] as String, row[1] as String, row[2] as String,
                    ])
            }
        }
        try set("owner = 'queue' AND collection GLOB 'entry/*'") { _, value in
            (try? WireQueueEntryRecord(serializedBytes: value)).map { ($0.entry.episode.id, 0) }
        }
        try set("owner = 'downloads' AND collection = 'download'") { key, value in
            (try? WireDownload(serializedBytes: value)).map { (key, $0.state.rawValue) }
        }
        try set("owner = 'playback' AND collection = 'bookmark'") { _, value in
            (try? WireBookmark(serializedBytes: value)).map { ($0.episode, 0) }
        }
    }

    /// A length in whole seconds, at least 1 if it is known.
    static func seconds(_ length: Double) -> Int64 {
        length.isFinite && length > 0 ? Int64(max(1, min(length, 1e9)).rounded()) : 0
    }
}

/// The present and earlier addresses of the podcasts’ feeds, by which a podcast is found.
struct PodcastAddresses {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Adds the addresses of a podcast, and removes those that it no longer has. An address belongs to the podcast that
    /// had it first.
    func put(_ podcast: WirePodcast) throws {
        let addresses = podcast.addressIdentities
        let stored = try Set(
            String.fetchAll(
                db.cachedStatement(sql: "SELECT address FROM podcast_address WHERE podcast = ?"),
                arguments: [podcast.id]))
        for address in stored.subtracting(addresses) {
            try db.cachedStatement(sql: "DELETE FROM podcast_address WHERE address = ?").execute(arguments: [address])
        }
        for address in Set(addresses).subtracting(stored) {
            try db.cachedStatement(sql: "INSERT OR IGNORE INTO podcast_address (address, podcast) VALUES (?, ?)")
                .execute(arguments: [address, podcast.id])
        }
    }
}

/// The tags of podcasts, by which rules select episodes.
struct PodcastTags {
    private let db: Database

    init(_ db: Database) {
        self.db = db
    }

    /// Stores exactly the tags of a podcast, in the form for comparison.
    func put(_ podcast: WirePodcast) throws {
        let tags = Set(podcast.tags.map(PodcastTag.key))
        let stored = try Set(
            String.fetchAll(
                db.cachedStatement(sql: "SELECT tag FROM podcast_tag WHERE podcast = ?"), arguments: [podcast.id]))
        for tag in stored.subtracting(tags) {
            try db.cachedStatement(sql: "DELETE FROM podcast_tag WHERE tag = ? AND podcast = ?")
                .execute(arguments: [tag, podcast.id])
        }
        for tag in tags.subtracting(stored) {
            try db.cachedStatement(sql: "INSERT INTO podcast_tag (tag, podcast) VALUES (?, ?)")
                .execute(arguments: [tag, podcast.id])
        }
    }
}
