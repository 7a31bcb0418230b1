/// Reads durations as users type them.
public enum DurationText {
    /// A unit of time with its words.
    public struct Unit: Sendable {
        /// The shortest word, which canonical texts contain.
        public let letter: String
        /// All words, in lower case.
        public let words: Set<String>
        /// The length of the unit.
        public let seconds: Double

        init(_ letter: String, _ words: Set<String>, _ seconds: Double) {
            (self.letter, self.words, self.seconds) = (letter, words.union([letter]), seconds)
        }
    }

    /// The units of positions and lengths, the largest first.
    public static let hours = [
        Unit("h", ["hr", "hrs", "hour", "hours"], 3_600), Unit("m", ["min", "mins", "minute", "minutes"], 60),
        Unit("s", ["sec", "secs", "second", "seconds"], 1),
    ]
    /// The units of ages, the largest first.
    public static let days =
        [
            Unit("y", ["year", "years"], 365 * 86_400), Unit("w", ["week", "weeks"], 7 * 86_400),
            Unit("d", ["day", "days"], 86_400),
        ] + hours

    /// The longest duration, in seconds: a hundred years.
    public static let limit = 100.0 * 365 * 86_400

    /// Reads `90`, `12:34`, `1:02:03`, each with a fraction of its seconds; nil for anything else.
    public static func clock(_ text: some StringProtocol) -> Double? {
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

    /// Reads `1h30m`, `12m30s`, `90 seconds`, `1.5h`, larger units first, in any case; nil for anything else.
    public static func spelled(_ text: some StringProtocol, _ units: [Unit] = hours) -> Double? {
        var rest = text.lowercased().filter { !$0.isWhitespace }[...]
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

    /// Reads `1h30m` or `1:30:00`, but not a number without a unit; nil for anything else.
    public static func withUnit(_ text: some StringProtocol) -> Double? {
        text.contains(":") ? clock(text) : spelled(text)
    }

    /// Reads a plain decimal number that isn’t negative: digits with at most one decimal point.
    public static func number(_ text: some StringProtocol) -> Double? {
        guard text.utf8.count <= 16, let first = text.utf8.first, first.isASCIIDigit,
            text.utf8.reduce(0, { $1 }).isASCIIDigit,
            text.utf8.allSatisfy({ $0.isASCIIDigit || $0 == UInt8(ascii: ".") })
        else { return nil }
        return Double(text)
    }
}
