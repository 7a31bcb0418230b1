/// What the parser says of a command line that it cannot read, put as this program's own errors are.
enum ParserWords {
    /// The first line as a sentence, with quotation marks that open and close. What follows it, the usage, stays.
    static func inHouse(_ text: String) -> String {
        let end = text.firstIndex(of: "\n") ?? text.endIndex
        // A minus sign stands for a hyphen that the parser would have taken for an option.
        let line = text[..<end].replacing("'−", with: "'-")
        return Sentence.stopped(quoted(line)) + text[end...]
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
