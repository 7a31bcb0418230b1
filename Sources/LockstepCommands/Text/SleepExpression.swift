import PodcastModel

/// When to sleep, as it is written: `15` (minutes), `15m`, `1h30m`, `90 seconds`, `12:30`, `+10`, `episode`, `3 episodes`,
/// `chapter`, `off`.
enum SleepExpression: Sendable, Hashable {
    /// No more.
    case off
    /// So many seconds from now.
    case after(Double)
    /// So many seconds later than it would.
    case later(Double)
    /// At the end of so many episodes, the loaded one included.
    case episodes(UInt32)
    /// At the end of the chapter.
    case chapter

    /// Nil unless the words are one of the forms; it does not matter where they are parted.
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
                return
            }
            let isLater = text.hasPrefix("+")
            guard let seconds = Self.seconds(isLater ? text.dropFirst() : text[...]) else { return nil }
            self = isLater ? .later(seconds) : .after(seconds)
        }
    }

    /// `15` and `15m` are minutes, `1h30m`, `90s` and `12:30` (minutes and seconds) what they say; above 0, a day at most.
    private static func seconds(_ text: Substring) -> Double? {
        let seconds =
            TimeText.number(text).map { $0 * 60 } ?? (text.contains(":") ? TimeText.seconds(text) : nil)
            ?? TimeText.spelled(text)
        guard let seconds, seconds > 0, seconds <= SleepLimits.seconds else { return nil }
        return seconds
    }
}
