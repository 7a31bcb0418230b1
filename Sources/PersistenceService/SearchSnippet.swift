import FoundationEssentials
import SwiftProtobuf
import WireMessages

/// The part of an indexed text around its first matches, in the form in which it is shown.
struct SearchSnippet {
    typealias Character = (scalar: Unicode.Scalar, isMatch: Bool)

    /// The bytes by which FTS5 marks matches: no text in UTF-8 contains them.
    static let (opening, closing): (UInt8, UInt8) = (0xFE, 0xFF)
    /// The maximum length in Unicode scalars, without the ellipses.
    static let limit = 160
    /// The maximum number of words that FTS5 returns.
    static let words = 40
    /// The length of the text before the first match in a text that is cut.
    private static let lead = 40

    private(set) var characters: [Character] = []

    /// Reads the marked text that FTS5 returns; nil if it has no match.
    init?(marked: Data) {
        var reader = Reader()
        reader.read(marked)
        characters = reader.result
        guard let first = characters.firstIndex(where: \.isMatch) else { return nil }
        cut(around: first)
    }

    /// Removes what exceeds the limit, at spaces if possible.
    private mutating func cut(around first: Int) {
        guard characters.count > Self.limit else { return }
        var start = max(0, min(first - Self.lead, characters.count - Self.limit))
        if start > 0, let space = characters[start..<first].firstIndex(where: { $0.scalar == " " }) {
            start = space + 1
        }
        var end = min(characters.count, start + Self.limit)
        if end < characters.count, let space = characters[first..<end].lastIndex(where: { $0.scalar == " " }) {
            end = space
        }
        let ellipsis: [Character] = [("…", false)]
        characters =
            (start > 0 ? ellipsis : []) + characters[start..<end] + (end < characters.count ? ellipsis : [])
    }

    /// The message: parts alternately outside and within a match.
    var wire: WireSnippet {
        var parts: [String] = [""]
        for character in characters {
            // The parts with odd indices are within a match.
            if character.isMatch == parts.count.isMultiple(of: 2) {
                parts[parts.count - 1].unicodeScalars.append(character.scalar)
            } else {
                parts.append(String(character.scalar))
            }
        }
        return .with { $0.parts = parts }
    }

    /// Converts an indexed text to the shown one: without the spaces between syllables, and with emoji.
    private struct Reader {
        private(set) var result: [Character] = []
        private var word: [Character] = []
        /// Whether the whole space before the word is within a match.
        private var isSpaceMatch = true
        /// The number of spaces before the word.
        private var spaces = 0

        mutating func read(_ marked: Data) {
            var isMatch = false
            for part in marked.split(omittingEmptySubsequences: false, whereSeparator: { $0 >= opening }) {
                for scalar in String(decoding: part, as: UTF8.self).unicodeScalars {
                    if scalar.properties.isWhitespace || scalar.value < 0x20 {
                        endWord()
                        spaces += 1
                        isSpaceMatch = isSpaceMatch && isMatch
                    } else {
                        word.append((scalar, isMatch))
                    }
                }
                // The marks alternate.
                isMatch.toggle()
            }
            endWord()
        }

        private mutating func endWord() {
            guard let first = word.first else { return }
            let emoji = emoji
            if let last = result.last, isSpaced(last.scalar, emoji ?? first.scalar) {
                result.append((" ", isSpaceMatch))
            }
            result += emoji.map { [($0, first.isMatch)] } ?? word
            word = []
            isSpaceMatch = true
            spaces = 0
        }

        /// Whether the text has a space between two words: the index also has spaces around syllables and emoji, and in
        /// place of tags.
        private func isSpaced(_ last: Unicode.Scalar, _ first: Unicode.Scalar) -> Bool {
            guard Self.isWide(last) || Self.isWide(first) else {
                return !",.;:!?)]}”’…".unicodeScalars.contains(first)
            }
            let added = [last, first].count { SearchText.isSyllable($0) || SearchText.isEmoji($0) }
            return spaces > added
        }

        /// Whether a scalar is of a script without spaces, or its punctuation.
        private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
            SearchText.isSyllable(scalar) || (0x3000...0x303F).contains(scalar.value)
                || (0xFF00...0xFF60).contains(scalar.value)
        }

        /// The emoji that the word names.
        private var emoji: Unicode.Scalar? {
            guard word.first?.scalar == "u", (5...6).contains(word.count) else { return nil }
            let digits = String(String.UnicodeScalarView(word.dropFirst().map(\.scalar)))
            guard let scalar = UInt32(digits, radix: 16).flatMap(Unicode.Scalar.init), SearchText.isEmoji(scalar) else {
                return nil
            }
            return scalar
        }
    }
}
