/// How queues are named.
public enum QueueName {
    /// The queue that is there from the beginning, and meant where none is named.
    public static let usual = "main"

    /// As sentences name a queue: Up Next, the usual one, or by its name.
    public static func shown(_ name: String) -> String { name == usual ? "Up Next" : "“\(name)”" }

    /// What names a queue on the command line, with a space before it; nothing for the usual one.
    public static func option(_ name: String) -> String { name == usual ? "" : " --queue \(name)" }

    /// What a name must be, in words.
    public static let rule = "1 to 40 letters, digits, - or _, the first a letter"

    /// Whether it can be a queue's name.
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
