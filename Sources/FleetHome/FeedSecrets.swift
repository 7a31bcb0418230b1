import FoundationEssentials
package import PodcastModel

/// The users and passwords of feeds, by podcast and by server.
///
/// They are stored in one file beside the database and nowhere else: never in the database, on the stream, in logs,
/// messages or backups. The feeds service writes it; services that fetch data of a podcast read it (`SecretsReader`).
package struct FeedSecrets: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    private struct Entry: Sendable, Hashable {
        var credentials: WebCredentials
        /// Whether a user has entered the password; otherwise it is from an address in the feed or a redirect.
        var isGiven: Bool
    }

    /// The maximum number of servers of one podcast.
    package static let originLimit = 16

    private var podcasts: [String: [WebOrigin: Entry]] = [:]

    package init() {}

    package var isEmpty: Bool { podcasts.isEmpty }

    /// The credentials of a podcast, by server.
    package func credentials(of podcast: String) -> [WebOrigin: WebCredentials] {
        (podcasts[podcast] ?? [:]).mapValues(\.credentials)
    }

    /// The user and password for an address of a podcast; nil unless they belong to the same server.
    package func credentials(of podcast: String, at address: WebAddress) -> WebCredentials? {
        guard let origin = address.origin else { return nil }
        return podcasts[podcast]?[origin]?.credentials
    }

    /// Sets a podcast’s user and password at a server. Values from a feed never replace values from a user.
    package mutating func set(_ credentials: WebCredentials, for podcast: String, at origin: WebOrigin, isGiven: Bool) {
        var entries = podcasts[podcast] ?? [:]
        let old = entries[origin]
        guard isGiven || old?.isGiven != true, old != nil || entries.count < Self.originLimit || isGiven else { return }
        entries[origin] = Entry(credentials: credentials, isGiven: isGiven)
        podcasts[podcast] = entries
    }

    package mutating func remove(_ podcast: String) { podcasts[podcast] = nil }

    /// Returns only the secrets of the given podcasts.
    package func only(of podcasts: Set<String>) -> FeedSecrets {
        var selected = self
        selected.podcasts = self.podcasts.filter { podcasts.contains($0.key) }
        return selected
    }

    /// Adds the entries of `other` that are missing.
    package mutating func merge(_ other: FeedSecrets) {
        for (podcast, entries) in other.podcasts {
            podcasts[podcast, default: [:]].merge(entries) { mine, _ in mine }
        }
    }

    // Neither the description nor the mirror contains the secrets.
    package var description: String { "(secrets of \(podcasts.count) podcasts)" }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

// MARK: - The file’s content

extension FeedSecrets {
    private struct Content: Codable {
        var version = 1
        var podcasts: [String: [Line]] = [:]
    }

    private struct Line: Codable {
        var server: String
        var user: String
        var password: String
        var given: Bool
    }

    /// Decodes a file’s content; invalid entries are dropped.
    init(content bytes: [UInt8]) throws {
        let content = try JSONDecoder().decode(Content.self, from: Data(bytes))
        for (podcast, lines) in content.podcasts where PodcastID(podcast) != nil {
            for line in lines {
                let credentials = WebCredentials(user: line.user, password: line.password)
                guard let origin = WebOrigin(line.server), (try? credentials.check()) != nil else { continue }
                set(credentials, for: podcast, at: origin, isGiven: line.given)
            }
        }
    }

    /// The content of the file: JSON, in a fixed order.
    var content: [UInt8] {
        get throws {
            var content = Content()
            content.podcasts = podcasts.mapValues { entries in
                entries.sorted { $0.key < $1.key }.map { origin, entry in
                    Line(
                        server: origin.text, user: entry.credentials.user, password: entry.credentials.password,
                        given: entry.isGiven)
                }
            }
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            return [UInt8](try encoder.encode(content)) + [UInt8(ascii: "\n")]
        }
    }
}
