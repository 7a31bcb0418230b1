import CLibXML2
import PodcastModel

/// Collects the podcasts of an OPML document from the elements that libxml2 reports.
struct OPMLReader {
    /// An outline whose end wasn’t reached.
    private struct Open {
        var name: String
        var line: Int
        var isFolder: Bool
        var isEmpty = true
        /// Whether an entry without an address and content is a broken one.
        var isExpected: Bool
    }

    private let name: String
    private let limits: OPMLDocument.Limits
    private var document = OPMLDocument()
    private var open: [Open] = []
    private var count = 0
    private var isComplete = false
    private var depth = 0
    var progress = XMLProgress()

    init(name: String, limits: OPMLDocument.Limits) {
        self.name = name
        self.limits = limits
    }

    mutating func start(_ element: String, _ attributes: XMLAttributes) {
        guard progress.failure == nil, !isComplete else { return }
        depth += 1
        let element = element.lowercased()
        guard depth > 1 else { return root(element) }
        guard element == "outline" else { return }
        count += 1
        guard count <= limits.outlines else {
            return progress.stop(
                Failure(
                    .tooLarge,
                    "\(name) has more than \(limits.outlines) entries, and wasn’t imported. Divide it into several lists."
                ))
        }
        guard open.count < limits.depth else {
            return progress.stop(
                Failure(
                    .tooLarge,
                    "\(name) has more than \(limits.depth) folders in each other, at line \(progress.line), and wasn’t imported."
                ))
        }
        outline(attributes)
    }

    private mutating func root(_ element: String) {
        switch element {
        case "opml": break
        case "rss", "rdf", "feed":
            progress.stop(
                OPMLDocument.malformed(
                    name, "it is the feed of one podcast. Subscribe to it with `lockstep subscribe`"))
        case "html": progress.stop(OPMLDocument.malformed(name, "it is a web page"))
        default: progress.stop(OPMLDocument.malformed(name, "its first element is <\(element.prefix(60))>"))
        }
    }

    private mutating func outline(_ attributes: XMLAttributes) {
        let text = attributes["text"] ?? attributes["Text"] ?? ""
        let title = attributes["title"] ?? attributes["Title"] ?? ""
        let feedTitle = attributes["feedTitle", in: OPMLDocument.namespace]
        let shown = text.isEmpty ? title : text
        let type = (attributes["type"] ?? "").lowercased()
        let given = attributes["xmlUrl"] ?? attributes["xmlurl"] ?? attributes["xmlURL"] ?? attributes["XMLURL"]
        let other = attributes["url"] ?? ""
        let url = String((given ?? (type == "rss" ? other : "")).trimmed)
        if !open.isEmpty { open[open.count - 1].isEmpty = false }
        var entry = Open(
            name: shown, line: progress.line, isFolder: url.isEmpty,
            isExpected: ["", "rss", "atom", "rdf", "feed"].contains(type))
        if !url.isEmpty {
            document.outlines.append(
                OPMLDocument.Outline(
                    url, title: feedTitle ?? (title.isEmpty ? text : title), ownTitle: feedTitle == nil ? "" : shown,
                    tags: tags, line: progress.line))
        } else if ["include", "link"].contains(type), !other.isEmpty {
            entry.isExpected = false
            refuse(shown.isEmpty ? other : shown, "it refers to another list or page, which isn’t read")
        }
        open.append(entry)
    }

    /// The folders that are open, each once.
    private var tags: [String] {
        var tags: [String] = []
        for folder in open where folder.isFolder {
            guard let tag = PodcastTag.tag(forFolder: folder.name) else { continue }
            if !tags.contains(where: { PodcastTag.key($0) == PodcastTag.key(tag) }) { tags.append(tag) }
        }
        return tags
    }

    private mutating func refuse(_ name: String, _ reason: String, line: Int? = nil) {
        document.problems.append(
            OPMLDocument.Problem(line: line ?? progress.line, name: String(name.prefix(200)), reason: reason))
    }

    mutating func end(_ element: String) {
        guard progress.failure == nil, !isComplete else { return }
        depth -= 1
        if depth == 0 { isComplete = true }
        guard element.lowercased() == "outline", let entry = open.popLast() else { return }
        guard entry.isFolder, entry.isEmpty, entry.isExpected else { return }
        refuse(entry.name, "it has no address of a feed (xmlUrl)", line: entry.line)
    }

    /// Ends the document; what was read of a truncated one counts.
    mutating func finish() throws(Failure) -> OPMLDocument {
        if count == 0, depth == 0, !isComplete {
            throw OPMLDocument.malformed(name, progress.firstProblem.map(Self.words) ?? "it has no element")
        }
        if !isComplete {
            // An address at the end may be cut off.
            if open.last?.isFolder == false { document.outlines.removeLast() }
            let place = progress.firstProblem.map { "at line \($0.line), where the XML is broken" } ?? "before its end"
            refuse(
                "", "the list can’t be read to its end: it stops \(place)",
                line: progress.firstProblem?.line ?? progress.line)
        }
        document.problems.sort { $0.line < $1.line }
        return document
    }

    private static func words(_ problem: (message: String, line: Int)) -> String {
        "the XML is broken at line \(problem.line): \(problem.message.trimmed)"
    }
}

extension OPMLReader: XMLDocumentReader {
    /// The callbacks. Without those for entities, none is stored or expanded.
    static var handler: xmlSAXHandler {
        var handler = xmlSAXHandler()
        handler.initialized = 0xDEED_BEAF  // XML_SAX2_MAGIC: the namespace-aware callbacks are used.
        handler.startElementNs = { data, name, _, _, _, _, attributeCount, _, attributes in
            guard let reader = opmlReader(data), let name else { return }
            reader.pointee.start(
                String(cString: name), XMLAttributes(fields: attributes, count: Int(attributeCount)))
        }
        handler.endElementNs = { data, name, _, _ in
            guard let name else { return }
            opmlReader(data)?.pointee.end(String(cString: name))
        }
        handler.serror = { data, error in
            guard let error else { return }
            let message = error.pointee.message.map { String(cString: $0) } ?? "error"
            opmlReader(data)?.pointee.problem(message, line: Int(error.pointee.line))
        }
        return handler
    }
}

private func opmlReader(_ data: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<OPMLReader>? {
    data?.assumingMemoryBound(to: OPMLReader.self)
}
