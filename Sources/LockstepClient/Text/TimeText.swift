import PodcastModel

package enum TimeText {
    /// A position as a clock, to the nearest second: a chapter’s start may be 59.95 in a file.
    package static func mark(_ seconds: Double?) -> String { ClockText.format(seconds.map { $0.rounded() }) }

    /// Reads `90`, `12:34`, `1:02:03`, each with a fraction of its seconds; nil for anything else.
    package static func seconds(_ text: some StringProtocol) -> Double? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (1...3).contains(parts.count), let last = parts.last, let seconds = number(last) else { return nil }
        guard parts.count > 1 else { return seconds }
        guard seconds < 60 else { return nil }
        var total = 0.0
        for (index, part) in parts.dropLast().enumerated() {
            guard (1...6).contains(part.utf8.count), let value = UInt32(part), index == 0 || value < 60 else {
                return nil
            }
            total = total * 60 + Double(value)
        }
        return total * 60 + seconds
    }

    private static let units: [(words: Set<String>, seconds: Double)] = [
        (["h", "hr", "hrs", "hour", "hours"], 3_600), (["m", "min", "mins", "minute", "minutes"], 60),
        (["s", "sec", "secs", "second", "seconds"], 1),
    ]

    /// Reads `1h30m`, `12m30s`, `90 seconds`, `1.5h`, larger units first, in lower case; nil for anything else.
    package static func spelled(_ text: some StringProtocol) -> Double? {
        var rest = String(text).filter { !$0.isWhitespace }[...]
        guard !rest.isEmpty else { return nil }
        var total = 0.0
        var units = units[...]
        while !rest.isEmpty {
            let digits = rest.prefix { $0.isNumber || $0 == "." }
            let word = rest.dropFirst(digits.count).prefix { $0.isLetter }
            guard let number = number(digits), let index = units.firstIndex(where: { $0.words.contains(String(word)) })
            else { return nil }
            total += number * units[index].seconds
            units = units[(index + 1)...]
            rest = rest.dropFirst(digits.count + word.count)
        }
        return total
    }

    /// Reads a plain decimal number that isn’t negative: digits with at most one decimal point.
    package static func number(_ text: some StringProtocol) -> Double? {
        guard text.utf8.count <= 16, let first = text.utf8.first, isDigit(first), isDigit(text.utf8.reduce(0) { $1 }),
            text.utf8.allSatisfy({ isDigit($0) || $0 == UInt8(ascii: ".") })
        else { return nil }
        return Double(text)
    }

    /// An approximate duration: `7 s`, `12 min`, `3 h 20 min`, `4 d 2 h`.
    package static func span(_ seconds: Double) -> String {
        let whole = Int(max(0, min(seconds.isFinite ? seconds : 0, 3e11)))
        switch whole {
        case ..<60: return "\(whole) s"
        case ..<3_600: return "\(whole / 60) min"
        case ..<86_400: return "\(whole / 3_600) h" + (whole / 60 % 60 > 0 ? " \(whole / 60 % 60) min" : "")
        default: return "\(whole / 86_400) d" + (whole / 3_600 % 24 > 0 ? " \(whole / 3_600 % 24) h" : "")
        }
    }

    /// The date of a time in UTC: `2026-03-09`; `-` for 0.
    package static func day(milliseconds: Int64) -> String {
        milliseconds == 0 ? "-" : CalendarTime(Timestamp(milliseconds: milliseconds)).dayText
    }

    /// The minute of a time in UTC: `2026-03-09 12:34`; `never` for 0.
    package static func minute(milliseconds: Int64) -> String {
        milliseconds == 0 ? "never" : CalendarTime(Timestamp(milliseconds: milliseconds)).minuteText
    }

    private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

/// Formats numbers for display: at most two decimal places, without trailing zeros.
package enum NumberText {
    /// `1`, `1.5`, `0.75`.
    package static func short(_ value: Double) -> String {
        guard value.isFinite, abs(value) < 1e12 else { return "?" }
        let hundredths = Int((value * 100).rounded())
        let sign = hundredths < 0 ? "-" : ""
        let (whole, rest) = (abs(hundredths) / 100, abs(hundredths) % 100)
        if rest == 0 { return "\(sign)\(whole)" }
        return rest % 10 == 0 ? "\(sign)\(whole).\(rest / 10)" : "\(sign)\(whole).\(rest < 10 ? "0" : "")\(rest)"
    }

    /// `812 B`, `14 kB`, `9.4 MB`.
    package static func bytes(_ count: UInt64) -> String {
        switch count {
        case ..<1_000: return "\(count) B"
        case ..<1_000_000: return "\(count / 1_000) kB"
        case ..<1_000_000_000: return "\(count / 1_000_000).\(count / 100_000 % 10) MB"
        default: return "\(count / 1_000_000_000).\(count / 100_000_000 % 10) GB"
        }
    }

    /// `1 episode`, `3 episodes`.
    package static func counted(_ count: Int, _ one: String, _ several: String? = nil) -> String {
        "\(count) \(count == 1 ? one : several ?? one + "s")"
    }
}
