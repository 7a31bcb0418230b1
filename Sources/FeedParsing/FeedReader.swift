import PodcastModel

/// Builds a document from the elements of a feed, which libxml2 reports in document order.
struct FeedReader {
    /// The meaning of an open element.
    private enum Frame { case container, item, image, person, field, inner, ignored }

    private let limits: FeedLimits
    private var builder: FeedBuilder
    private var frames: [Frame] = []
    private var tags: [Name: FeedTag] = [:]
    /// The element whose text is being collected, and its depth.
    private var field: (tag: FeedTag, depth: Int)?
    private var text: [UInt8] = []
    private var itemDepth: Int?
    private var sawHTMLType = false
    private var firstProblem: (message: String, line: Int)?
    private var problems = 0

    /// The failure that refuses the document.
    private(set) var failure: Failure?
    /// Whether the first element has begun.
    private(set) var hasRoot = false
    /// Whether the first element has ended.
    private(set) var isComplete = false

    static let webPage = Failure(.notAFeed, "This is a web page, not a podcast feed.")

    init(limits: FeedLimits) {
        self.limits = limits
        builder = FeedBuilder(limits: limits)
    }

    /// A name, identified by its address, because libxml2 stores each name once.
    private struct Name: Hashable {
        let local: UnsafePointer<UInt8>
        let prefix: UnsafePointer<UInt8>?
        let uri: UnsafePointer<UInt8>?
    }

    /// Handles the start of an element. Pointers of equal names are equal throughout one document.
    mutating func start(
        _ name: UnsafePointer<UInt8>, prefix: UnsafePointer<UInt8>?, uri: UnsafePointer<UInt8>?,
        _ attributes: XMLAttributes
    ) {
        guard failure == nil, !isComplete else { return }
        guard hasRoot else {
            root(String(cString: name))
            frames.append(.container)
            return
        }
        let tag = resolve(Name(local: name, prefix: prefix, uri: uri))
        if tag == .item { return beginItem() }
        if field != nil {
            guard tag.isUnmistakable else {
                frames.append(.inner)
                return
            }
            // The previous element wasn’t closed.
            closeField()
        }
        frames.append(frame(tag, attributes))
        if frames.last == .field {
            field = (tag, frames.count)
            text.removeAll(keepingCapacity: true)
        }
    }

    /// Handles the end of the innermost element.
    mutating func end() {
        guard let frame = frames.popLast() else { return }
        if let field, field.depth == frames.count + 1 { closeField() }
        if frame == .item, itemDepth == frames.count + 1 { endItem() }
        if frames.isEmpty { isComplete = true }
    }

    mutating func text(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard field != nil else { return }
        let room = limits.text - text.count
        if bytes.count <= room {
            text.append(contentsOf: bytes)
        } else if room > 0 {
            text.append(contentsOf: bytes.prefix(room))
            builder.warn("longText", "A text was truncated at \(limits.text >> 10) KiB")
        }
    }

    /// Adds the text of an entity that isn’t one of XML’s five.
    mutating func reference(_ name: String) {
        guard field != nil else { return }
        if let known = HTMLEntities.named[name] {
            text.append(contentsOf: String(known).utf8)
        } else {
            text.append(contentsOf: "&\(name);".utf8)
        }
        builder.warn("undeclaredEntity", "The feed uses an entity that it doesn’t declare")
    }

    /// Records the root name of the document’s DTD.
    mutating func documentType(_ name: String) {
        sawHTMLType = name.lowercased() == "html"
    }

    /// Refuses documents that declare dangerous entities.
    mutating func declared(entity name: String, isPlain: Bool, externalName: String?) {
        guard failure == nil else { return }
        if let externalName {
            failure = Failure(
                .notAFeed,
                "This feed is refused: it refers to the external file “\(externalName.prefix(200))”.")
        } else if !isPlain {
            failure = Failure(
                .notAFeed, "This feed is refused: it declares entities that expand into others (“\(name.prefix(60))”).")
        }
    }

    mutating func problem(_ message: String, line: Int) {
        problems += 1
        if firstProblem == nil {
            firstProblem = (String(message.prefix { $0 != "\n" }.prefix(200)), line)
        }
    }

    /// Returns the document, or throws the reason why it can’t be read.
    mutating func finish(repairs: FeedRepairs, stoppedAt line: Int?) throws(Failure) -> FeedDocument {
        if let failure { throw failure }
        guard hasRoot else {
            let detail = firstProblem.map { " (line \($0.line): \($0.message))" } ?? ""
            throw Failure(.notAFeed, "This isn’t a podcast feed: it has no XML element\(detail).")
        }
        if let line, !isComplete {
            builder.warn("givenUp", "The feed couldn’t be parsed beyond line \(line)")
        } else if !isComplete {
            builder.warn("cutOff", "The feed is truncated")
        } else {
            closeField()
            endItem()
        }
        if let firstProblem {
            builder.warn(
                "malformed", "The XML is not well-formed, first at line \(firstProblem.line): \(firstProblem.message)",
                count: problems)
        }
        builder.warn(repairs)
        return builder.document()
    }

    // MARK: - Structure

    private mutating func root(_ name: String) {
        hasRoot = true
        switch name.lowercased() {
        case "rss", "rdf", "feed", "channel": break
        case "html": failure = Self.webPage
        case "opml":
            failure = Failure(
                .notAFeed,
                "This is an OPML list of feeds, not a podcast feed. Save it as a file, and use `lockstep import FILE`.")
        case _ where sawHTMLType: failure = Self.webPage
        case let other:
            failure = Failure(
                .notAFeed, "This isn’t a podcast feed: its first element is <\(other.prefix(60))>.")
        }
    }

    private mutating func resolve(_ name: Name) -> FeedTag {
        if let known = tags[name] { return known }
        let prefix = name.prefix.map { String(cString: $0) }
        let uri = name.uri.map { String(cString: $0) }
        let tag = FeedTag(String(cString: name.local), in: FeedTag.vocabulary(uri: uri, prefix: prefix))
        // The cache is limited, because a document may contain any number of names.
        if tags.count < 4_096 { tags[name] = tag }
        return tag
    }

    private mutating func beginItem() {
        closeField()
        endItem()
        frames.append(.item)
        itemDepth = frames.count
        builder.beginItem()
    }

    private mutating func endItem() {
        guard itemDepth != nil else { return }
        itemDepth = nil
        builder.endItem()
    }

    private mutating func closeField() {
        guard let open = field else { return }
        field = nil
        let inner = frames.count >= open.depth - 1 ? frames.prefix(open.depth - 1).last : frames.last
        builder.set(open.tag, text, inImage: inner == .image)
    }

    /// Determines the meaning of an element, and reads its attributes.
    private mutating func frame(_ tag: FeedTag, _ attributes: XMLAttributes) -> Frame {
        let parent = frames.last ?? .ignored
        switch (parent, tag) {
        case (.ignored, _) where !(itemDepth != nil && tag.isUnmistakable): return .ignored
        case (_, .channel): return .container
        case (_, .image): return .image
        case (_, .person): return .person
        case (.person, .name): return .field
        case (.person, _), (_, .name): return .ignored
        case (.image, .url): return .field
        case (.image, _): return .ignored
        case (_, .itunesImage):
            builder.setImage(attributes["href"] ?? attributes["url"] ?? "")
            return .field
        case (_, .enclosure), (_, .media):
            builder.addEnclosure(
                url: attributes["url"], type: attributes["type"],
                length: attributes["length"] ?? attributes["fileSize"], isPrimary: tag == .enclosure)
        case (_, .chapters): builder.setChapters(attributes["url"] ?? "")
        case (_, .transcript): builder.addTranscript(attributes["url"] ?? "", type: attributes["type"] ?? "")
        case (_, .simpleChapter):
            builder.addChapter(
                start: attributes["start"], title: attributes["title"], url: attributes["href"],
                image: attributes["image"])
        case (_, .link):
            guard let address = attributes["href"] else { return .field }
            builder.addLink(
                address, relation: attributes["rel"], type: attributes["type"], length: attributes["length"])
        case (_, .simpleChapters), (_, .other): break
        default: return .field
        }
        return .ignored
    }
}
