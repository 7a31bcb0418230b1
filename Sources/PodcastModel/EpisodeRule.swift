/// A condition on episodes, as users type it and as playlists store it: `unplayed and (length < 20m or tag news)`.
public struct EpisodeRule: Sendable, Hashable, CustomStringConvertible {
    /// The parsed condition, without redundant nesting.
    public let condition: Condition

    /// A condition, which an episode meets or not. Comparisons with an unknown value aren’t met.
    public indirect enum Condition: Sendable, Hashable {
        /// The episode has this property.
        case mark(Mark)
        /// The podcast has this tag.
        case tag(String)
        /// The podcast has this ID or, regardless of case, this title.
        case podcast(String)
        /// The playlist or queue of this name contains the episode.
        case list(String)
        /// The text occurs in the field, regardless of case.
        case text(TextField, String)
        /// Compares a number of seconds.
        case length(LengthField, Comparison, seconds: Double)
        /// Compares the time since a moment, in seconds: `published < 7d` is met in the first seven days.
        case age(DateField, Comparison, seconds: Double)
        /// Compares the local day of a moment.
        case day(DateField, Comparison, CalendarDay)
        /// Compares the number of the season.
        case season(Comparison, Int)
        case not(Condition)
        /// All conditions are met; there are at least two.
        case all([Condition])
        /// At least one condition is met; there are at least two.
        case any([Condition])
    }

    /// A property that an episode has or doesn’t have.
    public enum Mark: String, Sendable, Hashable, CaseIterable {
        /// The episode counts as played.
        case played
        /// The episode isn’t played and has a position.
        case started
        /// A refresh found the episode, and it is neither played, started nor in a queue.
        case new
        /// The audio file is on this device.
        case downloaded
        /// A queue contains the episode.
        case queued
        /// The playlist of favourites contains the episode.
        case favourite
        /// The episode has a bookmark.
        case bookmarked
        /// The feed no longer contains the episode.
        case gone
        /// The feed declares the episode as explicit.
        case explicit
        /// The enclosure is a video.
        case video
        /// The feed or the file has chapters.
        case chapters = "has chapters"
        /// The feed has a transcript.
        case transcript = "has transcript"
    }

    /// A text that a rule searches.
    public enum TextField: String, Sendable, Hashable, CaseIterable {
        /// The title of the episode contains the text.
        case title
        /// The words of the text occur in the show notes.
        case notes
        /// The words of the text occur in the title or the show notes.
        case text
    }

    /// A number of seconds that a rule compares.
    public enum LengthField: String, Sendable, Hashable, CaseIterable {
        /// The length of the episode.
        case length
        /// The length after the position; 0 if the episode is played.
        case remaining
    }

    /// A moment that a rule compares.
    public enum DateField: String, Sendable, Hashable, CaseIterable {
        /// The publication date.
        case published
        /// When the episode was last played back.
        case heard
        /// When the feed was first seen to contain the episode.
        case added
    }

    /// The relation between the episode’s value and the value in the rule.
    public enum Comparison: String, Sendable, Hashable, CaseIterable {
        case less = "<"
        case lessOrEqual = "<="
        case equal = "="
        case greaterOrEqual = ">="
        case greater = ">"

        /// Whether the relation holds between two values.
        public func holds<Value: Comparable>(_ left: Value, _ right: Value) -> Bool {
            switch self {
            case .less: left < right
            case .lessOrEqual: left <= right
            case .equal: left == right
            case .greaterOrEqual: left >= right
            case .greater: left > right
            }
        }
    }

    /// The maximum length of a rule, in bytes.
    public static let lengthLimit = 2_000
    /// The maximum number of comparisons and properties in a rule.
    public static let termLimit = 64
    /// The maximum number of conditions that search the show notes; each reads all matches.
    public static let searchLimit = 4
    /// The maximum depth of parentheses and negations.
    public static let depthLimit = 32

    /// Parses a rule.
    ///
    /// - Throws: `invalidArgument`; the message names the column of the error and, for an unknown field, the most
    ///   similar one.
    public init(_ text: String) throws(Failure) {
        var parser = try EpisodeRuleParser(text)
        condition = try parser.rule()
    }

    /// Creates a rule from a condition; nested conditions of the same kind are joined.
    public init(_ condition: Condition) { self.condition = condition.simplified }

    /// The canonical text: lower-case fields, the largest exact units, and only necessary parentheses. Parsing it
    /// results in the same rule.
    public var description: String { condition.text(within: .any([])) }
}

extension EpisodeRule.Condition {
    /// Joins nested lists of the same kind, and removes double negations and lists of one condition.
    var simplified: Self {
        switch self {
        case .not(let inner):
            let inner = inner.simplified
            if case .not(let positive) = inner { return positive }
            return .not(inner)
        case .all(let parts):
            let parts = parts.flatMap { part -> [Self] in
                let part = part.simplified
                return if case .all(let inner) = part { inner } else { [part] }
            }
            return parts.count == 1 ? parts[0] : .all(parts)
        case .any(let parts):
            let parts = parts.flatMap { part -> [Self] in
                let part = part.simplified
                return if case .any(let inner) = part { inner } else { [part] }
            }
            return parts.count == 1 ? parts[0] : .any(parts)
        default: return self
        }
    }

    /// The canonical text of a part of `outer`; it has parentheses if `outer` binds more tightly.
    fileprivate func text(within outer: Self) -> String {
        switch self {
        case .mark(let mark): return mark.rawValue
        case .tag(let name): return "tag \(RuleText.value(name))"
        case .podcast(let name): return "podcast \(RuleText.value(name))"
        case .list(let name): return "in \(RuleText.value(name))"
        case .text(let field, let text): return "\(field.rawValue) ~ \(RuleText.value(text))"
        case .length(let field, let comparison, let seconds):
            return "\(field.rawValue) \(comparison.rawValue) \(RuleText.duration(seconds, units: DurationText.hours))"
        case .age(let field, let comparison, let seconds):
            return
                "\(field.rawValue) \(comparison.rawValue) \(RuleText.duration(seconds, units: DurationText.days.filter { $0.seconds <= 86_400 }))"
        case .day(let field, let comparison, let day): return "\(field.rawValue) \(comparison.rawValue) \(day)"
        case .season(let comparison, let number): return "season \(comparison.rawValue) \(number)"
        case .not(.mark(.played)): return "unplayed"
        case .not(let inner): return "not \(inner.text(within: self))"
        case .all(let parts): return joined(parts, by: " and ", within: outer)
        case .any(let parts): return joined(parts, by: " or ", within: outer)
        }
    }

    private func joined(_ parts: [Self], by word: String, within outer: Self) -> String {
        let text = parts.map { $0.text(within: self) }.joined(separator: word)
        if case .any = outer { return text }
        return "(\(text))"
    }
}

/// A day of the calendar, in the local time of the device that evaluates a rule.
public struct CalendarDay: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The year, 1970 to 2100.
    public let year: Int
    /// The month, 1 to 12.
    public let month: Int
    /// The day of the month, from 1.
    public let day: Int

    /// Creates a day; nil if the calendar doesn’t contain it.
    public init?(year: Int, month: Int, day: Int) {
        guard (1970...2100).contains(year), (1...12).contains(month), (1...31).contains(day),
            CalendarTime(year: year, month: month, day: day, milliseconds: 0).exists
        else { return nil }
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// Parses `2026-01-31`; nil for anything else.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, parts.map(\.utf8.count) == [4, 2, 2],
            parts.allSatisfy({ $0.utf8.allSatisfy(\.isASCIIDigit) }),
            let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2])
        else { return nil }
        self.init(year: year, month: month, day: day)
    }

    /// The form of ISO 8601: `2026-01-31`.
    public var description: String { CalendarTime(year: year, month: month, day: day, milliseconds: 0).dayText }

    /// Orders days by time.
    public static func < (left: Self, right: Self) -> Bool {
        (left.year, left.month, left.day) < (right.year, right.month, right.day)
    }
}

/// The canonical form of values in rules.
enum RuleText {
    /// A name or text: quoted unless it is a word without a meaning of its own.
    static func value(_ text: String) -> String {
        let isWord =
            !text.isEmpty && !EpisodeRuleParser.keywords.contains(text.lowercased())
            && text.unicodeScalars.allSatisfy { !EpisodeRuleParser.isDelimiter($0) }
        if isWord { return text }
        // Scalars, as in the parser: a quotation mark may be combined with an accent to one character.
        var quoted = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar == "\"" || scalar == "\\" { quoted.append("\\") }
            quoted.append(scalar)
        }
        return "\"\(String(quoted))\""
    }

    /// A number of seconds in the largest unit, at most days, of which it is a multiple: `90m`, `2h`, `7d`, `0.500s`.
    static func duration(_ seconds: Double, units: [DurationText.Unit]) -> String {
        let milliseconds = Int((min(max(0, seconds), DurationText.limit) * 1_000).rounded())
        for unit in units {
            let length = Int(unit.seconds) * 1_000
            if milliseconds >= length, milliseconds % length == 0 { return "\(milliseconds / length)\(unit.letter)" }
        }
        let rest = milliseconds % 1_000
        return "\(milliseconds / 1_000)\(rest == 0 ? "" : "." + padded(rest, 3))s"
    }
}
