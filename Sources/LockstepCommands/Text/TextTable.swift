import LockstepClient

/// Rows under headings, in columns as wide as they need to be.
struct TextTable {
    struct Column {
        /// The heading above it.
        var heading: String
        /// Whether its cells end at its right side, as numbers do.
        var right = false
        /// Whether it gives way when the table is wider than the screen.
        var flexible = false
    }

    /// The columns, from the left.
    let columns: [Column]
    private var rows: [[String]] = []

    /// An empty table.
    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Whether there is no row.
    var isEmpty: Bool { rows.isEmpty }

    /// Adds a row; its cells are made fit for a terminal.
    mutating func add(_ cells: [String]) {
        rows.append(cells.map { DisplayText.sanitised($0) })
    }

    /// The lines, none wider than `width`; nil: as wide as they are.
    func lines(width: Int?) -> [String] {
        var widths = columns.indices.map { index in
            ([columns[index].heading] + rows.map { $0[index] }).map { DisplayText.width($0) }.max() ?? 0
        }
        if let width {
            var excess = widths.reduce(0, +) + 2 * (columns.count - 1) - width
            for least in [8, 3] {
                for index in columns.indices.reversed() where columns[index].flexible && excess > 0 {
                    let kept = max(least, widths[index] - excess)
                    excess -= max(0, widths[index] - kept)
                    widths[index] = min(widths[index], kept)
                }
            }
        }
        return ([columns.map(\.heading)] + rows).map { cells in
            var line = columns.indices.map { index in
                DisplayText.fitted(cells[index], to: widths[index], right: columns[index].right)
            }.joined(separator: "  ")
            while line.hasSuffix(" ") { line.removeLast() }
            return width.map { DisplayText.cut(line, to: $0) } ?? line
        }
    }
}
