import CLibXML2
package import PodcastModel

/// A feed that a web page links to.
package struct PageFeed: Sendable, Hashable {
    /// The address: http or https, without a user and password.
    package var address: WebAddress
    /// The title in the link; empty if it has none.
    package var title: String
}

/// Finds the feeds that a web page links to, by `<link rel="alternate" type="application/rss+xml" href="…">` or Atom.
package struct PageFeeds {
    /// The maximum number of bytes of a page that are read: links are in its head.
    package static let pageLimit = 1 << 20
    /// The maximum number of feeds of a page.
    package static let limit = 20

    private var base: WebAddress
    private var feeds: [PageFeed] = []

    private init(_ base: WebAddress) { self.base = base }

    /// Returns the feeds of a page, or of its beginning; each once, in order.
    ///
    /// - Parameter address: the address of the page.
    package static func find(in page: [UInt8], at address: WebAddress) -> [PageFeed] {
        XMLLibrary.isReady
        XMLLibrary.silence()
        let reader = UnsafeMutablePointer<PageFeeds>.allocate(capacity: 1)
        reader.initialize(to: PageFeeds(address))
        defer {
            reader.deinitialize(count: 1)
            reader.deallocate()
        }
        var handler = xmlSAXHandler()
        handler.startElement = { data, name, attributes in
            guard let name else { return }
            data?.assumingMemoryBound(to: PageFeeds.self).pointee.start(String(cString: name), attributes)
        }
        guard let context = htmlCreatePushParserCtxt(&handler, reader, nil, 0, nil, encoding(of: page)) else {
            return []
        }
        defer { htmlFreeParserCtxt(context) }
        let options = HTML_PARSE_RECOVER.rawValue | HTML_PARSE_NONET.rawValue | HTML_PARSE_NOERROR.rawValue
        htmlCtxtUseOptions(context, Int32(bitPattern: options | HTML_PARSE_NOWARNING.rawValue))
        for start in stride(from: 0, to: min(page.count, pageLimit), by: 16 << 10) {
            page[start..<min(page.count, pageLimit, start + 16 << 10)].withUnsafeBytes { bytes in
                let text = bytes.bindMemory(to: CChar.self)
                _ = htmlParseChunk(context, text.baseAddress, Int32(clamping: text.count), 0)
            }
        }
        htmlParseChunk(context, nil, 0, 1)
        if let document = context.pointee.myDoc { xmlFreeDoc(document) }
        context.pointee.myDoc = nil
        return reader.pointee.found
    }

    /// UTF-8 if the page is valid as such, although the parser’s default is Latin-1.
    private static func encoding(of page: [UInt8]) -> xmlCharEncoding {
        // The page may end within a character.
        var text = page.prefix(pageLimit)
        for _ in 0..<3 where text.last ?? 0 >= 0x80 { text.removeLast() }
        return String(validating: text, as: UTF8.self) == nil ? XML_CHAR_ENCODING_NONE : XML_CHAR_ENCODING_UTF8
    }

    /// The feeds without those of comments, unless there are no others.
    private var found: [PageFeed] {
        let podcasts = feeds.filter { !$0.address.path.contains("/comments/feed") }
        return podcasts.isEmpty ? feeds : podcasts
    }

    private mutating func start(_ element: String, _ attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) {
        switch element.lowercased() {
        case "base":
            guard let address = WebAddress(Self.value("href", attributes), relativeTo: base) else { return }
            base = address
        case "link":
            guard feeds.count < Self.limit, Self.isFeed(attributes),
                let address = WebAddress(Self.value("href", attributes), relativeTo: base)?.withoutCredentials,
                !address.isFile, !feeds.contains(where: { $0.address.identity == address.identity })
            else { return }
            feeds.append(PageFeed(address: address, title: PodcastTitle.fitted(Self.value("title", attributes))))
        default: return
        }
    }

    private static func isFeed(_ attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) -> Bool {
        let relations = value("rel", attributes).lowercased().split(whereSeparator: \.isWhitespace)
        let type = value("type", attributes).lowercased().prefix { $0 != ";" }
        return relations.contains("alternate")
            && ["application/rss+xml", "application/atom+xml"].contains(type.filter { !$0.isWhitespace })
    }

    /// The value of an attribute; empty if there is none. The list alternates names and values, and ends with nil.
    private static func value(_ name: String, _ attributes: UnsafeMutablePointer<UnsafePointer<UInt8>?>?) -> String {
        guard var next = attributes else { return "" }
        while let key = next.pointee {
            if String(cString: key).lowercased() == name {
                return next.successor().pointee.map { String(cString: $0) } ?? ""
            }
            next = next.advanced(by: 2)
        }
        return ""
    }
}
