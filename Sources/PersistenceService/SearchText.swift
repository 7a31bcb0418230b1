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
    static let queryLimit = RequestSizes.searchText

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

    /// A word or a quoted phrase of a query.
    struct Term {
        var text: String
        var isQuoted = false
        /// Whether the last word may be the beginning of a longer one.
        var isPrefix = false

        /// Whether it has a word that the index could contain.
        var hasWord: Bool { indexed(text).unicodeScalars.contains(where: isWordScalar) }
        /// Whether it is of a script without spaces between words that the index doesn’t split either: it is found
        /// as a word only between other punctuation.
        var isUnsegmented: Bool { text.unicodeScalars.contains { SearchText.isUnsegmented($0) } }
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
        let terms = terms(of: String(input.prefix(queryLimit)))
        return query(Array(terms.prefix(termLimit)), podcast: podcast, columns: columns)
    }

    /// The FTS5 query for terms; nil if they have no words.
    static func query(_ terms: [Term], podcast: String?, columns: String) -> String? {
        let phrases = terms.filter(\.hasWord).map { quoted(indexed($0.text)) + ($0.isPrefix ? " *" : "") }
        guard !phrases.isEmpty else { return nil }
        let text = "{\(columns)} : (" + phrases.joined(separator: " AND ") + ")"
        guard let podcast else { return text }
        return "podcast : " + quoted(podcast) + " AND " + text
    }

    /// The terms of a search; a word that ends with `*` may be the beginning of a longer one.
    ///
    /// - Throws: `invalidArgument` for an input without words, with too many, or with a prefix below three letters.
    static func searchTerms(_ input: String) throws(Failure) -> [Term] {
        if let failure = RequestSizes.refusal(ofSearch: input) { throw failure }
        var terms = terms(of: input).filter(\.hasWord)
        guard !terms.isEmpty else {
            throw Failure(.invalidArgument, "The search has no word. Enter words of a title or of show notes.")
        }
        guard terms.count <= termLimit else {
            throw Failure(
                .invalidArgument, "The search has \(terms.count) words; at most \(termLimit) are allowed.")
        }
        for index in terms.indices where !terms[index].isQuoted && terms[index].text.hasSuffix("*") {
            let typed = terms[index].text
            while terms[index].text.hasSuffix("*") { terms[index].text.removeLast() }
            let text = terms[index].text
            let letters = text.split { !$0.isLetter && !$0.isNumber }.last?.count ?? 0
            terms[index].isPrefix = letters >= prefixLength
            // An ideograph is a word by itself, so that its text needs no prefix.
            if letters < prefixLength, !text.unicodeScalars.contains(where: isSyllable) {
                throw Failure(
                    .invalidArgument,
                    "“\(typed)” is too short: the beginning of a word has at least three letters before the “*”.")
            }
        }
        return terms
    }

    /// The minimum length of a word that may be the beginning of a longer one, for which the index is prepared.
    private static let prefixLength = 3

    private static func quoted(_ text: String) -> String { "\"" + text.filter { $0 != "\"" } + "\"" }

    private static func terms(of input: String) -> [Term] {
        var terms: [Term] = []
        for (index, part) in input.split(separator: "\"", omittingEmptySubsequences: false).enumerated() {
            if index.isMultiple(of: 2) {
                terms += part.split(whereSeparator: \.isWhitespace).map { Term(text: String($0)) }
            } else if !part.isEmpty {
                terms.append(Term(text: String(part), isQuoted: true))
            }
        }
        // Punctuation isn’t a part of a word: “c++” is the word “c”.
        let letters = terms.last?.text.split { !$0.isLetter && !$0.isNumber }.last?.count ?? 0
        if let last = terms.last, !last.isQuoted, letters >= prefixLength {
            terms[terms.count - 1].isPrefix = true
        }
        return terms
    }

    /// Whether the index contains a scalar as a separate word: ideographs, kana and hangul syllables.
    static func isSyllable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x3040...0x30FF, 0x3400...0x9FFF, 0xAC00...0xD7AF, 0xF900...0xFAFF, 0x20000...0x3FFFF: true
        default: false
        }
    }

    /// Whether the index contains a scalar as a word that names its code point.
    static func isEmoji(_ scalar: Unicode.Scalar) -> Bool {
        scalar.value >= 0x2190 && (scalar.properties.isEmoji || (0x1F000...0x1FFFF).contains(scalar.value))
    }

    /// Thai, Lao, Burmese, Khmer and halfwidth kana.
    private static func isUnsegmented(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x0E00...0x0EFF, 0x1000...0x109F, 0x1780...0x17FF, 0xA9E0...0xA9FF, 0xAA60...0xAA7F, 0xFF66...0xFF9F:
            true
        default: false
        }
    }

    private static func append(_ scalar: Unicode.Scalar, to result: inout String.UnicodeScalarView) {
        switch scalar.value {
        case 0, 0x200D, 0xFE0F:  // NUL ends a text in SQLite; joiners and variation selectors are parts of emoji
            result.append(" ")
        case _ where isSyllable(scalar):
            result.append(" ")
            result.append(scalar)
            result.append(" ")
        case _ where isEmoji(scalar):
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
