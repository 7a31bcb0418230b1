/// The names of queues.
public enum QueueName {
    /// The default queue: it always exists, and is meant where none is named.
    public static let `default` = "main"

    /// The name in sentences: Up Next for the default queue, else its name in quotes.
    public static func shown(_ name: String) -> String { name == `default` ? "Up Next" : "“\(name)”" }

    /// The option that names a queue on the command line, with a space before it; empty for the default queue.
    public static func option(_ name: String) -> String { name == `default` ? "" : " --queue \(name)" }

    /// The rule for names, in words.
    public static let rule = "1 to 40 letters, digits, - or _, the first a letter"

    /// Whether a text can be the name of a queue.
    public static func isValid(_ text: String) -> Bool {
        guard (1...40).contains(text.utf8.count), let first = text.utf8.first else { return false }
        let letters = UInt8(ascii: "a")...UInt8(ascii: "z")
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        let isLetter = { letters.contains($0 | 0x20) }
        return isLetter(first)
            && text.utf8.allSatisfy {
                isLetter($0) || digits.contains($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_")
            }
    }
}
