struct ScreenImage: Sendable, Hashable {
    /// The style of a text, which adds no information.
    enum Style: Sendable, Hashable {
        case plain, bold, dim, selected
    }

    struct Span: Sendable, Hashable {
        var text: String
        var style: Style
    }

    /// A row and a column, counted from 0.
    struct Position: Sendable, Hashable {
        var row: Int
        var column: Int
    }

    var lines: [[Span]] = []
    /// The cursor’s position; nil if it is hidden.
    var cursor: Position?
    /// The indices of the list’s rows by the lines that show them, for the mouse.
    var listRows: [Int: Int] = [:]
}

/// A bar that is filled from the left.
enum ProgressBar {
    /// Creates a bar; `fraction`, 0 to 1, is filled; nil if unknown.
    static func text(_ fraction: Double?, columns: Int) -> String {
        guard columns > 0 else { return "" }
        let filled = fraction.map { Int((max(0, min(1, $0)) * Double(columns)).rounded(.down)) } ?? 0
        return String(repeating: "━", count: filled) + String(repeating: "─", count: columns - filled)
    }
}
