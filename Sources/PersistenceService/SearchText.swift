import PodcastModel

/// The indexed form of texts, and the conversion of a user’s words to a query of SQLite’s FTS5.
///
/// The indexed form has no tags. Every ideograph, kana and hangul syllable is a separate word (these scripts have no
/// spaces between words, so a run of them is searched as a phrase), and every emoji becomes a word that names its code
/// point (the tokenizer of FTS5 would drop it).
enum SearchText {
    /// The maximum length of an indexed text, in bytes of its indexed form; the rest of a longer text can’t be found.
    static let limit = 65_536
    /// The maximum number of words of a query; the rest are ignored.
    static let termLimit = 16
    /// The maximum number of characters of a query; the rest are ignored.
    static let queryLimit = 500

    /// Returns the words of an HTML text: tags and comments become spaces, and character references are decoded.
    static func plain(html: String) -> String {
        let bytes = Array(html.utf8.prefix(4 * limit))
        var words: [UInt8] = []
        words.reserveCapacity(bytes.count)
        for event in HTMLText(bytes) {
            switch event {
            case .text(let text): words.append(contentsOf: text)
            case .character(let character): words.append(contentsOf: String(character).utf8)
            case .tag: words.append(UInt8(ascii: " "))
            }
        }
        return String(decoding: words, as: UTF8.self)
    }

    /// Returns the form in which `text` is indexed and searched.
    static func indexed(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 && $0 != 0 }), text.utf8.count <= limit { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            if result.utf8.count > limit - 16 { break }
            append(scalar, to: &result.unicodeScalars)
        }
        return result
    }

    /// The FTS5 query for a user’s input; nil if it has no words.
    ///
    /// Words must all occur; `"quoted words"` occur together and in order; the last word may be the beginning of a
    /// longer one, unless it is quoted or shorter than three letters. Nothing else is an operator.
    ///
    /// - Parameters:
    ///   - podcast: the ID of the episode’s podcast, or nil for any.
    ///   - columns: the columns in which the words may occur.
    static func query(_ input: String, podcast: String?, columns: String = "title notes") -> String? {
        var phrases: [String] = []
        let terms = terms(of: String(input.prefix(queryLimit)))
        for (index, term) in terms.prefix(termLimit).enumerated() {
            let words = indexed(term.text)
            guard words.unicodeScalars.contains(where: isWordScalar) else { continue }
            let isPrefix = index == terms.count - 1 && !term.isQuoted && term.text.count >= 3
            phrases.append(quoted(words) + (isPrefix ? " *" : ""))
        }
        guard !phrases.isEmpty else { return nil }
        let text = "{\(columns)} : (" + phrases.joined(separator: " AND ") + ")"
        guard let podcast else { return text }
        return "podcast : " + quoted(podcast) + " AND " + text
    }

    private static func quoted(_ text: String) -> String { "\"" + text.filter { $0 != "\"" } + "\"" }

    private static func terms(of input: String) -> [(text: String, isQuoted: Bool)] {
        var terms: [(String, Bool)] = []
        for (index, part) in input.split(separator: "\"", omittingEmptySubsequences: false).enumerated() {
            if index.isMultiple(of: 2) {
                terms += part.split(whereSeparator: \.isWhitespace).map { (String($0), false) }
            } else if !part.isEmpty {
                terms.append((String(part), true))
            }
        }
        return terms
    }

    private static func append(_ scalar: Unicode.Scalar, to result: inout String.UnicodeScalarView) {
        switch scalar.value {
        case 0, 0x200D, 0xFE0F:  // NUL ends a text in SQLite; joiners and variation selectors are parts of emoji
            result.append(" ")
        case 0x3040...0x30FF, 0x3400...0x9FFF, 0xAC00...0xD7AF, 0xF900...0xFAFF, 0x20000...0x3FFFF:
            result.append(" ")
            result.append(scalar)
            result.append(" ")
        case 0x2190... where scalar.properties.isEmoji || (0x1F000...0x1FFFF).contains(scalar.value):
            result.append(contentsOf: " u\(String(scalar.value, radix: 16)) ".unicodeScalars)
        default:
            result.append(scalar)
        }
    }

    /// Whether the tokenizer treats a scalar as part of a word: letters, numbers and private use (FTS5’s `unicode61`).
    private static func isWordScalar(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .decimalNumber,
            .letterNumber, .otherNumber, .privateUse:
            true
        default: false
        }
    }
}
