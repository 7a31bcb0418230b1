import BusKit
import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The tables of the database, and the migrations of older files.
///
/// The header of every database and copy has the program (`application_id`) and the version (`user_version`), so that a
/// file of another program or of a newer version is recognised before it is changed.
enum Schema {
    /// `LSTP`: it distinguishes our files from those of other programs.
    static let applicationID: Int32 = 0x4C53_5450
    /// The version of the tables. A migration adds one.
    static let version: Int32 = 9
    /// The first version whose addresses have no users and passwords.
    static let versionWithoutPasswords: Int32 = 3

    /// Migrates a database of any earlier version to this one.
    ///
    /// Users and passwords in the addresses of an older database are written to `movedSecrets` before they are removed.
    static func migrator(movedSecrets: SecretsFile) -> DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.execute(sql: state)
            try db.execute(sql: library)
            try db.execute(sql: search)
            try db.execute(sql: counts)
            try db.execute(sql: "PRAGMA application_id = \(applicationID); PRAGMA user_version = 1")
        }
        migrator.registerMigration("2") { db in
            try db.execute(sql: documents)
            try moveChapters(db)
            try db.execute(sql: "PRAGMA user_version = 2")
        }
        migrator.registerMigration("3") { db in
            var cleaning = AddressCleaning(db)
            try cleaning.run()
            if !cleaning.secrets.isEmpty {
                // The file may already contain credentials of another copy.
                var secrets = try movedSecrets.load(at: SystemClocks.wall()).secrets
                secrets.merge(cleaning.secrets)
                try movedSecrets.write(secrets)
            }
            if cleaning.hasChanged { try db.setMeta(Meta.traces, "1") }
            try db.execute(sql: "PRAGMA user_version = 3")
        }
        migrator.registerMigration("4") { db in
            try db.execute(sql: recentCommits)
            try db.execute(sql: "PRAGMA user_version = 4")
        }
        migrator.registerMigration("5") { db in
            // The writer counts the episodes that a transaction adds; older versions counted them by this trigger.
            try db.execute(sql: "DROP TRIGGER episode_added")
            try db.execute(sql: "PRAGMA user_version = 5")
        }
        migrator.registerMigration("6") { db in
            try db.execute(sql: facts)
            try EpisodeFactColumns(db).fill()
            try db.execute(sql: factIndexes)
            try db.execute(sql: "PRAGMA user_version = 6")
        }
        migrator.registerMigration("7") { db in
            try db.execute(sql: startedColumn)
            try db.execute(sql: "PRAGMA user_version = 7")
        }
        migrator.registerMigration("8") { db in
            try db.execute(sql: countedLengths)
            try db.execute(sql: "PRAGMA user_version = 8")
        }
        migrator.registerMigration("9") { db in
            try db.execute(sql: "CREATE INDEX podcast_tag_by_podcast ON podcast_tag (podcast)")
            try db.execute(sql: "PRAGMA user_version = 9")
        }
        return migrator
    }

    /// The records of owners, and the tables that make repeating a commit harmless.
    private static let state = """
        CREATE TABLE meta (key TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE owner (
            name TEXT PRIMARY KEY NOT NULL, generation INTEGER NOT NULL, revision INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE record (
            owner TEXT NOT NULL, collection TEXT NOT NULL, key TEXT NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (owner, collection, key)
        ) WITHOUT ROWID;
        CREATE TABLE commit_id (
            owner TEXT NOT NULL, id BLOB NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (owner, id)
        ) WITHOUT ROWID;
        CREATE TABLE reply (
            owner TEXT NOT NULL, request BLOB NOT NULL, reply BLOB NOT NULL, at INTEGER NOT NULL,
            PRIMARY KEY (owner, request)
        ) WITHOUT ROWID;
        """

    /// Podcasts and episodes. An episode’s `place` is its publication date in ms, shifted by 20 bits, plus a number
    /// that makes it unique: every page is in rowid order, so that pages, searches and their cursors need no sorting.
    /// `title` is folded to lower case; the texts that are shown are in `value` and `description`.
    private static let library = """
        CREATE TABLE podcast (
            id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL, subscribed INTEGER NOT NULL, value BLOB NOT NULL
        );
        CREATE INDEX podcast_by_title ON podcast (title, id);
        CREATE TABLE podcast_count (
            podcast TEXT PRIMARY KEY NOT NULL, episodes INTEGER NOT NULL, played INTEGER NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE episode (
            place INTEGER PRIMARY KEY NOT NULL, id TEXT NOT NULL UNIQUE, podcast TEXT NOT NULL,
            played INTEGER NOT NULL, title TEXT NOT NULL, value BLOB NOT NULL
        );
        CREATE INDEX episode_by_podcast ON episode (podcast);
        CREATE INDEX episode_by_title ON episode (title);
        CREATE INDEX episode_unplayed ON episode (place) WHERE played = 0;
        CREATE INDEX episode_unplayed_by_podcast ON episode (podcast) WHERE played = 0;
        CREATE TABLE episode_text (
            place INTEGER PRIMARY KEY NOT NULL, podcast TEXT NOT NULL, title TEXT NOT NULL, notes TEXT NOT NULL,
            description TEXT
        );
        CREATE TABLE episode_state (
            episode TEXT PRIMARY KEY NOT NULL, played INTEGER NOT NULL, value BLOB NOT NULL
        ) WITHOUT ROWID;
        CREATE TABLE alias (
            podcast TEXT NOT NULL, alias TEXT NOT NULL, episode TEXT NOT NULL, PRIMARY KEY (podcast, alias)
        ) WITHOUT ROWID;
        CREATE INDEX alias_by_episode ON alias (episode);
        """

    /// The documents of owners, which are never loaded with their records; and the last use of an alias.
    private static let documents = """
        CREATE TABLE document (
            owner TEXT NOT NULL, collection TEXT NOT NULL, key TEXT NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL,
            PRIMARY KEY (owner, collection, key)
        ) WITHOUT ROWID;
        ALTER TABLE alias ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
        """

    /// The IDs of an owner’s newest commits, 16 bytes each, beside its revision, which every commit writes. They
    /// move to `commit_id` in batches, so that most commits don’t write that table.
    private static let recentCommits = "ALTER TABLE owner ADD COLUMN recent BLOB NOT NULL DEFAULT x''"

    /// The columns by which episodes are filtered and ordered, and the tables of tags, addresses and play sessions.
    ///
    /// In `episode`, `seconds` is the measured length, or else the announced one; `seen` is when a refresh first found
    /// the episode; `flags` contains `EpisodeFlags`. In `record`, `episode` is the episode that a record is about.
    private static let facts = """
        ALTER TABLE episode_state ADD COLUMN position REAL NOT NULL DEFAULT 0;
        ALTER TABLE episode_state ADD COLUMN heard_at INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE episode_state ADD COLUMN completed_at INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE episode ADD COLUMN seconds INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE episode ADD COLUMN seen INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE episode ADD COLUMN season INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE episode ADD COLUMN flags INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE record ADD COLUMN episode TEXT;
        ALTER TABLE record ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
        DROP INDEX episode_by_title;
        CREATE TABLE podcast_tag (tag TEXT NOT NULL, podcast TEXT NOT NULL, PRIMARY KEY (tag, podcast)) WITHOUT ROWID;
        CREATE TABLE podcast_address (address TEXT PRIMARY KEY NOT NULL, podcast TEXT NOT NULL) WITHOUT ROWID;
        CREATE TABLE play_session (
            id TEXT PRIMARY KEY NOT NULL, episode TEXT NOT NULL, podcast TEXT NOT NULL, started INTEGER NOT NULL,
            ended INTEGER NOT NULL, began REAL NOT NULL, left_at REAL NOT NULL, heard REAL NOT NULL, wall REAL NOT NULL,
            silence REAL NOT NULL, device TEXT NOT NULL DEFAULT ''
        ) WITHOUT ROWID;
        """

    /// The indexes over the columns of `facts`, created after these are filled. Every order of a list has one.
    private static let factIndexes = """
        CREATE INDEX state_heard ON episode_state (heard_at, episode) WHERE heard_at > 0;
        CREATE INDEX state_started ON episode_state (heard_at) WHERE position > 0 AND played = 0;
        CREATE INDEX state_completed ON episode_state (completed_at) WHERE completed_at > 0;
        CREATE INDEX episode_by_title ON episode (title, place);
        CREATE INDEX episode_by_length ON episode (seconds, place);
        CREATE INDEX episode_by_seen ON episode (seen, place);
        CREATE INDEX episode_lengths ON episode (podcast, played, seconds);
        CREATE INDEX episode_new ON episode (place) WHERE flags & 1;
        CREATE INDEX record_by_episode ON record (episode, owner, collection, state) WHERE episode IS NOT NULL;
        CREATE INDEX podcast_address_by_podcast ON podcast_address (podcast);
        CREATE INDEX session_by_start ON play_session (started);
        CREATE INDEX session_by_episode ON play_session (episode, started);
        CREATE INDEX session_by_podcast ON play_session (podcast, started);
        """

    /// Whether an episode was begun and isn’t played. A position is saved every few seconds: no index depends on it, so
    /// that only its own page is written.
    private static let startedColumn = """
        ALTER TABLE episode_state ADD COLUMN started INTEGER NOT NULL DEFAULT 0;
        UPDATE episode_state SET started = 1 WHERE position > 0 AND played = 0;
        DROP INDEX state_started;
        CREATE INDEX state_started ON episode_state (heard_at) WHERE started = 1;
        """

    /// The lengths of a podcast’s episodes, so that the totals of a list aren’t summed over all episodes.
    private static let countedLengths = """
        ALTER TABLE podcast_count ADD COLUMN seconds INTEGER NOT NULL DEFAULT 0;
        ALTER TABLE podcast_count ADD COLUMN played_seconds INTEGER NOT NULL DEFAULT 0;
        UPDATE podcast_count SET (seconds, played_seconds) = (
            SELECT coalesce(sum(seconds), 0), coalesce(sum(seconds * played), 0) FROM episode
            WHERE episode.podcast = podcast_count.podcast);
        DROP INDEX episode_lengths;
        DROP TRIGGER episode_removed;
        CREATE TRIGGER episode_removed AFTER DELETE ON episode BEGIN
            UPDATE podcast_count SET episodes = episodes - 1, played = played - OLD.played,
                seconds = seconds - OLD.seconds, played_seconds = played_seconds - OLD.seconds * OLD.played
                WHERE podcast = OLD.podcast;
        END;
        DROP TRIGGER episode_played;
        CREATE TRIGGER episode_changed AFTER UPDATE OF played, seconds ON episode
            WHEN NEW.played <> OLD.played OR NEW.seconds <> OLD.seconds
        BEGIN
            UPDATE podcast_count SET played = played + NEW.played - OLD.played,
                seconds = seconds + NEW.seconds - OLD.seconds,
                played_seconds = played_seconds + NEW.seconds * NEW.played - OLD.seconds * OLD.played
                WHERE podcast = NEW.podcast;
        END;
        """

    /// Moves fetched chapters, which older versions stored as records of `feeds`, to documents.
    private static func moveChapters(_ db: Database) throws {
        let chapters = "owner = 'feeds' AND collection GLOB 'chapters/*'"
        for row in try Row.fetchAll(db, sql: "SELECT collection, key, value FROM record WHERE \(chapters)") {
            let value: Data = row[2]
            try db.execute(
                sql: "INSERT INTO document (owner, collection, key, at, value) VALUES ('feeds', ?, ?, ?, ?)",
                arguments: [
                    row[0] as String, row[1] as String, try WireChaptersRecord(serializedBytes: value).fetchedAt, value,
                ])
        }
        try db.execute(sql: "DELETE FROM record WHERE \(chapters)")
    }

    /// The full-text search index over `episode_text`, which keeps the texts.
    static let search = """
        CREATE VIRTUAL TABLE episode_search USING fts5 (
            title, notes, podcast, content = 'episode_text', content_rowid = 'place', prefix = '3',
            tokenize = 'unicode61 remove_diacritics 2'
        );
        """

    /// The counts are stored, because a list of a thousand podcasts shows the unplayed episodes of each.
    /// `LibraryWriter` counts added episodes.
    private static let counts = """
        CREATE TRIGGER podcast_added AFTER INSERT ON podcast BEGIN
            INSERT INTO podcast_count (podcast, episodes, played) VALUES (NEW.id, 0, 0);
        END;
        CREATE TRIGGER podcast_removed AFTER DELETE ON podcast BEGIN
            DELETE FROM podcast_count WHERE podcast = OLD.id;
        END;
        CREATE TRIGGER episode_added AFTER INSERT ON episode BEGIN
            UPDATE podcast_count SET episodes = episodes + 1, played = played + NEW.played
                WHERE podcast = NEW.podcast;
        END;
        CREATE TRIGGER episode_removed AFTER DELETE ON episode BEGIN
            UPDATE podcast_count SET episodes = episodes - 1, played = played - OLD.played
                WHERE podcast = OLD.podcast;
        END;
        CREATE TRIGGER episode_played AFTER UPDATE OF played ON episode WHEN NEW.played <> OLD.played BEGIN
            UPDATE podcast_count SET played = played + NEW.played - OLD.played WHERE podcast = NEW.podcast;
        END;
        """

    /// The keys of `meta`.
    enum Meta {
        /// The identity of the database; it changes when a copy is restored.
        static let incarnation = "incarnation"
        /// The time of the state in a copy, in ms since 1970.
        static let reaches = "reaches"
        /// A value that is written to test whether the disk accepts data.
        static let probe = "probe"
        /// The time of the last check of the whole database that found no damage, in ms since 1970.
        static let checked = "checked"
        /// The mark that deleted rows may still be readable in the file.
        static let traces = "traces"
    }
}

extension Database {
    func meta(_ key: String) throws -> String? {
        try String.fetchOne(cachedStatement(sql: "SELECT value FROM meta WHERE key = ?"), arguments: [key])
    }

    func setMeta(_ key: String, _ value: String) throws {
        try cachedStatement(sql: "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)")
            .execute(arguments: [key, value])
    }
}
