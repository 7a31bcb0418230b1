import PodcastModel

/// A format for `status`: text in which `{title}` and the like stand for what plays.
struct StatusFormat: Sendable, Hashable {
    private enum Part: Sendable, Hashable {
        case text(String)
        case field(String)
    }

    /// The names that may stand in braces.
    static let fields = [
        "state", "title", "podcast", "id", "position", "duration", "remaining", "percent", "speed", "volume", "output",
        "chapter", "sleep", "retry",
    ]

    private let parts: [Part]

    /// Reads a format: `{name}` is a field, `{{` and `}}` are braces, `\n` and `\t` are a line break and a tab.
    ///
    /// - Throws: `invalidArgument` naming what is wrong and which fields there are.
    init(_ format: String) throws(Failure) {
        var parts: [Part] = []
        var text = ""
        var rest = format[...]
        while let character = rest.popFirst() {
            switch (character, rest.first) {
            case ("{", "{"), ("}", "}"):
                text.append(character)
                rest.removeFirst()
            case ("\\", "n"), ("\\", "t"):
                text.append(rest.removeFirst() == "n" ? "\n" : "\t")
            case ("{", _):
                guard let end = rest.firstIndex(of: "}"), Self.fields.contains(String(rest[..<end])) else {
                    throw Failure(
                        .invalidArgument,
                        "The format “\(format)” has an unknown field. There are \(Self.fields.map { "{\($0)}" }.joined(separator: ", "))."
                    )
                }
                if !text.isEmpty { parts.append(.text(text)) }
                text = ""
                parts.append(.field(String(rest[..<end])))
                rest = rest[rest.index(after: end)...]
            default: text.append(character)
            }
        }
        if !text.isEmpty { parts.append(.text(text)) }
        self.parts = parts
    }

    /// The format with the fields filled in; what is not known is empty.
    func filled(_ value: (String) -> String) -> String {
        parts.map { part in
            switch part {
            case .text(let text): text
            case .field(let name): value(name)
            }
        }.joined()
    }
}
