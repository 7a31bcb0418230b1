/// The content of a terminal: lines of styled text and the cursor. Pure; the terminal finds the difference.
struct ScreenImage: Sendable, Hashable {
    /// The style of a piece of text. No information is in the style alone.
    enum Style: Sendable, Hashable {
        case plain
        case bold
        case dim
        case selected
    }

    /// A piece of a line.
    struct Span: Sendable, Hashable {
        var text: String
        var style: Style
    }

    /// A row and a column, from 0.
    struct Position: Sendable, Hashable {
        var row: Int
        var column: Int
    }

    /// From the top; at most as many as the screen has rows, none wider than it.
    var lines: [[Span]] = []
    /// The position of the hardware cursor; nil: hidden.
    var cursor: Position?

    /// The lines without their styles.
    var text: [String] {
        lines.map { spans in
            var line = spans.map(\.text).joined()
            while line.hasSuffix(" ") { line.removeLast() }
            return line
        }
    }
}

/// A bar that is filled from the left.
enum ProgressBar {
    /// `columns` wide, `fraction` (0 to 1) of it filled; nil: nothing known.
    static func text(_ fraction: Double?, columns: Int) -> String {
        guard columns > 0 else { return "" }
        let filled = fraction.map { Int((max(0, min(1, $0)) * Double(columns)).rounded(.down)) } ?? 0
        return String(repeating: "━", count: filled) + String(repeating: "─", count: columns - filled)
    }
}
