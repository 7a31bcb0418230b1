import LockstepClient

/// Formats rows under headings, in columns that fit their content.
struct TextTable {
    enum Column: ExpressibleByStringLiteral {
        case left(String)
        /// A right-aligned column, such as numbers.
        case right(String)
        /// A column that shrinks if the table is wider than the screen.
        case flexible(String)
        /// A column of IDs, of which a terminal shows the beginnings.
        case id(String)

        init(stringLiteral heading: String) { self = .left(heading) }

        var heading: String {
            switch self {
            case .left(let heading), .right(let heading), .flexible(let heading), .id(let heading): heading
            }
        }

        var isID: Bool { if case .id = self { true } else { false } }
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

    /// The lines for standard output: columns in a terminal, otherwise whole cells that are separated by tabs.
    ///
    /// - Parameter width: the width of the terminal; nil if there is none.
    func printed(width: Int? = Output.terminalWidth) -> [String] {
        if let width { return shortened().lines(width: width) }
        return ([columns.map(\.heading)] + rows).map { $0.joined(separator: "\t") }
    }

    /// The number of characters of a shortened ID, if that distinguishes the IDs of the column.
    private static let idLength = 8

    /// The table with the beginnings of its IDs, which commands accept like whole IDs.
    private func shortened() -> TextTable {
        var rows = rows
        for column in columns.indices where columns[column].isID {
            let ids = Set(rows.map { $0[column] })
            let longest = ids.map(\.count).max() ?? 0
            let length = (Self.idLength..<max(Self.idLength + 1, longest)).first { length in
                Set(ids.map { $0.prefix(length) }).count == ids.count
            }
            for row in rows.indices { rows[row][column] = String(rows[row][column].prefix(length ?? longest)) }
        }
        return TextTable(columns, rows)
    }

    /// The lines, at most `width` wide; nil for no limit.
    func lines(width: Int?) -> [String] {
        var widths = columns.indices.map { index in
            ([columns[index].heading] + rows.map { $0[index] }).map { DisplayText.width($0) }.max() ?? 0
        }
        if let width {
            var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
            for least in [14, 8, 3] {
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
