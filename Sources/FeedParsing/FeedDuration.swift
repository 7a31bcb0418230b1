import PodcastModel

/// Parses the forms of `itunes:duration`.
enum FeedDuration {
    /// The maximum duration in seconds; longer ones are errors of the feed.
    static let longest = 30.0 * 24 * 3_600

    /// Parses seconds (`3600`, `3600.5`), `mm:ss`, `hh:mm:ss`, `dd:hh:mm:ss`, `1h 2m 3s`, `62 min` or `PT1H2M3S`; nil
    /// for any other text, for zero, and for more than 30 days.
    static func parse(_ text: String) -> EpisodeDuration? {
        guard let seconds = seconds(text), seconds <= longest else { return nil }
        return EpisodeDuration(seconds: seconds)
    }

    /// Whether the text is zero, which in feeds means an unknown duration.
    static func isZero(_ text: String) -> Bool { seconds(text) == 0 }

    /// Parses a position in an episode, in the same forms; zero is valid.
    static func position(_ text: String) -> PlaybackPosition? {
        seconds(text.filter { $0 != " " }).flatMap { $0 <= longest ? PlaybackPosition(seconds: $0) : nil }
    }

    private static func seconds(_ text: String) -> Double? {
        let text = text.lowercased().filter { $0 != "\u{a0}" }
        guard !text.isEmpty, text.utf8.count <= 64 else { return nil }
        guard text.contains(where: \.isLetter) else { return clock(text) }
        return units(text)
    }

    private static func clock(_ text: String) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count <= 4 else { return nil }
        var total = 0.0
        for (index, part) in parts.enumerated() {
            let digits = part.filter { $0 != " " }.map { $0 == "," ? "." : $0 }
            // An empty part is a zero (`:30`, `1::2`), unless it is the only one.
            guard let value = digits.isEmpty && parts.count > 1 ? 0 : decimal(String(digits)) else { return nil }
            let isHoursOfDay = parts.count == 4 && index == 1
            total = total * (index == 0 ? 1 : isHoursOfDay ? 24 : 60) + value
        }
        return total.isFinite ? total : nil
    }

    private static func decimal(_ text: String) -> Double? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == 0x2e }) else { return nil }
        return Double(text)
    }

    private static func units(_ text: String) -> Double? {
        var rest = text[...]
        if rest.hasPrefix("pt") { rest = rest.dropFirst(2) }
        var total = 0.0
        var found = false
        while !rest.isEmpty {
            rest = rest.drop { $0 == " " || $0 == "," || $0 == ":" }
            guard !rest.isEmpty else { break }
            let digits = rest.prefix { $0.isNumber || $0 == "." }
            rest = rest.dropFirst(digits.count).drop { $0 == " " }
            let unit = rest.prefix(while: \.isLetter)
            rest = rest.dropFirst(unit.count).drop { $0 == "." }
            guard let value = decimal(String(digits)) else { return nil }
            switch unit {
            case "h", "hr", "hrs", "hour", "hours": total += value * 3_600
            case "m", "min", "mins", "minute", "minutes": total += value * 60
            case "s", "sec", "secs", "second", "seconds": total += value
            default: return nil
            }
            found = true
        }
        return found ? total : nil
    }
}
