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

    /// The words for the units, from the largest on.
    private static let units: [(words: Set<String>, seconds: Double)] = [
        (["h", "hr", "hrs", "hour", "hours"], 3_600), (["m", "min", "mins", "minute", "minutes"], 60),
        (["s", "sec", "secs", "second", "seconds"], 1),
    ]

    /// `15` and `15m` are minutes, `1h30m`, `90s` and `12:30` (minutes and seconds) what they say; above 0, a day at most.
    private static func seconds(_ text: Substring) -> Double? {
        var total = 0.0
        if let minutes = TimeText.number(text) {
            total = minutes * 60
        } else if text.contains(":") {
            guard let seconds = TimeText.seconds(text) else { return nil }
            total = seconds
        } else {
            var rest = text
            var units = units[...]
            while !rest.isEmpty {
                let digits = rest.prefix { $0.isNumber || $0 == "." }
                let word = rest.dropFirst(digits.count).prefix { $0.isLetter }
                guard let number = TimeText.number(digits),
                    let index = units.firstIndex(where: { $0.words.contains(String(word)) })
                else { return nil }
                total += number * units[index].seconds
                units = units[(index + 1)...]
                rest = rest.dropFirst(digits.count + word.count)
            }
        }
        return total > 0 && total <= SleepLimits.seconds ? total : nil
    }
}
