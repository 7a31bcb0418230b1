import CLibXML2
import PodcastModel

/// The attributes of one element, which are valid only during the call that passes them.
struct XMLAttributes {
    let fields: UnsafeMutablePointer<UnsafePointer<UInt8>?>?
    let count: Int

    /// Returns the value of an attribute without a prefix.
    subscript(name: StaticString) -> String? { self[name, in: nil] }

    /// Returns the value of an attribute in a namespace; nil: without a prefix.
    subscript(name: StaticString, in namespace: StaticString?) -> String? {
        guard let fields else { return nil }
        for index in 0..<count {
            // Each attribute has five pointers: to the local name, the prefix, the URI, the first byte of the value,
            // and the byte after its last one.
            guard let local = fields[index * 5],
                isIn(namespace, prefix: fields[index * 5 + 1], uri: fields[index * 5 + 2]),
                let value = fields[index * 5 + 3], let end = fields[index * 5 + 4],
                equal(local, name), end >= value
            else { continue }
            return decoded(UnsafeBufferPointer(start: value, count: end - value))
        }
        return nil
    }

    private func isIn(_ namespace: StaticString?, prefix: UnsafePointer<UInt8>?, uri: UnsafePointer<UInt8>?) -> Bool {
        guard let namespace else { return prefix == nil }
        return uri.map { equal($0, namespace) } ?? false
    }

    /// Decodes a value; libxml2 reports an ampersand as `&#38;`, because it doesn’t replace entities.
    private func decoded(_ bytes: UnsafeBufferPointer<UInt8>) -> String {
        guard bytes.contains(UInt8(ascii: "&")) else { return String(decoding: bytes, as: UTF8.self) }
        var output: [UInt8] = []
        var index = 0
        while index < bytes.count {
            output.append(bytes[index])
            index += bytes[index...].starts(with: "&#38;".utf8) ? 5 : 1
        }
        return String(decoding: output, as: UTF8.self)
    }

    private func equal(_ text: UnsafePointer<UInt8>, _ name: StaticString) -> Bool {
        for index in 0..<name.utf8CodeUnitCount where text[index] != name.utf8Start[index] { return false }
        return text[name.utf8CodeUnitCount] == 0
    }
}

/// Receives what libxml2 reports about a document.
protocol XMLReader {
    /// The callbacks, whose first argument is a pointer to the reader.
    static var handler: xmlSAXHandler { get }
    /// Receives the parser’s context, which exists as long as the parser.
    mutating func begin(in context: xmlParserCtxtPtr)
    /// Handles an error of the document.
    mutating func problem(_ message: String, line: Int)
}

extension XMLReader {
    mutating func begin(in context: xmlParserCtxtPtr) {}
}

/// Reads a whole document, and may refuse it.
protocol XMLDocumentReader: XMLReader {
    var progress: XMLProgress { get set }
}

/// What a reader knows about the parsing of its document.
struct XMLProgress {
    fileprivate(set) var failure: Failure?
    fileprivate(set) var firstProblem: (message: String, line: Int)?
    fileprivate var context: xmlParserCtxtPtr?

    /// The present line.
    var line: Int { context?.pointee.input.map { Int($0.pointee.line) } ?? 0 }

    /// Refuses the document.
    mutating func stop(_ failure: Failure) {
        self.failure = failure
        context.map { xmlStopParser($0) }
    }
}

extension XMLDocumentReader {
    mutating func begin(in context: xmlParserCtxtPtr) { progress.context = context }

    mutating func problem(_ message: String, line: Int) {
        if progress.firstProblem == nil { progress.firstProblem = (message, line) }
    }
}

extension XMLPushParser where Reader: XMLDocumentReader {
    /// Parses a whole document.
    ///
    /// - Parameter check: checks the input after each part of the document.
    /// - Returns: the input at its end.
    /// - Throws: the refusal of the reader or of `check`.
    func parse(
        document bytes: [UInt8], _ check: (FeedInput) throws(Failure) -> Void = { _ in }
    ) throws(Failure) -> FeedInput {
        var input = FeedInput()
        // libxml2 gets slices, so that it stops early and its buffer stays small.
        for start in stride(from: 0, to: bytes.count, by: 64 << 10) {
            let text = input.clean(bytes[start..<min(bytes.count, start + 64 << 10)])
            parse(text, hasKnownEncoding: input.isUTF8, isLast: false)
            if let failure = reader.pointee.progress.failure { throw failure }
            try check(input)
        }
        parse(input.finish(), hasKnownEncoding: input.isUTF8, isLast: true)
        if let failure = reader.pointee.progress.failure { throw failure }
        return input
    }
}

/// libxml2’s push parser in recover mode: no network, no external file, no entity expansion, its own limits enabled.
///
/// The reader is in manually allocated memory: a feed of 7 MB causes a million callbacks, and Swift’s exclusivity
/// checks for each access to an object’s properties would take longer than the parsing. Only one thread at a time may
/// use a parser.
final class XMLPushParser<Reader: XMLReader> {
    let reader: UnsafeMutablePointer<Reader>
    private var context: xmlParserCtxtPtr?
    /// The line at which libxml2 stopped before the end of the document; nil if it didn’t stop.
    private(set) var stoppedAtLine: Int?

    init(_ reader: Reader) {
        self.reader = .allocate(capacity: 1)
        self.reader.initialize(to: reader)
    }

    deinit {
        if let context {
            // libxml2 creates a document for declared entities even if it only reports events.
            if let document = context.pointee.myDoc { xmlFreeDoc(document) }
            context.pointee.myDoc = nil
            xmlFreeParserCtxt(context)
        }
        reader.deinitialize(count: 1)
        reader.deallocate()
    }

    /// Continues parsing. If `hasKnownEncoding` is set, the bytes are UTF-8, and the document’s declaration is ignored.
    func parse(_ bytes: [UInt8], hasKnownEncoding: Bool, isLast: Bool) {
        guard stoppedAtLine == nil, !bytes.isEmpty || isLast else { return }
        XMLLibrary.silence()
        if context == nil {
            guard !bytes.isEmpty else { return }
            context = Self.makeContext(reader, isUTF8: hasKnownEncoding)
            if let context { reader.pointee.begin(in: context) }
        }
        guard let context else {
            reader.pointee.problem("out of memory", line: 0)
            stoppedAtLine = 0
            return
        }
        bytes.withUnsafeBufferPointer { buffer in
            _ = buffer.withMemoryRebound(to: CChar.self) { characters in
                xmlParseChunk(context, characters.baseAddress, Int32(clamping: characters.count), isLast ? 1 : 0)
            }
        }
        if context.pointee.disableSAX != 0, !isLast {
            stoppedAtLine = context.pointee.input.map { Int($0.pointee.line) } ?? 0
        }
    }

    private static func makeContext(_ reader: UnsafeMutablePointer<Reader>, isUTF8: Bool) -> xmlParserCtxtPtr? {
        XMLLibrary.isReady
        var handler = Reader.handler
        guard let context = xmlCreatePushParserCtxt(&handler, reader, nil, 0, nil) else { return nil }
        var options = XML_PARSE_RECOVER.rawValue | XML_PARSE_NONET.rawValue
        if isUTF8 { options |= XML_PARSE_IGNORE_ENC.rawValue }
        xmlCtxtUseOptions(context, Int32(bitPattern: options))
        if isUTF8 { xmlSwitchEncoding(context, XML_CHAR_ENCODING_UTF8) }
        return context
    }
}

/// What all parsers share.
enum XMLLibrary {
    /// Initialises libxml2 once, before any thread uses it.
    static let isReady: Void = xmlInitParser()

    /// Prevents libxml2 from printing errors that belong to no document, such as failed conversions. The handler is set
    /// for each thread, and a feed is parsed on the thread that receives its bytes.
    static func silence() {
        xmlSetStructuredErrorFunc(nil) { _, _ in }
    }

    /// Whether libxml2 can convert from the encoding with this name.
    static func supports(encoding name: String) -> Bool {
        isReady
        silence()
        guard let handler = xmlFindCharEncodingHandler(name) else { return false }
        xmlCharEncCloseFunc(handler)
        return true
    }
}

extension FeedReader: XMLReader {
    /// The callbacks, which call a feed’s reader.
    static var handler: xmlSAXHandler {
        var handler = xmlSAXHandler()
        handler.initialized = 0xDEED_BEAF  // XML_SAX2_MAGIC: the namespace-aware callbacks are used.
        handler.startElementNs = { data, name, prefix, uri, _, _, attributeCount, _, attributes in
            guard let reader = feedReader(data), let name else { return }
            reader.pointee.start(
                name, prefix: prefix, uri: uri, XMLAttributes(fields: attributes, count: Int(attributeCount)))
        }
        handler.endElementNs = { data, _, _, _ in feedReader(data)?.pointee.end() }
        handler.characters = { data, bytes, count in
            guard let bytes, count > 0 else { return }
            feedReader(data)?.pointee.text(UnsafeBufferPointer(start: bytes, count: Int(count)))
        }
        handler.ignorableWhitespace = handler.characters
        handler.cdataBlock = handler.characters
        handler.reference = { data, name in
            guard let name else { return }
            feedReader(data)?.pointee.reference(string(name))
        }
        handler.internalSubset = { data, name, _, _ in
            guard let name else { return }
            feedReader(data)?.pointee.documentType(string(name))
        }
        handler.entityDecl = { data, name, type, _, system, content in
            guard let name else { return }
            let isInternal = type == Int32(XML_INTERNAL_GENERAL_ENTITY.rawValue)
            let refers = content.map { string($0).split(separator: "&", omittingEmptySubsequences: false).dropFirst() }
            let isPlain = isInternal && (refers ?? []).allSatisfy { $0.hasPrefix("#") }
            feedReader(data)?.pointee.declared(entity: string(name), isPlain: isPlain, externalName: system.map(string))
        }
        handler.serror = { data, error in
            guard let error else { return }
            let message = error.pointee.message.map { String(cString: $0) } ?? "error"
            feedReader(data)?.pointee.problem(message, line: Int(error.pointee.line))
        }
        return handler
    }
}

private func string(_ bytes: UnsafePointer<UInt8>) -> String { String(cString: bytes) }

private func feedReader(_ data: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<FeedReader>? {
    data?.assumingMemoryBound(to: FeedReader.self)
}
