import PodcastModel

package enum TimeText {
    /// A position as a clock, to the nearest second: a chapter’s start may be 59.95 in a file.
    package static func mark(_ seconds: Double?) -> String { ClockText.format(seconds.map { $0.rounded() }) }

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

    /// The local date of a time: `2026-03-09`; `-` for 0.
    package static func day(milliseconds: Int64) -> String {
        milliseconds == 0 ? "-" : LocalTime.calendar(Timestamp(milliseconds: milliseconds)).dayText
    }

    /// The local minute of a time: `2026-03-09 12:34`; `never` for 0.
    package static func minute(milliseconds: Int64) -> String {
        milliseconds == 0 ? "never" : LocalTime.calendar(Timestamp(milliseconds: milliseconds)).minuteText
    }
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
