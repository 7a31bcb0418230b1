/// The screen of a terminal after the bytes that were written to it: the part of ECMA-48 that players use.
struct TerminalScreen: Sendable {
    private(set) var columns: Int
    private(set) var rows: Int
    private(set) var cursor = (row: 0, column: 0)
    private(set) var isCursorVisible = true
    /// Whether the alternate screen of full-screen programs is shown.
    private(set) var isAlternate = false
    /// Whether the arrow keys send application-mode sequences.
    private(set) var sendsApplicationKeys = false
    private var cells: [[Character]]
    private var savedCells: [[Character]] = []
    private var saved = (row: 0, column: 0)
    private var savedCursor = (row: 0, column: 0)
    private var scroll: Range<Int>
    private var isWrapDue = false
    /// Whether text that is longer than a line continues on the next.
    private var continuesLines = true
    /// Whether lines that are too long after a resize are wrapped, as in newer terminals, or truncated.
    private let wraps: Bool
    /// The rows that continue the line of the row above, since the terminal became narrower.
    private var continued: Set<Int> = []
    private var input = Input.text
    private var pending: [UInt8] = []

    private enum Input: Sendable {
        case text
        case escape
        case charset
        case control([UInt8])
        case command
    }

    init(columns: Int, rows: Int, wraps: Bool = false) {
        self.wraps = wraps
        self.columns = columns
        self.rows = rows
        cells = Self.blank(columns, rows)
        scroll = 0..<rows
    }

    /// The lines from the top, without trailing blanks.
    var lines: [String] {
        cells.map { row in
            var text = String(row.filter { $0 != "\0" })
            while text.last == " " { text.removeLast() }
            return text
        }
    }

    var text: String { lines.joined(separator: "\n") }

    /// Resizes like a terminal that truncates what no longer fits and drops top rows if the cursor wouldn’t fit.
    mutating func resize(columns: Int, rows: Int) {
        if wraps { wrap(columns: columns) }
        let lost = max(0, cursor.row - rows + 1)
        cells.removeFirst(lost)
        cursor = (max(0, cursor.row - lost), min(cursor.column, columns - 1))
        cells = (0..<rows).map { row in
            let line = row < cells.count ? cells[row] : []
            return Array((line + Array(repeating: " ", count: columns)).prefix(columns))
        }
        self.columns = columns
        self.rows = rows
        scroll = 0..<rows
        isWrapDue = false
    }

    /// Rewraps the lines to `columns`; the cursor keeps its position in its line.
    private mutating func wrap(columns: Int) {
        var lines: [[Character]] = []
        var place = (line: 0, offset: 0)
        for (row, cells) in cells.enumerated() {
            if !continued.contains(row) { lines.append([]) }
            if row == cursor.row { place = (lines.count - 1, lines[lines.count - 1].count + cursor.column) }
            lines[lines.count - 1] += cells
        }
        cells = []
        continued = []
        for (number, line) in lines.enumerated() {
            let end = max((line.lastIndex { $0 != " " } ?? -1) + 1, number == place.line ? place.offset + 1 : 1)
            if number == place.line { cursor = (cells.count + place.offset / columns, place.offset % columns) }
            for start in stride(from: 0, to: end, by: columns) {
                if start > 0 { continued.insert(cells.count) }
                let part = line[start..<min(start + columns, line.count)]
                cells.append(part + Array(repeating: " ", count: columns - part.count))
            }
        }
    }

    mutating func write(_ bytes: some Sequence<UInt8>) {
        for byte in bytes { write(byte) }
    }

    private mutating func write(_ byte: UInt8) {
        switch input {
        case .text: text(byte)
        case .escape: escape(byte)
        case .charset: input = .text
        case .command:
            if byte == 0x07 || byte == UInt8(ascii: "\\") { input = .text }
        case .control(let before):
            if (0x40...0x7e).contains(byte) {
                input = .text
                control(before, byte)
            } else {
                input = .control(before + [byte])
            }
        }
    }

    private mutating func text(_ byte: UInt8) {
        if byte >= 0x80 || !pending.isEmpty {
            pending.append(byte)
            guard let scalars = String(validating: pending, as: UTF8.self) else { return }
            pending = []
            for character in scalars { put(character) }
            return
        }
        switch byte {
        case 0x1b: input = .escape
        case 0x0d: move(column: 0)
        case 0x0a, 0x0b, 0x0c: lineFeed()
        case 0x08: move(column: cursor.column - 1)
        case 0x09: move(column: (cursor.column / 8 + 1) * 8)
        case 0x20...0x7e: put(Character(Unicode.Scalar(byte)))
        default: break
        }
    }

    private mutating func escape(_ byte: UInt8) {
        input = .text
        switch byte {
        case UInt8(ascii: "["): input = .control([])
        case UInt8(ascii: "]"): input = .command
        case UInt8(ascii: "("), UInt8(ascii: ")"): input = .charset
        case UInt8(ascii: "7"): saved = cursor
        case UInt8(ascii: "8"): cursor = saved
        case UInt8(ascii: "M"):
            if cursor.row == scroll.lowerBound { shift(scroll, by: -1) } else { move(row: cursor.row - 1) }
        default: break
        }
    }

    private mutating func put(_ character: Character) {
        if isWrapDue, continuesLines {
            move(column: 0)
            lineFeed()
        }
        cells[cursor.row][cursor.column] = character
        if cursor.column == columns - 1 { isWrapDue = true } else { cursor.column += 1 }
    }

    private mutating func lineFeed() {
        isWrapDue = false
        if cursor.row == scroll.upperBound - 1 { shift(scroll, by: 1) } else { move(row: cursor.row + 1) }
    }

    private mutating func move(row: Int? = nil, column: Int? = nil) {
        isWrapDue = false
        if let row { cursor.row = max(0, min(rows - 1, row)) }
        if let column { cursor.column = max(0, min(columns - 1, column)) }
    }

    /// Moves lines of a part of the screen up, or down if `count` is negative.
    private mutating func shift(_ range: Range<Int>, by count: Int) {
        guard !range.isEmpty else { return }
        let old = cells
        continued = Set(continued.map { range.contains($0) ? $0 - count : $0 })
        for row in range {
            let source = row + count
            cells[row] = range.contains(source) ? old[source] : Array(repeating: " ", count: columns)
        }
    }

    private mutating func control(_ parameters: [UInt8], _ final: UInt8) {
        let isPrivate = parameters.first == UInt8(ascii: "?")
        let numbers = parameters.drop { $0 == UInt8(ascii: "?") || $0 == UInt8(ascii: ">") }
            .split(separator: UInt8(ascii: ";"), omittingEmptySubsequences: false)
            .map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
        let count = max(1, numbers.first ?? 1)
        switch Character(Unicode.Scalar(final)) {
        case "A": move(row: cursor.row - count)
        case "B", "e": move(row: cursor.row + count)
        case "C", "a": move(column: cursor.column + count)
        case "D": move(column: cursor.column - count)
        case "E": move(row: cursor.row + count, column: 0)
        case "F": move(row: cursor.row - count, column: 0)
        case "G", "`": move(column: count - 1)
        case "d": move(row: count - 1)
        case "H", "f": move(row: count - 1, column: max(1, numbers.count > 1 ? numbers[1] : 1) - 1)
        case "J": clear(screen: numbers.first ?? 0)
        case "K": clear(line: numbers.first ?? 0)
        case "X": erase(cursor.row, cursor.column..<min(columns, cursor.column + count))
        case "@": insert(count)
        case "P": delete(count)
        case "L": shift(cursor.row..<scroll.upperBound, by: -count)
        case "M": shift(cursor.row..<scroll.upperBound, by: count)
        case "S": shift(scroll, by: count)
        case "T": shift(scroll, by: -count)
        case "b": for _ in 0..<count where cursor.column > 0 { put(cells[cursor.row][cursor.column - 1]) }
        case "r": setScroll(numbers)
        case "h" where isPrivate: set(numbers, true)
        case "l" where isPrivate: set(numbers, false)
        default: break
        }
    }

    private mutating func setScroll(_ numbers: [Int]) {
        let top = max(1, numbers.first ?? 1)
        let bottom = numbers.count > 1 && numbers[1] > 0 ? numbers[1] : rows
        guard top < bottom, bottom <= rows else { return }
        scroll = top - 1..<bottom
        move(row: 0, column: 0)
    }

    private mutating func set(_ modes: [Int], _ isOn: Bool) {
        for mode in modes {
            switch mode {
            case 1: sendsApplicationKeys = isOn
            case 7: continuesLines = isOn
            case 25: isCursorVisible = isOn
            case 1047, 1049:
                guard isOn != isAlternate else { continue }
                isAlternate = isOn
                if isOn {
                    (savedCells, savedCursor) = (cells, cursor)
                    cells = Self.blank(columns, rows)
                } else {
                    let size = (columns, rows)
                    cells = savedCells
                    cursor = savedCursor
                    resize(columns: size.0, rows: size.1)
                }
            default: break
            }
        }
    }

    private mutating func clear(screen mode: Int) {
        if mode == 0 {
            clear(line: 0)
            for row in cursor.row + 1..<max(rows, cursor.row + 1) { erase(row, 0..<columns) }
        } else {
            for row in 0..<(mode == 1 ? cursor.row : rows) { erase(row, 0..<columns) }
            if mode == 1 { clear(line: 1) }
        }
    }

    private mutating func clear(line mode: Int) {
        switch mode {
        case 0: erase(cursor.row, cursor.column..<columns)
        case 1: erase(cursor.row, 0..<cursor.column + 1)
        default: erase(cursor.row, 0..<columns)
        }
    }

    private mutating func erase(_ row: Int, _ range: Range<Int>) {
        if range.count == columns { continued.remove(row) }
        for column in range { cells[row][column] = " " }
    }

    private mutating func insert(_ count: Int) {
        let blanks = Array(repeating: Character(" "), count: min(count, columns))
        cells[cursor.row].insert(contentsOf: blanks, at: cursor.column)
        cells[cursor.row] = Array(cells[cursor.row].prefix(columns))
    }

    private mutating func delete(_ count: Int) {
        let end = min(columns, cursor.column + count)
        cells[cursor.row].removeSubrange(cursor.column..<end)
        cells[cursor.row] += Array(repeating: " ", count: columns - cells[cursor.row].count)
    }

    private static func blank(_ columns: Int, _ rows: Int) -> [[Character]] {
        Array(repeating: Array(repeating: " ", count: columns), count: rows)
    }
}
