/// The program or mechanism that sent a command, such as `cli` or `mini`.
public struct CommandOrigin: Sendable, Hashable {
    /// The origin of commands from the command line.
    public static let commandLine = CommandOrigin("cli")
    /// The origin of a queue’s automatic advance.
    public static let advance = CommandOrigin("advance")
    /// The origin of commands that one of the listener’s rules causes.
    public static let rule = CommandOrigin("rule")

    /// The text in commands; empty if unknown.
    public let text: String

    /// Creates an origin with any text.
    public init(_ text: String) { self.text = text }

    /// The name for users: `command line`, `mini player`.
    public var name: String {
        switch text {
        case "cli": "command line"
        case "mini": "mini player"
        case "expanded": "expanded player"
        case "advance": "the queue"
        case "rule": "a rule"
        default: text
        }
    }

    /// The phrase for histories: `by hand` for a user’s command in any program, otherwise the origin.
    public var phrase: String {
        switch text {
        case "", "cli", "mini", "expanded": "by hand"
        default: "by \(name)"
        }
    }
}
