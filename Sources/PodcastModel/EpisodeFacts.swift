/// The facts about an episode that rules compare.
public struct EpisodeFacts: Sendable, Hashable {
    /// The properties that the episode has.
    public var marks: Set<EpisodeRule.Mark> = []
    /// The ID of its podcast.
    public var podcast = ""
    /// The title of its podcast.
    public var podcastTitle = ""
    /// The tags of its podcast, in lower case.
    public var tags: Set<String> = []
    /// The names and IDs of the playlists and queues that contain it.
    public var lists: Set<String> = []
    /// The title of the episode.
    public var title = ""
    /// Its show notes, without markup.
    public var notes = ""
    /// Its length in seconds; nil if unknown.
    public var length: Double?
    /// Its position in seconds.
    public var position = 0.0
    /// Its publication date; nil if unknown.
    public var published: Timestamp?
    /// When it was last played back; nil means never.
    public var heard: Timestamp?
    /// When the feed was first seen to contain it; nil if unknown.
    public var added: Timestamp?
    /// The number of its season; 0 if unknown.
    public var season = 0

    /// Creates the facts about an unknown episode.
    public init() {}
}

extension EpisodeRule {
    /// The clock and the calendar by which ages and days are compared.
    public struct Context: Sendable {
        /// The present time, to which ages refer.
        public var now: Timestamp
        /// Returns the first moment of a day in local time.
        public var startOfDay: @Sendable (CalendarDay) -> Timestamp

        /// Creates a context; without `startOfDay`, days are in this device’s local time.
        public init(
            now: Timestamp, startOfDay: @escaping @Sendable (CalendarDay) -> Timestamp = LocalTime.startOfDay
        ) {
            (self.now, self.startOfDay) = (now, startOfDay)
        }

        /// The moment before which an episode is older than an age.
        public func moment(before seconds: Double) -> Timestamp {
            Timestamp(milliseconds: now.milliseconds - Int64((min(seconds, DurationText.limit) * 1_000).rounded()))
        }

        /// The comparison with the start of a day that is equivalent to a comparison with the day; two for “on the
        /// day”.
        public func bounds(_ comparison: Comparison, _ day: CalendarDay) -> [(Comparison, Timestamp)] {
            let (start, end) = (startOfDay(day), startOfDay(day.next))
            return switch comparison {
            case .less: [(.less, start)]
            case .lessOrEqual: [(.less, end)]
            case .equal: [(.greaterOrEqual, start), (.less, end)]
            case .greaterOrEqual: [(.greaterOrEqual, start)]
            case .greater: [(.greaterOrEqual, end)]
            }
        }
    }

    /// Whether an episode with these facts meets the rule.
    public func matches(_ facts: EpisodeFacts, in context: Context) -> Bool { condition.matches(facts, context) }
}

extension EpisodeRule.Comparison {
    /// The comparison of moments that is equivalent to this comparison of ages: what is younger is later.
    public var ofMoments: Self {
        switch self {
        case .less: .greater
        case .lessOrEqual: .greaterOrEqual
        case .equal: .equal
        case .greaterOrEqual: .lessOrEqual
        case .greater: .less
        }
    }
}

extension EpisodeRule.Condition {
    fileprivate func matches(_ facts: EpisodeFacts, _ context: EpisodeRule.Context) -> Bool {
        switch self {
        case .mark(let mark): return facts.marks.contains(mark)
        case .tag(let name): return facts.tags.contains(name.lowercased())
        case .podcast(let name):
            return facts.podcast == name || facts.podcastTitle.lowercased() == name.lowercased()
        case .list(let name): return facts.lists.contains(name)
        case .text(.title, let text): return facts.title.lowercased().utf8Contains(text.lowercased())
        case .text(.notes, let text): return Self.words(of: text, occurIn: [facts.notes])
        case .text(.text, let text): return Self.words(of: text, occurIn: [facts.title, facts.notes])
        case .length(let field, let comparison, let seconds):
            guard let length = facts.length else { return false }
            let isPlayed = facts.marks.contains(.played)
            let value = field == .length ? length : isPlayed ? 0 : max(0, length - facts.position)
            return comparison.holds(value, seconds)
        case .age(let field, let comparison, let seconds):
            guard let moment = facts.moment(field) else { return false }
            return comparison.ofMoments.holds(moment, context.moment(before: seconds))
        case .day(let field, let comparison, let day):
            guard let moment = facts.moment(field) else { return false }
            return context.bounds(comparison, day).allSatisfy { $0.holds(moment, $1) }
        case .season(let comparison, let number): return facts.season > 0 && comparison.holds(facts.season, number)
        case .not(let inner): return !inner.matches(facts, context)
        case .all(let parts): return parts.allSatisfy { $0.matches(facts, context) }
        case .any(let parts): return parts.contains { $0.matches(facts, context) }
        }
    }

    /// Whether every word of `text` occurs in one of the fields; the last may be the beginning of a longer word if it
    /// has three letters or more, as in a search.
    private static func words(of text: String, occurIn fields: [String]) -> Bool {
        let wanted = words(text)
        guard let last = wanted.last else { return false }
        let found = fields.map { Set(words($0)) }
        return wanted.allSatisfy { word in found.contains { $0.contains(word) } }
            || last.count >= 3 && wanted.dropLast().allSatisfy { word in found.contains { $0.contains(word) } }
                && found.contains { $0.contains { $0.hasPrefix(last) } }
    }

    private static func words(_ text: String) -> [String] {
        text.lowercased().split { !$0.isLetter && !$0.isNumber }.map(String.init)
    }
}

extension EpisodeFacts {
    fileprivate func moment(_ field: EpisodeRule.DateField) -> Timestamp? {
        switch field {
        case .published: published
        case .heard: heard
        case .added: added
        }
    }
}

extension CalendarDay {
    /// The following day.
    var next: CalendarDay {
        CalendarDay(year: year, month: month, day: day + 1) ?? CalendarDay(year: year, month: month + 1, day: 1)
            ?? CalendarDay(year: year + 1, month: 1, day: 1) ?? self
    }
}

extension String {
    /// Whether the bytes of `part` occur in this text, as in SQLite’s `instr`.
    fileprivate func utf8Contains(_ part: String) -> Bool {
        utf8.count >= part.utf8.count && (utf8.firstRange(of: part.utf8) != nil || part.isEmpty)
    }
}
