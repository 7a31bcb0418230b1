import LockstepClient
import PodcastModel

/// Show notes as plain text: paragraphs, bullets, and numbered links, without terminal control characters.
struct ShowNotes: Sendable, Hashable {
    /// A link; links are numbered from 1 in order.
    struct Link: Sendable, Hashable {
        let number: Int
        /// The link’s text; if empty, only the address is shown.
        let text: String
        let url: String
    }

    /// A line for each paragraph, heading or item, with empty lines between paragraphs.
    private(set) var lines: [String] = []
    /// The links that `[1]` and so on refer to.
    private(set) var links: [Link] = []

    /// Parses HTML, or plain text with or without addresses.
    init(_ html: String) {
        var reader = NotesReader(isMarkup: html.contains("<"))
        reader.read(HTMLText(Array(html.utf8)))
        lines = reader.lines
        while lines.first?.isEmpty ?? false { lines.removeFirst() }
        while lines.last?.isEmpty ?? false { lines.removeLast() }
        links = reader.links
    }

    /// The text and the list of links, wrapped to `width` columns; nil for no limit. Addresses aren’t split.
    func text(width: Int?) -> [String] {
        var text = lines.flatMap { line -> [String] in
            guard let width else { return [line] }
            return DisplayText.wrapped(line, to: width, indent: line.hasPrefix(Self.bullet) ? 2 : 0)
        }
        if !links.isEmpty { text += [""] + links.map { "[\($0.number)] \($0.url)" } }
        return text
    }

    static let bullet = "• "
}

/// Converts the texts and tags of HTML to lines.
private struct NotesReader {
    private(set) var lines: [String] = []
    private(set) var links: [ShowNotes.Link] = []
    private var line = ""
    private var isQuiet = false
    private var link: (url: String, text: String)?
    private let isMarkup: Bool

    init(isMarkup: Bool) { self.isMarkup = isMarkup }

    mutating func read(_ html: HTMLText) {
        for event in html {
            switch event {
            case .text(let bytes): addLines(of: String(decoding: bytes, as: UTF8.self))
            case .character(let character): add(String(character))
            case .tag(let tag): apply(tag)
            }
        }
        endLink()
        endLine()
    }

    /// Adds text; line breaks of plain text are preserved, those of HTML aren’t.
    private mutating func addLines(of text: String) {
        guard !isMarkup else { return add(text) }
        for (index, part) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            if index > 0 { endLine() }
            add(String(part))
        }
    }

    private mutating func add(_ text: String) {
        guard !isQuiet else { return }
        line += text
        link?.text += text
    }

    /// Ends the line; empty lines are kept to separate paragraphs.
    private mutating func endLine(paragraph: Bool = false) {
        let text = DisplayText.sanitised(line)
        line = ""
        if !text.isEmpty, text != ShowNotes.bullet.dropLast() { lines.append(text) }
        if paragraph || (text.isEmpty && !isMarkup), let last = lines.last, !last.isEmpty { lines.append("") }
    }

    private mutating func apply(_ tag: HTMLText.Tag) {
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
        case "img": if let alt = tag.attribute("alt"), !alt.isEmpty { add("[\(alt)]") }
        case "a":
            endLink()
            if !tag.isEnd, let url = tag.attribute("href").flatMap(Self.address) { link = (url, "") }
        default: break
        }
    }

    /// Adds a link’s number after its text.
    private mutating func endLink() {
        guard let (url, words) = link else { return }
        link = nil
        let text = DisplayText.sanitised(words)
        let known = links.first { $0.url == url }
        if known == nil { links.append(.init(number: links.count + 1, text: text == url ? "" : text, url: url)) }
        guard let number = known?.number ?? links.last?.number, !isQuiet else { return }
        line += text.isEmpty ? "[\(number)]" : " [\(number)]"
    }

    /// Returns an address that is safe to show and open; nil for anything else, such as a script.
    private static func address(_ text: String) -> String? {
        let url = DisplayText.sanitised(text)
        let scheme = url.prefix { $0 != ":" }.lowercased()
        let isUsable = ["http", "https", "mailto"].contains(scheme) && !url.contains(" ") && url.utf8.count <= 2_000
        return isUsable ? url : nil
    }
}
