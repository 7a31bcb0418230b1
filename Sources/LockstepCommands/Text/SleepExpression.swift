import LockstepClient
import PodcastModel

/// A sleep timer that a user enters: `15` (minutes), `15m`, `1h30m`, `90 seconds`, `23:30`, `+10`, `episode`, `3
/// episodes`, `chapter`, `off`.
enum SleepExpression: Sendable, Hashable {
    case off
    /// A number of seconds from now.
    case after(Double)
    /// The next occurrence of this local time.
    case at(hour: Int32, minute: Int32)
    /// A number of seconds by which the timer is extended.
    case later(Double)
    /// The end of this number of episodes, including the loaded one.
    case episodes(UInt32)
    case chapter

    /// Fails for any other words. Spaces are ignored.
    init?(_ words: [String]) {
        let text = words.joined().lowercased().filter { !$0.isWhitespace }
        switch text {
        case "off", "none": self = .off
        case "episode": self = .episodes(1)
        case "chapter": self = .chapter
        default:
            if let unit = ["episodes", "episode"].first(where: { text.hasSuffix($0) }) {
                let count = UInt32(text.dropLast(unit.count))
                guard let count, (1...SleepLimits.episodes).contains(count) else { return nil }
                self = .episodes(count)
            } else if text.hasPrefix("+") {
                guard let seconds = Self.seconds(text.dropFirst()) else { return nil }
                self = .later(seconds)
            } else if text.count(where: { $0 == ":" }) == 1 {
                guard let time = Self.time(text) else { return nil }
                self = time
            } else {
                guard let seconds = Self.seconds(text[...]) else { return nil }
                self = .after(seconds)
            }
        }
    }

    /// `23:30` and `7:05` are times of the day.
    private static func time(_ text: String) -> SleepExpression? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard text.allSatisfy({ $0 == ":" || $0.isASCII && $0.isNumber }), parts.count == 2,
            (1...2).contains(parts[0].utf8.count), parts[1].utf8.count == 2,
            let hour = UInt8(parts[0]), let minute = UInt8(parts[1]), hour < 24, minute < 60
        else { return nil }
        return .at(hour: Int32(hour), minute: Int32(minute))
    }

    /// `15` and `15m` are minutes; `1h30m`, `90s` and `1:15:00` have units; above 0, at most a day.
    private static func seconds(_ text: Substring) -> Double? {
        let seconds = DurationText.number(text).map { $0 * 60 } ?? DurationText.withUnit(text)
        guard let seconds, seconds > 0, seconds <= SleepLimits.seconds else { return nil }
        return seconds
    }
}
