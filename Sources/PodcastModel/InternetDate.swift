/// Parses the dates of feeds and servers: RFC 822, also with common errors, and ISO 8601.
public enum InternetDate {
    /// Parses a date; a missing time is midnight, a missing or unknown zone UTC. The weekday, which is often wrong, is
    /// ignored. Nil for anything but a date between 1970 and 2199.
    public static func parse(_ text: String) -> Timestamp? {
        guard text.utf8.count <= 100 else { return nil }
        let tokens = tokens(text)
        guard var parts = isISO(tokens) ? iso(tokens) : mail(tokens) else { return nil }
        if parts.year < 70 { parts.year += 2_000 } else if parts.year < 100 { parts.year += 1_900 }
        // Some programs wrote the year 2000 as a three-digit year.
        if (100..<200).contains(parts.year) { parts.year += 1_900 }
        guard (1970...2199).contains(parts.year), (1...12).contains(parts.month), (1...31).contains(parts.day),
            (0...24).contains(parts.hour), (0...59).contains(parts.minute), (0...60).contains(parts.second)
        else { return nil }
        var time = CalendarTime(year: parts.year, month: parts.month, day: parts.day, milliseconds: 0)
        guard time.exists else { return nil }
        let seconds = (parts.hour * 60 + parts.minute - parts.offset) * 60 + parts.second
        time.milliseconds = seconds * 1_000 + parts.millisecond
        return time.timestamp.milliseconds < 0 ? nil : time.timestamp
    }

    private struct Parts {
        var year = 0
        var month = 0
        var day = 0
        var hour = 0
        var minute = 0
        var second = 0
        var millisecond = 0
        /// The minutes east of Greenwich.
        var offset = 0
    }

    private enum Token: Equatable {
        case number(Int, digits: Int)
        case word(String)
        case mark(Character)
    }

    /// Splits by scalars: splitting by characters takes a quarter of the time in which a feed is parsed.
    private static func tokens(_ text: String) -> [Token] {
        var tokens: [Token] = []
        var rest = text.unicodeScalars[...]
        while let first = rest.first {
            if isDigit(first) {
                let digits = rest.prefix(while: isDigit)
                tokens.append(.number(Int(Substring(digits)) ?? .max, digits: digits.count))
                rest = rest[digits.endIndex...]
            } else if isLetter(first) {
                let word = rest.prefix(while: isLetter)
                tokens.append(.word(Substring(word).lowercased()))
                rest = rest[word.endIndex...]
            } else {
                let isSpace = first.isASCII ? first.value <= 0x20 : first.properties.isWhitespace
                if !isSpace { tokens.append(.mark(Character(first))) }
                rest = rest.dropFirst()
            }
        }
        return tokens
    }

    private static func isDigit(_ scalar: Unicode.Scalar) -> Bool { (0x30...0x39).contains(scalar.value) }

    private static func isLetter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.isASCII ? (0x61...0x7a).contains(scalar.value | 0x20) : scalar.properties.isAlphabetic
    }

    private static func isISO(_ tokens: [Token]) -> Bool {
        guard tokens.count >= 5, case .number(_, digits: 4) = tokens[0], tokens[1] == .mark("-") else { return false }
        guard case .number = tokens[2] else { return false }
        return true
    }

    /// Parses `2024-01-31T12:34:56.789+01:00` and truncated forms of it.
    private static func iso(_ tokens: [Token]) -> Parts? {
        guard case .number(let year, _) = tokens[0], case .number(let month, _) = tokens[2],
            tokens[3] == .mark("-"), case .number(let day, _) = tokens[4]
        else { return nil }
        var parts = Parts(year: year, month: month, day: day)
        var rest = tokens[5...]
        if rest.first == .word("t") { rest = rest.dropFirst() }
        time(&rest, &parts)
        parts.offset = zone(rest)
        return parts
    }

    /// Parses `Wed, 2 Oct 2002 13:00:00 +0200`, `October 2, 2002 1:00 PM EST` and similar forms.
    private static func mail(_ tokens: [Token]) -> Parts? {
        var parts = Parts()
        var rest = tokens[...]
        var numbers: [(value: Int, digits: Int)] = []
        while let token = rest.first, parts.month == 0 || numbers.count < 2 {
            switch token {
            case .word(let word):
                if let month = month(word) {
                    guard parts.month == 0 else { return nil }
                    parts.month = month
                } else if parts.month != 0, !["of", "th", "st", "nd", "rd", "de"].contains(word), !numbers.isEmpty {
                    return nil
                }
            case .number(let value, let digits):
                guard numbers.count < 2 else { return nil }
                numbers.append((value, digits))
            case .mark: break
            }
            rest = rest.dropFirst()
        }
        guard parts.month != 0, numbers.count == 2 else { return nil }
        // The year is the number with four digits, or the last one.
        let yearFirst = numbers[0].digits >= 3
        parts.year = numbers[yearFirst ? 0 : 1].value
        parts.day = numbers[yearFirst ? 1 : 0].value
        guard numbers[yearFirst ? 0 : 1].digits >= 2 else { return nil }
        while rest.first == .mark(",") || rest.first == .word("at") { rest = rest.dropFirst() }
        time(&rest, &parts)
        parts.offset = zone(rest)
        return parts
    }

    /// Parses `hh:mm[:ss[.fff]] [AM|PM]`; `rest` then begins with the zone.
    private static func time(_ rest: inout ArraySlice<Token>, _ parts: inout Parts) {
        guard rest.count >= 3, case .number(let hour, _) = rest[rest.startIndex],
            rest[rest.startIndex + 1] == .mark(":"), case .number(let minute, _) = rest[rest.startIndex + 2]
        else { return }
        (parts.hour, parts.minute) = (hour, minute)
        rest = rest.dropFirst(3)
        if rest.count >= 2, rest.first == .mark(":"), case .number(let second, _) = rest[rest.startIndex + 1] {
            parts.second = second
            rest = rest.dropFirst(2)
        }
        if rest.count >= 2, rest.first == .mark("."), case .number(let value, let digits) = rest[rest.startIndex + 1] {
            if digits == 3 { parts.millisecond = value }
            rest = rest.dropFirst(2)
        }
        if case .word(let half) = rest.first, half == "am" || half == "pm", (1...12).contains(hour) {
            parts.hour = hour % 12 + (half == "pm" ? 12 : 0)
            rest = rest.dropFirst()
        }
    }

    /// The minutes east of Greenwich.
    private static func zone(_ tokens: ArraySlice<Token>) -> Int {
        var rest = tokens
        if case .word(let name) = rest.first {
            if let known = zones[name] { return known }
            rest = rest.dropFirst()
        }
        guard rest.count >= 2, let sign = rest.first, sign == .mark("+") || sign == .mark("-"),
            case .number(let value, let digits) = rest[rest.startIndex + 1]
        else { return 0 }
        var minutes: Int
        if digits <= 2 {
            minutes = value * 60
            if rest.count >= 4, rest[rest.startIndex + 2] == .mark(":"),
                case .number(let more, _) = rest[rest.startIndex + 3], more < 60
            {
                minutes += more
            }
        } else {
            minutes = value / 100 * 60 + value % 100
        }
        guard minutes <= 18 * 60 else { return 0 }
        return sign == .mark("-") ? -minutes : minutes
    }

    private static let zones: [String: Int] = [
        "z": 0, "est": -300, "edt": -240, "cst": -360, "cdt": -300, "mst": -420, "mdt": -360, "pst": -480,
        "pdt": -420, "akst": -540, "akdt": -480, "hst": -600, "cet": 60, "cest": 120, "bst": 60, "ist": 330,
        "jst": 540, "aest": 600, "aedt": 660, "nzst": 720, "nzdt": 780, "msk": 180, "eet": 120, "eest": 180,
    ]

    private static func month(_ word: String) -> Int? {
        guard word.count >= 3, let index = months.firstIndex(where: { $0.hasPrefix(word) || word == $0.prefix(4) })
        else { return nil }
        return index + 1
    }

    private static let months = [
        "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
        "december",
    ]
}

/// The value of a `Retry-After` field (RFC 9110, 10.2.3).
public enum RetryAfter {
    /// The wait in seconds from `now`, at least 0: the field’s value is a number of seconds, or a date. Nil for
    /// anything else.
    public static func parse(_ text: String, now: Timestamp) -> Double? {
        let words = text.split(separator: " ")
        if words.count == 1, let seconds = Double(words[0]) { return seconds.isFinite ? max(0, seconds) : nil }
        return InternetDate.parse(text).map { max(0, $0.seconds - now.seconds) }
    }
}
