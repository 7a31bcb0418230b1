import LockstepClient

/// The parser’s errors, worded like this program’s own.
enum ParserWords {
    /// The first line as a sentence, with quotation marks that open and close. What follows it, the usage, stays.
    static func inHouse(_ text: String) -> String {
        let text = inOneLine(text)
        let end = text.firstIndex(of: "\n") ?? text.endIndex
        // A minus sign stands for a hyphen that the parser would have taken for an option.
        let line = text[..<end].replacing("'−", with: "'-")
        return Sentence.stopped(quoted(line)) + text[end...]
    }

    /// With the values that an argument may have, which the parser lists one a line, in the sentence that they belong to.
    private static func inOneLine(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let ending = "one of the following:"
        guard let first = lines.first, first.hasSuffix(ending) else { return text }
        let items = lines.dropFirst().prefix { $0.hasPrefix("  - ") }
        let values = items.map { "'\($0.dropFirst(4))'" }
        let list = values.dropLast().joined(separator: ", ") + (values.last.map { " or \($0)" } ?? "")
        let sentence = first.dropLast(ending.count) + "one of \(list)."
        return ([sentence] + lines.dropFirst(1 + items.count)).joined(separator: "\n")
    }

    /// With “” in place of pairs of straight quotes. An apostrophe within a word stays what it is.
    private static func quoted(_ line: some StringProtocol) -> String {
        var result = ""
        var isOpen = false
        let characters = Array(line)
        for (index, character) in characters.enumerated() {
            let isInWord =
                index > 0 && index + 1 < characters.count
                && (characters[index - 1].isLetter || characters[index - 1].isNumber)
                && (characters[index + 1].isLetter || characters[index + 1].isNumber)
            guard character == "'" else {
                result.append(character)
                continue
            }
            guard !isInWord else {
                result.append("’")
                continue
            }
            result.append(isOpen ? "”" : "“")
            isOpen.toggle()
        }
        return result
    }
}
