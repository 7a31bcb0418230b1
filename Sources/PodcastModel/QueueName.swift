/// The names of queues.
public enum QueueName {
    /// The default queue: it always exists, and is used if no queue is named.
    public static let `default` = "main"

    /// The name in sentences: Up Next for the default queue, otherwise its name in quotes.
    public static func shown(_ name: String) -> String { name == `default` ? "Up Next" : "“\(name)”" }

    /// The command-line option for a queue, with a leading space; empty for the default queue.
    public static func option(_ name: String) -> String { name == `default` ? "" : " --queue \(name)" }

    /// The rule for valid names, for messages.
    public static let rule = "1 to 40 letters, digits, - or _, the first a letter"

    /// Whether a text is a valid name of a queue.
    public static func isValid(_ text: String) -> Bool {
        guard (1...40).contains(text.utf8.count), let first = text.utf8.first, first.isASCIILetter else { return false }
        return text.utf8.allSatisfy { $0.isASCIIAlphanumeric || "-_".utf8.contains($0) }
    }
}
