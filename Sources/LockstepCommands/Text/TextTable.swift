import LockstepClient

/// Formats rows under headings, in columns that fit their content.
struct TextTable {
    enum Column: ExpressibleByStringLiteral {
        case left(String)
        /// A right-aligned column, such as numbers.
        case right(String)
        /// A column that shrinks if the table is wider than the screen.
        case flexible(String)

        init(stringLiteral heading: String) { self = .left(heading) }

        var heading: String {
            switch self {
            case .left(let heading), .right(let heading), .flexible(let heading): heading
            }
        }

        var isRight: Bool { if case .right = self { true } else { false } }
        var isFlexible: Bool { if case .flexible = self { true } else { false } }
    }

    private let columns: [Column]
    /// The cells, sanitised for a terminal.
    private let rows: [[String]]

    init(_ columns: [Column], _ rows: [[String]]) {
        self.columns = columns
        self.rows = rows.map { $0.map(DisplayText.sanitised) }
    }

    /// The lines, at most `width` wide; nil for no limit.
    func lines(width: Int? = Output.terminalWidth) -> [String] {
        var widths = columns.indices.map { index in
            ([columns[index].heading] + rows.map { $0[index] }).map { DisplayText.width($0) }.max() ?? 0
        }
        if let width {
            var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
            for least in [8, 3] {
                for index in columns.indices.reversed() where columns[index].isFlexible && excess > 0 {
                    let kept = max(least, widths[index] - excess)
                    excess -= max(0, widths[index] - kept)
                    widths[index] = min(widths[index], kept)
                }
            }
        }
        return ([columns.map(\.heading)] + rows).map { cells in
            var line = columns.indices.map { index in
                DisplayText.fitted(cells[index], to: widths[index], right: columns[index].isRight)
            }.joined(separator: "  ")
            while line.hasSuffix(" ") { line.removeLast() }
            return width.map { DisplayText.cut(line, to: $0) } ?? line
        }
    }
}
