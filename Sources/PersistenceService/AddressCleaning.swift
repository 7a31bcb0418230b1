import BusKit
import FoundationEssentials
import GRDB
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Removes users and passwords from the addresses that older versions stored; the feeds service keeps the credentials
/// in a separate file. Podcasts and episodes keep their IDs.
struct AddressCleaning {
    let db: Database
    /// The credentials of podcasts that still exist.
    private(set) var secrets = FeedSecrets()
    private(set) var hasChanged = false
    private var changesTexts = false

    init(_ db: Database) {
        self.db = db
    }

    /// The number of rows that are read at once.
    private static let rangeLength = 200

    /// Cleans every table. Replaced bytes are overwritten with zeros, so that they don’t remain in free pages.
    mutating func run() throws {
        let overwrites = try Int.fetchOne(db, sql: "PRAGMA secure_delete") ?? 0
        try setOverwriting(1)
        try cleanPodcasts()
        try cleanEpisodes()
        try cleanTexts()
        try cleanAliases()
        for table in ["record", "document"] { try cleanValues(table) }
        try deleteReplies()
        // The index keeps the words of a deleted text until their segment is merged.
        if changesTexts { try db.execute(sql: "INSERT INTO episode_search (episode_search) VALUES ('optimize')") }
        try setOverwriting(overwrites)
    }

    /// Sets how SQLite treats the bytes of deleted rows: 0 leaves them, 1 and 2 overwrite all or most.
    private func setOverwriting(_ mode: Int) throws {
        _ = try Int.fetchOne(db, sql: "PRAGMA secure_delete = \(["OFF", "ON", "FAST"][min(max(mode, 0), 2)])")
    }

    /// Calls `body` with the rows that a query selects, in batches of at most `rangeLength`. The query’s arguments are
    /// the key after which it begins and the number of rows; its first column is the key, in ascending order.
    private static func forEachRange(_ db: Database, _ sql: String, _ body: ([Row]) throws -> Void) throws {
        var last = Int64.min
        while true {
            let rows = try Row.fetchAll(db.cachedStatement(sql: sql), arguments: [last, rangeLength])
            try body(rows)
            guard rows.count == rangeLength, let next = rows.last else { return }
            last = next[0]
        }
    }

    private mutating func keepCredentials(in address: String, of podcast: String, isGiven: Bool) {
        guard let address = WebAddress(address), let origin = address.origin, let found = address.webCredentials else {
            return
        }
        secrets.set(found, for: podcast, at: origin, isGiven: isGiven)
    }

    private mutating func cleanPodcasts() throws {
        for row in try Row.fetchAll(db, sql: "SELECT id, value FROM podcast") {
            let (id, value): (String, Data) = (row[0], row[1])
            guard let cleaned = MessageCleaning.cleaned([UInt8](value)) else { continue }
            let old = try WirePodcast(serializedBytes: value)
            // The current address is set last, so that it takes precedence.
            for address in old.previousUrls + [old.url] { keepCredentials(in: address, of: id, isGiven: true) }
            var podcast = try WirePodcast(serializedBytes: cleaned)
            podcast.previousUrls = podcast.previousUrls.filter { $0 != podcast.url }
            try db.execute(
                sql: "UPDATE podcast SET title = ?, value = ? WHERE id = ?",
                arguments: [LibraryWriter.folded(podcast.title), podcast.wireData, id])
            hasChanged = true
        }
    }

    private mutating func cleanEpisodes() throws {
        let update = try db.makeStatement(sql: "UPDATE episode SET title = ?, value = ? WHERE place = ?")
        let sql = "SELECT place, podcast, value FROM episode WHERE place > ? ORDER BY place LIMIT ?"
        try Self.forEachRange(db, sql) { rows in
            for row in rows {
                let value: Data = row[2]
                guard let bytes = MessageCleaning.cleaned([UInt8](value)) else { continue }
                let old = try WireEpisode(serializedBytes: value)
                for address in [old.chaptersURL, old.enclosureURL] {
                    keepCredentials(in: address, of: row[1], isGiven: false)
                }
                let episode = try WireEpisode(serializedBytes: bytes)
                try update.execute(
                    arguments: [LibraryWriter.folded(episode.title), episode.wireData, row[0] as Int64])
                hasChanged = true
            }
        }
    }

    private mutating func cleanTexts() throws {
        var texts = EpisodeTexts(db: db)
        let isSuspicious = ["title", "notes", "description"].map { "instr(\($0), '@') AND instr(\($0), '://')" }
        let sql = """
            SELECT place FROM episode_text WHERE place > ? AND (\(isSuspicious.joined(separator: " OR ")))
            ORDER BY place LIMIT ?
            """
        try Self.forEachRange(db, sql) { rows in
            for row in rows where try texts.change(at: row[0], { WebAddress.withoutCredentials(in: $0) }) {
                hasChanged = true
                changesTexts = true
            }
            try texts.index()
        }
    }

    private mutating func cleanAliases() throws {
        for row in try Row.fetchAll(db, sql: "SELECT podcast, alias, episode, at FROM alias WHERE alias LIKE '%://%@%'")
        {
            let (podcast, alias): (String, String) = (row[0], row[1])
            let cleaned = WebAddress.withoutCredentials(in: alias)
            guard cleaned != alias else { continue }
            try db.execute(
                sql: "INSERT OR IGNORE INTO alias (podcast, alias, episode, at) VALUES (?, ?, ?, ?)",
                arguments: [podcast, cleaned, row[2] as String, row[3] as Int64])
            try db.execute(sql: "DELETE FROM alias WHERE podcast = ? AND alias = ?", arguments: [podcast, alias])
            hasChanged = true
        }
    }

    private mutating func cleanValues(_ table: String) throws {
        try change(
            "SELECT value, owner, collection, key FROM \(table) WHERE owner <> 'feeds' OR collection <> 'seen'",
            "UPDATE \(table) SET value = ? WHERE owner = ? AND collection = ? AND key = ?"
        ) { row, cleaned in [Data(cleaned), row[1] as String, row[2] as String, row[3] as String] }
    }

    /// Deletes stored replies with passwords; they only serve requests that are repeated within seconds.
    private mutating func deleteReplies() throws {
        try change("SELECT reply, owner, request FROM reply", "DELETE FROM reply WHERE owner = ? AND request = ?") {
            row, _ in [row[1] as String, row[2] as Data]
        }
    }

    /// Executes `update` for each row of `selection` whose first column has a password; only these are kept in memory.
    private mutating func change(
        _ selection: String, _ update: String, _ arguments: (Row, _ cleaned: [UInt8]) -> StatementArguments
    ) throws {
        let rows = try Row.fetchCursor(db, sql: selection)
        var changes: [StatementArguments] = []
        while let row = try rows.next() {
            let value: Data = row[0]
            if let cleaned = MessageCleaning.cleaned([UInt8](value)) { changes.append(arguments(row, cleaned)) }
        }
        for arguments in changes { try db.execute(sql: update, arguments: arguments) }
        if !changes.isEmpty { hasChanged = true }
    }
}

/// Removes users and passwords from the addresses in a stored message of any type.
///
/// It reads the Protocol Buffers encoding without knowing the fields: a field that contains an address with a user
/// is cleaned as a message if it is one, else as text.
enum MessageCleaning {
    private static let depthLimit = 16

    /// Returns the message without credentials; nil if it contains none.
    static func cleaned(_ bytes: [UInt8]) -> [UInt8]? {
        isSuspicious(bytes[...]) ? message(bytes[...], depth: 0) ?? text(bytes[...]) : nil
    }

    private static func isSuspicious(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard bytes.contains(UInt8(ascii: "@")) else { return false }
        return bytes.indices.contains { bytes[$0] == UInt8(ascii: ":") && bytes[$0...].starts(with: "://".utf8) }
    }

    private static func text(_ bytes: ArraySlice<UInt8>) -> [UInt8]? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let cleaned = WebAddress.withoutCredentials(in: text)
        return cleaned == text ? nil : Array(cleaned.utf8)
    }

    /// Returns the message without credentials; nil if it isn’t a message or contains none.
    private static func message(_ bytes: ArraySlice<UInt8>, depth: Int) -> [UInt8]? {
        guard depth < depthLimit else { return nil }
        var output: [UInt8] = []
        var rest = bytes
        var hasChanged = false
        while !rest.isEmpty {
            let start = rest.startIndex
            guard let tag = varint(&rest), tag >> 3 > 0 else { return nil }
            switch tag & 7 {
            case 0: guard varint(&rest) != nil else { return nil }
            case 1, 5:
                let count = tag & 7 == 1 ? 8 : 4
                guard rest.count >= count else { return nil }
                rest = rest.dropFirst(count)
            case 2:
                let head = bytes[start..<rest.startIndex]
                guard let length = varint(&rest), length <= UInt64(rest.count) else { return nil }
                let content = rest.prefix(Int(length))
                rest = rest.dropFirst(Int(length))
                guard isSuspicious(content), let cleaned = message(content, depth: depth + 1) ?? text(content) else {
                    break
                }
                output += head
                append(UInt64(cleaned.count), to: &output)
                output += cleaned
                hasChanged = true
                continue
            default: return nil
            }
            output += bytes[start..<rest.startIndex]
        }
        return hasChanged ? output : nil
    }

    private static func varint(_ rest: inout ArraySlice<UInt8>) -> UInt64? {
        var value: UInt64 = 0
        for shift in stride(from: UInt64(0), to: 64, by: 7) {
            guard let byte = rest.popFirst() else { return nil }
            value |= UInt64(byte & 0x7f) << shift
            if byte < 0x80 { return value }
        }
        return nil
    }

    private static func append(_ value: UInt64, to output: inout [UInt8]) {
        var value = value
        while value >= 0x80 {
            output.append(UInt8(truncatingIfNeeded: value) | 0x80)
            value >>= 7
        }
        output.append(UInt8(truncatingIfNeeded: value))
    }
}
