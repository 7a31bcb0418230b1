public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A period in which an episode was heard.
public struct PlaySession: Sendable, Hashable {
    package let wire: WirePlaySession
    /// The session’s ID.
    public let id: PlaySessionID
    /// The episode’s ID.
    public let episode: EpisodeID
    /// Whether the session goes on; its values are those that were last saved.
    public internal(set) var isPlaying = false

    package init?(_ wire: WirePlaySession) {
        guard let id = PlaySessionID(wire.id), let episode = EpisodeID(wire.episode) else { return nil }
        (self.id, self.episode, self.wire) = (id, episode, wire)
    }

    /// The episode’s title; empty if the episode was deleted.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The title of its podcast; empty if the podcast was deleted.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// The time of its first sound.
    public var started: Timestamp { Timestamp(milliseconds: wire.started) }
    /// The time of its last sound.
    public var ended: Timestamp { Timestamp(milliseconds: wire.ended) }
    /// The positions at which it began and was left, in seconds.
    public var positions: (from: Double, to: Double) { (wire.began, wire.leftAt) }
    /// The audio that was heard, in seconds of the episode.
    public var heard: Double { wire.heard }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json.adding("playing", .bool(isPlaying)) }
}

/// Sums over play sessions.
public struct ListeningStatistics: Sendable, Hashable {
    /// The rows of statistics.
    public enum Grouping: String, Sendable, Hashable, CaseIterable {
        /// A row for each podcast or episode, the most heard first.
        case podcast, episode
        /// A row for each day of this machine’s time zone.
        case day
    }

    /// The sums of the sessions of a podcast, an episode, a day, or all.
    public struct Sums: Sendable, Hashable {
        package let wire: WireStatistics.Row

        /// The title of the podcast or episode; empty if it was deleted.
        public var title: String { DisplayText.sanitised(wire.title) }
        /// The title of the episode’s podcast; empty if it was deleted.
        public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
        /// The start of the day; of rows by day.
        public var day: Timestamp { Timestamp(milliseconds: wire.day) }
        /// The audio that was heard, in seconds.
        public var heard: Double { wire.heard }
        /// The time that it took, in seconds.
        public var wall: Double { wire.wall }
        /// The seconds that the speed has saved; negative below speed 1.
        public var savedBySpeed: Double { wire.heard - wire.wall - wire.silence }
        /// The seconds that shortening silence has saved.
        public var savedBySilence: Double { wire.silence }
        /// The number of sessions.
        public var sessions: Int { Int(wire.sessions) }
    }

    /// The beginning and the end of the period.
    public let period: (from: Timestamp, to: Timestamp)
    /// The grouping of the rows.
    public let grouping: Grouping
    /// The sums of the whole period.
    public let total: Sums
    /// The rows in the order of the grouping.
    public private(set) var rows: [Sums]
    /// The number of podcasts, episodes or days; more than the rows if their number is limited.
    public let groups: Int

    init(_ wire: WireStatistics, _ grouping: Grouping, from: Timestamp, to: Timestamp) {
        (self.grouping, period) = (grouping, (from, to))
        total = Sums(wire: wire.total)
        rows = wire.rows.map(Sums.init)
        groups = Int(wire.groups)
    }

    /// Returns the days since the oldest of the newest ones with a session; other statistics are unchanged.
    ///
    /// - Parameter days: the number of days with a session, at least 1.
    package func limited(to days: Int) -> ListeningStatistics {
        guard grouping == .day else { return self }
        var limited = self
        let first = rows.indices.filter { rows[$0].sessions > 0 }.suffix(days).first ?? rows.endIndex
        limited.rows = Array(rows[first...])
        return limited
    }

    /// Whether all sums and the period are equal.
    public static func == (left: Self, right: Self) -> Bool {
        left.period == right.period
            && (left.grouping, left.total, left.rows, left.groups)
                == (right.grouping, right.total, right.rows, right.groups)
    }

    /// Hashes the sums.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(total)
        hasher.combine(rows)
    }

    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue {
        JSONValue.object([
            "from": .moment(milliseconds: period.from.milliseconds),
            "to": .moment(milliseconds: period.to.milliseconds),
        ]).adding(total.members).adding([
            "rows": .array(rows.map(json)), "groups": .integer(Int64(groups)),
        ])
    }

    private func json(_ row: Sums) -> JSONValue {
        let key: JSONValue =
            switch grouping {
            case .podcast: .object(["id": .text(row.wire.key), "title": .text(row.title)])
            case .episode:
                .object(["id": .text(row.wire.key), "title": .text(row.title), "podcast": .text(row.podcast)])
            case .day:
                .object([
                    "day": .string(LocalTime.calendar(row.day).dayText),
                    "from": .moment(milliseconds: row.wire.day),
                ])
            }
        return key.adding(row.members)
    }
}

extension ListeningStatistics.Sums {
    fileprivate var members: KeyValuePairs<String, JSONValue> {
        [
            "heard": .seconds(heard), "wall": .seconds(wall), "savedBySpeed": .seconds(savedBySpeed),
            "savedBySilence": .seconds(savedBySilence), "sessions": .integer(Int64(sessions)),
        ]
    }
}

extension WirePlaySession {
    package var json: JSONValue {
        .object([
            "id": .string(id), "episode": .string(episode), "title": .text(title), "podcast": .text(podcastTitle),
            "podcastId": .text(podcast), "started": .moment(milliseconds: started),
            "ended": .moment(milliseconds: ended), "from": .seconds(began), "to": .seconds(leftAt),
            "heard": .seconds(heard), "wall": .seconds(wall), "silence": .seconds(silence), "device": .text(device),
        ])
    }
}
