/// Sanitises external text (titles, messages) for a terminal, and measures it in columns.
package enum DisplayText {
    /// Returns the text without anything that moves the cursor, changes the terminal or reorders the line: control
    /// characters and line breaks become a space, runs of spaces one, and bidirectional controls are removed.
    package static func sanitised(_ text: String) -> String {
        if isPlain(text) { return text }
        var result = ""
        var pendingSpace = false
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator, .spaceSeparator:
                pendingSpace = !result.isEmpty
            case .format where scalar != "\u{200d}", .surrogate, .unassigned:
                continue
            default:
                if pendingSpace { result += " " }
                pendingSpace = false
                result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the title in quotation marks; its own ones become single, so that they don’t nest.
    package static func quoted(_ title: String) -> String {
        "“" + title.replacing("“", with: "‘").replacing("”", with: "’") + "”"
    }

    /// Whether a text needs no change: printable ASCII with single spaces between words.
    private static func isPlain(_ text: String) -> Bool {
        var before = UInt8(ascii: " ")
        for byte in text.utf8 {
            guard (0x21...0x7e).contains(byte) || byte == UInt8(ascii: " ") && before != byte else { return false }
            before = byte
        }
        return before != UInt8(ascii: " ") || text.isEmpty
    }

    /// Returns the terminal width in columns of a text without control characters.
    ///
    /// It counts scalars, like the C library’s `wcwidth` and most terminals.
    package static func width(_ text: String) -> Int {
        text.utf8.allSatisfy { (0x20...0x7e).contains($0) }
            ? text.utf8.count : text.unicodeScalars.reduce(0) { $0 + width($1) }
    }

    package static func width(_ scalar: Unicode.Scalar) -> Int {
        if scalar.value < 0x300 { return scalar.value == 0 ? 0 : 1 }
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: break
        }
        if (0x1160...0x11ff).contains(scalar.value) { return 0 }
        return wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }

    /// Returns the beginning of `text` that fits into `columns`, with `…` if it is truncated.
    package static func cut(_ text: String, to columns: Int) -> String {
        guard columns > 0 else { return "" }
        guard width(text) > columns else { return text }
        var result = ""
        var used = 0
        for character in text {
            let more = width(String(character))
            guard used + more <= columns - 1 else { break }
            result.append(character)
            used += more
        }
        return result + "…"
    }

    /// Truncates or pads `text` with spaces to exactly `columns`.
    package static func fitted(_ text: String, to columns: Int, right: Bool = false) -> String {
        let cut = cut(text, to: columns)
        let space = String(repeating: " ", count: max(0, columns - width(cut)))
        return right ? space + cut : cut + space
    }

    /// Blocks of East Asian wide and fullwidth characters and of emoji (Unicode 16, EastAsianWidth.txt, W and F).
    private static let wide: [ClosedRange<UInt32>] = [
        0x1100...0x115f, 0x231a...0x231b, 0x2329...0x232a, 0x23e9...0x23ec, 0x23f0...0x23f0, 0x23f3...0x23f3,
        0x25fd...0x25fe, 0x2614...0x2615, 0x2630...0x2637, 0x2648...0x2653, 0x267f...0x267f, 0x268a...0x268f,
        0x2693...0x2693, 0x26a1...0x26a1, 0x26aa...0x26ab, 0x26bd...0x26be, 0x26c4...0x26c5, 0x26ce...0x26ce,
        0x26d4...0x26d4, 0x26ea...0x26ea, 0x26f2...0x26f3, 0x26f5...0x26f5, 0x26fa...0x26fa, 0x26fd...0x26fd,
        0x2705...0x2705, 0x270a...0x270b, 0x2728...0x2728, 0x274c...0x274c, 0x274e...0x274e, 0x2753...0x2755,
        0x2757...0x2757, 0x2795...0x2797, 0x27b0...0x27b0, 0x27bf...0x27bf, 0x2b1b...0x2b1c, 0x2b50...0x2b50,
        0x2b55...0x2b55, 0x2e80...0x303e, 0x3041...0x33ff, 0x3400...0x4dbf, 0x4e00...0xa4cf, 0xa960...0xa97f,
        0xac00...0xd7a3, 0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6,
        0x16fe0...0x18dff, 0x1aff0...0x1b2ff, 0x1d300...0x1d376, 0x1f004...0x1f004, 0x1f0cf...0x1f0cf,
        0x1f18e...0x1f18e, 0x1f191...0x1f19a, 0x1f200...0x1f320, 0x1f32d...0x1f335, 0x1f337...0x1f37c,
        0x1f37e...0x1f393, 0x1f3a0...0x1f3ca, 0x1f3cf...0x1f3d3, 0x1f3e0...0x1f3f0, 0x1f3f4...0x1f3f4,
        0x1f3f8...0x1f43e, 0x1f440...0x1f440, 0x1f442...0x1f4fc, 0x1f4ff...0x1f53d, 0x1f54b...0x1f54e,
        0x1f550...0x1f567, 0x1f57a...0x1f57a, 0x1f595...0x1f596, 0x1f5a4...0x1f5a4, 0x1f5fb...0x1f64f,
        0x1f680...0x1f6c5, 0x1f6cc...0x1f6cc, 0x1f6d0...0x1f6d2, 0x1f6d5...0x1f6d7, 0x1f6dc...0x1f6df,
        0x1f6eb...0x1f6ec, 0x1f6f4...0x1f6fc, 0x1f7e0...0x1f7eb, 0x1f7f0...0x1f7f0, 0x1f90c...0x1f93a,
        0x1f93c...0x1f945, 0x1f947...0x1f9ff, 0x1fa70...0x1faff, 0x20000...0x3fffd,
    ]
}

extension DisplayText {
    /// Wraps a line at words into lines of at most `columns`; lines after the first are indented by `indent` spaces. A
    /// word that is longer than a line isn’t split.
    package static func wrapped(_ text: String, to columns: Int, indent: Int = 0) -> [String] {
        guard columns > 0, width(text) > columns else { return [text] }
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            let longer = line.isEmpty ? String(word) : "\(line) \(word)"
            if width(longer) <= columns || line.allSatisfy({ $0 == " " }) {
                line = longer
            } else {
                lines.append(line)
                line = String(repeating: " ", count: indent) + word
            }
        }
        return lines + [line]
    }
}
