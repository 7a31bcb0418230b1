/// Parses the text of an `EpisodeRule`.
///
/// `and` binds more tightly than `or`, and `not` more tightly than both. Fields and words are case-insensitive; a value
/// that contains spaces or punctuation of the syntax is quoted.
struct EpisodeRuleParser {
    private enum Token: Hashable {
        case word(String)
        case quoted(String)
        case symbol(String)
        case end
    }

    private var tokens: [(token: Token, column: Int)] = []
    private var next = 0
    private var terms = 0
    private var searches = 0

    /// The words that can’t be values unless they are quoted.
    static let keywords: Set<String> = ["and", "or", "not"]

    /// Whether a scalar ends a word.
    static func isDelimiter(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.isWhitespace || scalar.value < 0x20 || "()<>=~\"“”\\".unicodeScalars.contains(scalar)
    }

    /// Splits a text into tokens.
    init(_ text: String) throws(Failure) {
        guard text.utf8.count <= EpisodeRule.lengthLimit else {
            throw Failure(
                .invalidArgument,
                "The rule has \(text.utf8.count) bytes; at most \(EpisodeRule.lengthLimit) are allowed.")
        }
        let scalars = Array(text.unicodeScalars)
        var index = 0
        while index < scalars.count {
            let (start, scalar) = (index, scalars[index])
            switch scalar {
            case _ where scalar.properties.isWhitespace: index += 1
            case "(", ")", "~", "=":
                tokens.append((.symbol(String(scalar)), start + 1))
                index += 1
            case "<", ">":
                index += 1
                let isEqual = index < scalars.count && scalars[index] == "="
                if isEqual { index += 1 }
                tokens.append((.symbol(String(scalar) + (isEqual ? "=" : "")), start + 1))
            case "\"", "“":
                let closing: Unicode.Scalar = scalar == "“" ? "”" : "\""
                var value = String.UnicodeScalarView()
                index += 1
                while index < scalars.count, scalars[index] != closing {
                    if scalars[index] == "\\", index + 1 < scalars.count { index += 1 }
                    value.append(scalars[index])
                    index += 1
                }
                guard index < scalars.count else { throw Self.failure(start + 1, "the quotation mark isn’t closed.") }
                index += 1
                tokens.append((.quoted(String(value)), start + 1))
            default:
                while index < scalars.count, !Self.isDelimiter(scalars[index]) { index += 1 }
                guard index > start else { throw Self.failure(start + 1, "“\(scalar)” has no meaning here.") }
                var word = String.UnicodeScalarView()
                word.append(contentsOf: scalars[start..<index])
                tokens.append((.word(String(word)), start + 1))
            }
        }
        tokens.append((.end, scalars.count + 1))
    }

    /// Parses the whole text.
    mutating func rule() throws(Failure) -> EpisodeRule.Condition {
        guard tokens.count > 1 else {
            throw Failure(.invalidArgument, "The rule is empty. An example of a rule: unplayed and length < 20m.")
        }
        let condition = try alternatives(depth: 0)
        guard case .end = tokens[next].token else {
            throw failure("“and” or “or” is missing before \(shown(tokens[next].token)).")
        }
        return condition.simplified
    }

    private mutating func alternatives(depth: Int) throws(Failure) -> EpisodeRule.Condition {
        var parts = [try conjunction(depth: depth)]
        while takeWord("or") { parts.append(try conjunction(depth: depth)) }
        return parts.count == 1 ? parts[0] : .any(parts)
    }

    private mutating func conjunction(depth: Int) throws(Failure) -> EpisodeRule.Condition {
        var parts = [try operand(depth: depth)]
        while takeWord("and") { parts.append(try operand(depth: depth)) }
        return parts.count == 1 ? parts[0] : .all(parts)
    }

    private mutating func operand(depth: Int) throws(Failure) -> EpisodeRule.Condition {
        guard depth < EpisodeRule.depthLimit else {
            throw failure("the rule is nested more than \(EpisodeRule.depthLimit) deep.")
        }
        if takeWord("not") { return .not(try operand(depth: depth + 1)) }
        if takeSymbol("(") {
            let inner = try alternatives(depth: depth + 1)
            guard takeSymbol(")") else { throw failure("“)” is missing.") }
            return inner
        }
        terms += 1
        guard terms <= EpisodeRule.termLimit else {
            throw failure("the rule has more than \(EpisodeRule.termLimit) conditions.")
        }
        return try term()
    }

    private mutating func term() throws(Failure) -> EpisodeRule.Condition {
        guard case .word(let word) = tokens[next].token, !Self.keywords.contains(word.lowercased()) else {
            throw failure("a field is missing before \(shown(tokens[next].token)).")
        }
        let field = word.lowercased()
        let column = tokens[next].column
        next += 1
        if let mark = Self.marks[field] { return mark }
        if let text = EpisodeRule.TextField(rawValue: field) {
            guard takeSymbol("~") else { throw failure("“~” is missing after “\(field)”: \(field) ~ TEXT.") }
            searches += text == .title ? 0 : 1
            guard searches <= EpisodeRule.searchLimit else {
                throw failure("the rule searches the show notes more than \(EpisodeRule.searchLimit) times.")
            }
            return .text(text, try value("a text", after: "\(field) ~"))
        }
        if let length = EpisodeRule.LengthField(rawValue: field) { return try self.length(length) }
        if let date = EpisodeRule.DateField(rawValue: field) { return try self.date(date) }
        switch field {
        case "has": return try property()
        case "tag": return .tag(try value("a tag", after: field).lowercased())
        case "podcast": return .podcast(try value("a podcast", after: field))
        case "in": return .list(try value("a playlist", after: field))
        case "season":
            let comparison = try comparison(after: field, orEqual: true)
            let text = try value("a number", after: field)
            guard let number = Int(text), (0...1_000_000).contains(number) else {
                throw failure("“\(text)” isn’t a season number.", at: next - 1)
            }
            return .season(comparison, number)
        default:
            let nearest = NearestWord.among(Self.fields, to: field).map { "; did you mean “\($0)”?" } ?? "."
            throw Self.failure(column, "“\(word)” isn’t a field of an episode\(nearest)", fields: nearest == ".")
        }
    }

    private mutating func property() throws(Failure) -> EpisodeRule.Condition {
        let name = try value("chapters or transcript", after: "has")
        switch name.lowercased() {
        case "chapters": return .mark(.chapters)
        case "transcript": return .mark(.transcript)
        default: throw failure("“\(name)” isn’t chapters or transcript.", at: next - 1)
        }
    }

    private mutating func length(_ field: EpisodeRule.LengthField) throws(Failure) -> EpisodeRule.Condition {
        let comparison = try comparison(after: field.rawValue, orEqual: false)
        let text = try value("a length", after: field.rawValue)
        guard let seconds = DurationText.clock(text) ?? DurationText.spelled(text, DurationText.hours),
            seconds <= DurationText.limit
        else {
            throw failure("“\(text)” isn’t a length, such as 20m, 1h30m or 12:34.", at: next - 1)
        }
        return .length(field, comparison, seconds: Self.rounded(seconds))
    }

    private mutating func date(_ field: EpisodeRule.DateField) throws(Failure) -> EpisodeRule.Condition {
        let start = next
        let comparison = try comparison(after: field.rawValue, orEqual: true)
        let text = try value("a date or an age", after: field.rawValue)
        if let day = CalendarDay(text) { return .day(field, comparison, day) }
        guard let seconds = DurationText.spelled(text, DurationText.days), seconds <= DurationText.limit else {
            throw failure("“\(text)” isn’t an age, such as 7d or 12h, or a date, such as 2026-01-31.", at: next - 1)
        }
        guard comparison != .equal else {
            throw failure("an age can’t be compared with “=”; use “<” or “>”.", at: start)
        }
        return .age(field, comparison, seconds: Self.rounded(seconds))
    }

    /// Rounds to milliseconds, the precision of the canonical text.
    private static func rounded(_ seconds: Double) -> Double { (seconds * 1_000).rounded() / 1_000 }

    private mutating func comparison(
        after field: String, orEqual: Bool
    ) throws(Failure) -> EpisodeRule.Comparison {
        if !orEqual, tokens[next].token == .symbol("=") {
            throw failure("a length can’t be compared with “=”; use “<” or “>”.")
        }
        guard case .symbol(let symbol) = tokens[next].token, let comparison = EpisodeRule.Comparison(rawValue: symbol),
            orEqual || comparison != .equal
        else {
            throw failure("“<” or “>” is missing after “\(field)”, before \(shown(tokens[next].token)).")
        }
        next += 1
        return comparison
    }

    private mutating func value(_ what: String, after field: String) throws(Failure) -> String {
        switch tokens[next].token {
        case .quoted(let text) where !text.allSatisfy(\.isWhitespace):
            next += 1
            return text
        case .word(let word) where !Self.keywords.contains(word.lowercased()):
            next += 1
            return word
        default: throw failure("\(what) is missing after “\(field)”.")
        }
    }

    private mutating func takeWord(_ keyword: String) -> Bool {
        guard case .word(let word) = tokens[next].token, word.lowercased() == keyword else { return false }
        next += 1
        return true
    }

    private mutating func takeSymbol(_ symbol: String) -> Bool {
        guard tokens[next].token == .symbol(symbol) else { return false }
        next += 1
        return true
    }

    private func shown(_ token: Token) -> String {
        switch token {
        case .word(let text), .symbol(let text): "“\(text)”"
        case .quoted(let text): "‘\(text)’"
        case .end: "the end"
        }
    }

    private func failure(_ sentence: String, at index: Int? = nil) -> Failure {
        Self.failure(tokens[index ?? next].column, sentence)
    }

    private static func failure(_ column: Int, _ sentence: String, fields: Bool = false) -> Failure {
        let list = fields ? " The fields: \(Self.fields.joined(separator: ", "))." : ""
        return Failure(.invalidArgument, "The rule has an error at column \(column): \(sentence)\(list)")
    }

    /// The properties by their words, with synonyms.
    private static let marks: [String: EpisodeRule.Condition] = {
        var marks: [String: EpisodeRule.Condition] = [
            "unplayed": .not(.mark(.played)), "favorite": .mark(.favourite),
        ]
        for mark in EpisodeRule.Mark.allCases where !mark.rawValue.contains(" ") { marks[mark.rawValue] = .mark(mark) }
        return marks
    }()

    /// The names of all fields, for messages and completions.
    static let fields: [String] =
        ["unplayed"] + EpisodeRule.Mark.allCases.map(\.rawValue) + ["tag", "podcast", "in"]
        + EpisodeRule.TextField.allCases.map(\.rawValue) + EpisodeRule.LengthField.allCases.map(\.rawValue)
        + EpisodeRule.DateField.allCases.map(\.rawValue) + ["season"]
}
