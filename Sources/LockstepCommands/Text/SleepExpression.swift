import PodcastModel

/// When to sleep, as it is written: `15` (minutes), `15m`, `1h30m`, `90s`, `+10`, `episode`, `3 episodes`, `chapter`, `off`.
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

    /// Nil unless the words are one of the forms.
    init?(_ words: [String]) {
        let text = words.map { $0.lowercased() }
        switch text {
        case ["off"], ["none"]: self = .off
        case ["episode"]: self = .episodes(1)
        case ["chapter"]: self = .chapter
        default:
            if text.count == 2, ["episode", "episodes"].contains(text[1]) {
                guard let count = UInt32(text[0]), (1...SleepLimits.episodes).contains(count) else { return nil }
                self = .episodes(count)
                return
            }
            guard text.count == 1 else { return nil }
            let isLater = text[0].hasPrefix("+")
            guard let seconds = Self.seconds(isLater ? text[0].dropFirst() : text[0][...]) else { return nil }
            self = isLater ? .later(seconds) : .after(seconds)
        }
    }

    /// `15` and `15m` are minutes, `1h30m`, `1h`, `90s` what they say; above 0, a day at most.
    private static func seconds(_ text: Substring) -> Double? {
        var total = 0.0
        if let minutes = TimeText.number(text) {
            total = minutes * 60
        } else {
            var rest = text
            for (unit, factor) in [("h", 3_600.0), ("m", 60), ("s", 1)] as [(Character, Double)] {
                guard let end = rest.firstIndex(of: unit) else { continue }
                guard let number = TimeText.number(rest[..<end]) else { return nil }
                total += number * factor
                rest = rest[rest.index(after: end)...]
            }
            guard rest.isEmpty else { return nil }
        }
        return total > 0 && total <= SleepLimits.seconds ? total : nil
    }
}
