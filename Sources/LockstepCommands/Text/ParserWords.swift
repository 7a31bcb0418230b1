import LockstepClient
import PodcastModel

/// Rewords the parser’s errors like this program’s own.
enum ParserWords {
    /// Returns the first line as a sentence, with typographic quotation marks; the usage after it is unchanged.
    static func reworded(_ text: String) -> String {
        let text = inOneLine(text)
        let end = text.firstIndex(of: "\n") ?? text.endIndex
        // The user typed a hyphen that `CommandLineWords` has replaced by a minus sign.
        let line = text[..<end].replacing("'−", with: "'-")
        let advice = line.contains("Unknown option '") ? " " + CommandLineWords.dashAdvice : ""
        return Sentence.stopped(quoted(line)) + advice + text[end...]
    }

    /// Joins the values of an argument, which the parser prints as a list, into one sentence.
    private static func inOneLine(_ text: String) -> String {
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let ending = "one of the following:"
        guard let first = lines.first, first.hasSuffix(ending) else { return text }
        let items = lines.dropFirst().prefix { $0.hasPrefix("  - ") }
        let values = items.map { "'\($0.dropFirst(4))'" }
        let sentence = first.dropLast(ending.count) + "one of \(WordList.or(values))."
        return ([sentence] + lines.dropFirst(1 + items.count)).joined(separator: "\n")
    }

    /// Replaces pairs of straight quotes by “”. An apostrophe within a word is unchanged.
    private static func quoted(_ line: Substring) -> String {
        func isInWord(_ character: Character?) -> Bool { character.map { $0.isLetter || $0.isNumber } ?? false }
        let parts = line.split(separator: "'", omittingEmptySubsequences: false)
        var result = ""
        var isOpen = false
        for (part, next) in zip(parts, parts.dropFirst()) {
            result += part
            if isInWord(part.last), isInWord(next.first) {
                result += "’"
            } else {
                result += isOpen ? "”" : "“"
                isOpen.toggle()
            }
        }
        return result + (parts.last ?? "")
    }
}
