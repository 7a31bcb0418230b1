import FeedParsing

/// Show notes as plain text: paragraphs, bullets, and links by number. Pure; nothing of them can steer a terminal.
struct ShowNotes: Sendable, Hashable {
    /// A link, numbered from 1 in order of its first place.
    struct Link: Sendable, Hashable {
        var number: Int
        /// What it is called there; empty: only its address is shown.
        var text: String
        var url: String
    }

    /// A line for each paragraph, heading or item; an empty one between paragraphs.
    private(set) var lines: [String] = []
    /// The links that the text's `[1]` stand for.
    private(set) var links: [Link] = []

    /// Reads HTML, or plain text with or without addresses in it.
    init(_ html: String) {
        var reader = NotesReader(html)
        reader.read()
        lines = reader.lines
        while lines.first?.isEmpty ?? false { lines.removeFirst() }
        while lines.last?.isEmpty ?? false { lines.removeLast() }
        links = reader.links
    }

    /// The text with the list of links under it, each line at most `width` columns wide where that is known. Addresses are
    /// not broken.
    func text(width: Int?) -> [String] {
        var text = lines.flatMap { line -> [String] in
            guard let width else { return [line] }
            return DisplayText.wrapped(line, to: width, indent: line.hasPrefix(Self.bullet) ? 2 : 0)
        }
        if !links.isEmpty {
            text += [""] + links.map { "[\($0.number)] \($0.url)" }
        }
        return text
    }

    static let bullet = "• "
}

/// Goes through a piece of HTML once.
private struct NotesReader {
    private(set) var lines: [String] = []
    private(set) var links: [ShowNotes.Link] = []
    private var rest: Substring
    private var line = ""
    private var isQuiet = false
    private var link: (url: String, text: String)?
    private let isMarkup: Bool

    init(_ html: String) {
        rest = html[...]
        isMarkup = html.contains("<")
    }

    mutating func read() {
        while let character = rest.first {
            if character == "<", let tag = takeTag() {
                apply(tag)
            } else if character == "&" {
                add(takeEntity())
            } else {
                rest.removeFirst()
                // Lines of plain text are lines; those of HTML are not.
                if character.isNewline, !isMarkup { endLine() } else { add(String(character)) }
            }
        }
        endLink()
        endLine()
    }

    private mutating func add(_ text: String) {
        guard !isQuiet else { return }
        line += text
        link?.text += text
    }

    /// Ends the line; an empty one stays one, so that paragraphs are apart.
    private mutating func endLine(paragraph: Bool = false) {
        let text = DisplayText.sanitised(line)
        line = ""
        if !text.isEmpty, text != ShowNotes.bullet.dropLast() { lines.append(text) }
        if paragraph || (text.isEmpty && !isMarkup), let last = lines.last, !last.isEmpty { lines.append("") }
    }

    // MARK: Tags

    private struct Tag {
        var name: String
        var isEnd: Bool
        var attributes: Substring
    }

    /// A tag at the beginning of what is left; nil: the character stands for itself.
    private mutating func takeTag() -> Tag? {
        if rest.hasPrefix("<!--") {
            rest = rest.firstRange(of: "-->").map { rest[$0.upperBound...] } ?? ""
            return Tag(name: "", isEnd: false, attributes: "")
        }
        var inner = rest.dropFirst()
        let isEnd = inner.first == "/"
        if isEnd { inner = inner.dropFirst() }
        guard let first = inner.first, first.isASCII, first.isLetter || first == "!" || first == "?" else { return nil }
        guard let end = Self.end(of: inner) else {
            // Cut off in the middle of a tag.
            rest = ""
            return Tag(name: "", isEnd: false, attributes: "")
        }
        let name = inner.prefix { $0.isASCII && ($0.isLetter || $0.isNumber) }
        let attributes = inner[name.endIndex..<end]
        rest = rest[rest.index(after: end)...]
        return Tag(name: name.lowercased(), isEnd: isEnd, attributes: attributes)
    }

    /// Where a tag ends: the first `>` that is not between quotes; nil: nowhere.
    private static func end(of text: Substring) -> Substring.Index? {
        var quote: Character?
        var previous: Character = " "
        for index in text.indices {
            let character = text[index]
            if let open = quote {
                if character == open { quote = nil }
            } else if character == ">" {
                return index
            } else if character == "\"" || character == "'", previous == "=" || previous.isWhitespace {
                quote = character
            }
            previous = character
        }
        // A quote that is never closed: the tag ends where it would without it.
        return text.firstIndex(of: ">")
    }

    private mutating func apply(_ tag: Tag) {
        switch tag.name {
        case "script", "style", "head", "title": isQuiet = !tag.isEnd
        case "p", "div", "ul", "ol", "table", "blockquote", "pre", "h1", "h2", "h3", "h4", "h5", "h6", "section":
            endLine(paragraph: true)
        case "br", "tr", "dt", "dd": endLine()
        case "td", "th": add(" ")
        case "hr": endLine(paragraph: true)
        case "li":
            endLine()
            if !tag.isEnd { line = ShowNotes.bullet }
        case "img": if let alt = attribute("alt", in: tag.attributes), !alt.isEmpty { add("[\(alt)]") }
        case "a":
            endLink()
            if !tag.isEnd, let url = attribute("href", in: tag.attributes).flatMap(Self.address) { link = (url, "") }
        default: break
        }
    }

    /// Puts a link's number behind its words, unless they are the address itself.
    private mutating func endLink() {
        guard let (url, words) = link else { return }
        link = nil
        let text = DisplayText.sanitised(words)
        let known = links.first { $0.url == url }
        if known == nil { links.append(.init(number: links.count + 1, text: text == url ? "" : text, url: url)) }
        guard let number = known?.number ?? links.last?.number, !isQuiet else { return }
        line += text.isEmpty ? "[\(number)]" : " [\(number)]"
    }

    /// An address that can be shown and followed; nil for anything else, such as a script.
    private static func address(_ text: String) -> String? {
        let url = DisplayText.sanitised(text)
        let scheme = url.prefix { $0 != ":" }.lowercased()
        guard ["http", "https", "mailto"].contains(scheme), !url.contains(" "), url.utf8.count <= 2_000 else {
            return nil
        }
        return url
    }

    private func attribute(_ name: String, in attributes: Substring) -> String? {
        var rest = attributes
        while let equals = rest.firstIndex(of: "=") {
            let key = rest[..<equals].split(whereSeparator: { $0.isWhitespace || $0 == "/" }).last ?? ""
            var value = rest[rest.index(after: equals)...].drop { $0.isWhitespace }
            let text: Substring
            if let quote = value.first, quote == "\"" || quote == "'" {
                value = value.dropFirst()
                text = value.prefix { $0 != quote }
                rest = value[text.endIndex...].dropFirst()
            } else {
                text = value.prefix { !$0.isWhitespace }
                rest = value[text.endIndex...]
            }
            if key.lowercased() == name { return Self.decoded(text) }
        }
        return nil
    }

    // MARK: Entities

    private static func decoded(_ text: Substring) -> String {
        var reader = NotesReader("")
        reader.rest = text
        var result = ""
        while let character = reader.rest.first {
            if character == "&" {
                result += reader.takeEntity()
            } else {
                result.append(character)
                reader.rest.removeFirst()
            }
        }
        return result
    }

    /// What an entity stands for; an ampersand that begins none stands for itself.
    private mutating func takeEntity() -> String {
        rest.removeFirst()
        let name = rest.prefix(12).prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "#") }
        guard !name.isEmpty, name.endIndex < rest.endIndex, rest[name.endIndex] == ";", let text = Self.meaning(name)
        else { return "&" }
        rest = rest[rest.index(after: name.endIndex)...]
        return text
    }

    private static func meaning(_ name: Substring) -> String? {
        if let text = predefined[String(name)] { return text }
        if let scalar = HTMLEntities.named[String(name)] { return String(Character(scalar)) }
        guard name.hasPrefix("#") else { return nil }
        let digits = name.dropFirst()
        let isHexadecimal = digits.first == "x" || digits.first == "X"
        let code = isHexadecimal ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
        return code.flatMap(Unicode.Scalar.init).map { String(Character($0)) }
    }

    /// XML's own.
    private static let predefined = ["lt": "<", "gt": ">", "quot": "\"", "apos": "'", "amp": "&"]
}
