/// The origin of a command: as commands carry it (`cli`, `mini` …), and in words for people.
public struct CommandOrigin: Sendable, Hashable {
    /// The commands of the command line.
    public static let commandLine = CommandOrigin("cli")
    /// A queue that went on by itself.
    public static let advance = CommandOrigin("advance")
    /// A rule that its listener has set.
    public static let rule = CommandOrigin("rule")

    /// As commands carry it; empty: not known.
    public let text: String

    /// An origin of any text.
    public init(_ text: String) { self.text = text }

    /// The name for people: `command line`, `mini player`.
    public var name: String {
        switch text {
        case "cli": "command line"
        case "mini": "mini player"
        case "expanded": "expanded player"
        case "advance": "itself"
        case "rule": "a rule"
        default: text
        }
    }

    /// How it was done: `by hand`, whichever program somebody’s hand was in, else by what.
    public var phrase: String {
        switch text {
        case "", "cli", "mini", "expanded": "by hand"
        default: "by \(name)"
        }
    }
}
