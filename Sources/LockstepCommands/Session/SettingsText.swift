import PodcastModel

/// Parses the subset of YAML for settings: keys and values, grouped by indentation or in braces, comments, and
/// quoted texts. Everything else is refused with its line.
struct SettingsText {
    enum Value: Equatable {
        /// A text; empty for no value, `~` and `null`.
        case text(String)
        case group([Entry])
        /// A list of values, which no setting accepts.
        case list
    }

    struct Entry: Equatable {
        let key: String
        let line: Int
        var value: Value
    }

    struct Problem: Error {
        let message: String

        init(_ message: String, line: Int) { self.message = "\(message) in line \(line)" }
    }

    let root: Value

    init(_ text: String) throws(Problem) {
        var lines: [SettingsLine] = []
        let text = text.hasPrefix("\u{feff}") ? text.dropFirst() : text[...]
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let line = try SettingsLine(line, number: index + 1)
            if line.isEmpty || line.indent == 0 && line.text == "---" { continue }
            if line.indent == 0, line.text == "..." { break }
            lines.append(line)
        }
        var rest = lines[...]
        root = try Self.block(&rest, deeperThan: -1)
        if let line = rest.first { throw Self.indentation(line) }
    }

    /// Parses the value in the next lines that are indented by more than `indent`.
    private static func block(_ lines: inout ArraySlice<SettingsLine>, deeperThan indent: Int) throws(Problem) -> Value
    {
        guard let first = lines.first, first.indent > indent else { return .text("") }
        if first.isListItem {
            lines = lines.drop { $0.indent > indent }
            return .list
        }
        var entries: [Entry] = []
        while let line = lines.first, line.indent > indent {
            guard line.indent == first.indent else { throw indentation(line) }
            lines.removeFirst()
            var entry = try line.entry()
            if entry.value == .text(""), let below = lines.first {
                // A list may be indented like its key.
                let isList = below.indent == line.indent && below.isListItem
                entry.value = try block(&lines, deeperThan: isList ? line.indent - 1 : line.indent)
            }
            try add(entry, to: &entries)
        }
        return .group(entries)
    }

    private static func indentation(_ line: SettingsLine) -> Problem {
        Problem("the indentation doesn’t match any line above it", line: line.number)
    }

    static func add(_ entry: Entry, to entries: inout [Entry]) throws(Problem) {
        if let other = entries.first(where: { $0.key == entry.key }) {
            throw Problem("“\(entry.key)” is set in line \(other.line), and again", line: entry.line)
        }
        entries.append(entry)
    }
}

/// A line without its indentation and comment.
private struct SettingsLine {
    let number: Int
    let indent: Int
    let text: Substring

    init(_ line: Substring, number: Int) throws(SettingsText.Problem) {
        self.number = number
        let content = line.drop { $0 == " " }
        indent = line.count - content.count
        var quote: Character?
        var before: Character = " "
        var end = content.endIndex
        for index in content.indices {
            let character = content[index]
            if quote == nil, character == "#", before.isWhitespace {
                end = index
                break
            }
            if quote == nil, character == "\"" || character == "'", before.isWhitespace || "[{,:".contains(before) {
                quote = character
            } else if character == quote, before != "\\" {
                quote = nil
            }
            before = character
        }
        text = content[..<end].trimmed
        if content.first == "\t", !text.isEmpty {
            throw SettingsText.Problem("tabs can’t be used for indentation; use spaces", line: number)
        }
    }

    var isEmpty: Bool { text.isEmpty }
    var isListItem: Bool { text == "-" || text.hasPrefix("- ") }

    /// Parses the key and the value of the line; an empty text if the value may be in the next lines.
    func entry() throws(SettingsText.Problem) -> SettingsText.Entry {
        var rest = text
        let entry = try entry(&rest, endingAt: [])
        guard rest.isEmpty else { throw problem("“\(rest)” isn’t expected") }
        return entry
    }

    private func problem(_ message: String) -> SettingsText.Problem { .init(message, line: number) }

    private func entry(
        _ rest: inout Substring, endingAt ends: Set<Character>
    ) throws(SettingsText.Problem) -> SettingsText.Entry {
        let key: String
        if let quote = rest.first, quote == "\"" || quote == "'" {
            key = try quoted(&rest)
        } else {
            let end = rest.indices.first { index in
                let next = rest.index(after: index)
                return rest[index] == ":" && (next == rest.endIndex || rest[next].isWhitespace)
            }
            guard let end else { throw problem("“\(rest)” isn’t a key with a value, such as “plain: true”,") }
            key = String(rest[..<end].trimmed)
            rest = rest[end...]
        }
        guard rest.first == ":" else { throw problem("a colon is missing after “\(key)”") }
        rest = rest.dropFirst().trimmed
        return .init(key: key, line: number, value: try value(&rest, endingAt: ends))
    }

    private func value(
        _ rest: inout Substring, endingAt ends: Set<Character>
    ) throws(SettingsText.Problem) -> SettingsText.Value {
        switch rest.first {
        case "\"", "'": return .text(try quoted(&rest))
        case "{": return .group(try group(&rest))
        case "[":
            guard let end = rest.firstIndex(of: "]") else { throw problem("“[” isn’t closed") }
            rest = rest[rest.index(after: end)...].trimmed
            return .list
        case let character? where "|>&*!%@`".contains(character):
            throw problem(
                "“\(character)” isn’t supported at the beginning of a value; put the value in quotation marks")
        default:
            let text = rest.prefix { !ends.contains($0) }
            rest = rest[text.endIndex...]
            let plain = String(text.trimmed)
            return .text(["~", "null"].contains(plain) ? "" : plain)
        }
    }

    private func group(_ rest: inout Substring) throws(SettingsText.Problem) -> [SettingsText.Entry] {
        var entries: [SettingsText.Entry] = []
        rest = rest.dropFirst().trimmed
        while rest.first != "}" {
            guard !rest.isEmpty else { throw problem("“{” isn’t closed") }
            try SettingsText.add(try entry(&rest, endingAt: [",", "}"]), to: &entries)
            if rest.first == "," { rest = rest.dropFirst().trimmed }
        }
        rest = rest.dropFirst().trimmed
        return entries
    }

    private func quoted(_ rest: inout Substring) throws(SettingsText.Problem) -> String {
        var text = ""
        guard let quote = rest.popFirst() else { return text }
        while let character = rest.popFirst() {
            if character == quote {
                // A doubled quote is an escaped quote.
                guard quote == "'", rest.first == quote else {
                    rest = rest.trimmed
                    return text
                }
                rest.removeFirst()
            } else if character == "\\", quote == "\"", let next = rest.popFirst() {
                guard "\"\\/".contains(next) else { throw problem("“\\\(next)” isn’t supported") }
                text.append(next)
                continue
            }
            text.append(character)
        }
        throw problem("\(quote) isn’t closed")
    }
}
