import CLibXML2
import PodcastModel

/// Collects the tracks of an XSPF document from the elements that libxml2 reports.
struct XSPFReader {
    private let name: String
    private let limits: PlaylistFile.Limits
    private var file = PlaylistFile()
    private var entry: PlaylistFile.Entry?
    private var path: [String] = []
    private var text: [UInt8] = []
    private var isComplete = false
    var progress = XMLProgress()

    init(name: String, limits: PlaylistFile.Limits) {
        (self.name, self.limits) = (name, limits)
    }

    static func parse(
        _ bytes: [UInt8], named name: String, _ limits: PlaylistFile.Limits
    ) throws(Failure) -> PlaylistFile {
        let parser = XMLPushParser(XSPFReader(name: name, limits: limits))
        _ = try parser.parse(document: bytes)
        return try parser.reader.pointee.finish()
    }

    mutating func start(_ element: String) {
        guard progress.failure == nil, !isComplete else { return }
        if path.isEmpty, element.lowercased() != "playlist" {
            return progress.stop(PlaylistFile.malformed(name, "its first element is <\(element.prefix(60))>"))
        }
        // Elements that are nested deeper than any known one are only counted.
        path.append(path.count < 5 ? element.lowercased() : "")
        text = []
        guard path.count == 3, path[1] == "tracklist", path[2] == "track" else { return }
        entry = PlaylistFile.Entry()
        entry?.line = progress.line
    }

    mutating func characters(_ bytes: UnsafeBufferPointer<UInt8>) {
        guard progress.failure == nil, text.count < limits.text else { return }
        text += bytes.prefix(limits.text - text.count)
    }

    mutating func end() {
        guard progress.failure == nil, !isComplete, let element = path.last else { return }
        let value = String(String(decoding: text, as: UTF8.self).trimmed)
        switch path.count {
        case 1: isComplete = true
        case 2 where element == "title": file.title = value
        case 3 where entry != nil: finishEntry()
        case 4 where entry != nil: set(element, value)
        default: break
        }
        path.removeLast()
        text = []
    }

    private mutating func set(_ element: String, _ value: String) {
        switch element {
        case "location", "identifier": if !value.isEmpty { refer(to: value, isLocation: element == "location") }
        case "title": entry?.title = value
        case "creator": entry?.podcast = value
        case "album": if entry?.podcast.isEmpty == true { entry?.podcast = value }
        case "duration":
            entry?.seconds = Double(value).flatMap { $0.isFinite && $0 > 0 ? $0 / 1_000 : nil }
        default: break
        }
    }

    /// An identifier of another program says nothing about the audio.
    private mutating func refer(to text: String, isLocation: Bool) {
        guard isLocation || PlaylistFile.Entry.episode(text) != nil else { return }
        entry?.refer(to: text)
    }

    private mutating func finishEntry() {
        guard let entry else { return }
        self.entry = nil
        file.entries.append(entry)
        if file.entries.count > limits.entries { progress.stop(PlaylistFile.tooManyEntries(name, limits)) }
    }

    func finish() throws(Failure) -> PlaylistFile {
        guard isComplete else {
            throw PlaylistFile.malformed(
                name,
                progress.firstProblem.map { "the XML is broken at line \($0.line)" }
                    ?? "the XML ends before the playlist")
        }
        guard !file.entries.isEmpty else { throw PlaylistFile.malformed(name, "it has no tracks") }
        return file
    }
}

extension XSPFReader: XMLDocumentReader {
    /// The callbacks. Without those for entities, none is stored or expanded.
    static var handler: xmlSAXHandler {
        var handler = xmlSAXHandler()
        handler.initialized = 0xDEED_BEAF  // XML_SAX2_MAGIC: the namespace-aware callbacks are used.
        handler.startElementNs = { data, name, _, _, _, _, _, _, _ in
            guard let name else { return }
            xspfReader(data)?.pointee.start(String(cString: name))
        }
        handler.endElementNs = { data, _, _, _ in xspfReader(data)?.pointee.end() }
        handler.characters = { data, text, count in
            guard let text else { return }
            xspfReader(data)?.pointee.characters(UnsafeBufferPointer(start: text, count: Int(count)))
        }
        handler.cdataBlock = handler.characters
        handler.serror = { data, error in
            guard let error else { return }
            let message = error.pointee.message.map { String(cString: $0) } ?? "error"
            xspfReader(data)?.pointee.problem(message, line: Int(error.pointee.line))
        }
        return handler
    }
}

private func xspfReader(_ data: UnsafeMutableRawPointer?) -> UnsafeMutablePointer<XSPFReader>? {
    data?.assumingMemoryBound(to: XSPFReader.self)
}
