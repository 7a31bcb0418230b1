package import PodcastModel

/// A list of episodes in a file that players exchange: M3U or XSPF.
package struct PlaylistFile: Sendable, Hashable {
    /// The format of a file.
    package enum Format: String, Sendable, Hashable, CaseIterable {
        case m3u, xspf
    }

    /// An episode of the list.
    package struct Entry: Sendable, Hashable {
        /// The address of the audio, or whatever path the file names; it is never opened.
        package var location = ""
        /// The ID of the episode, which files of this program contain; nil in others.
        package var episode: EpisodeID?
        /// The title of the episode; empty if unknown.
        package var title = ""
        /// The title of the podcast; empty if unknown.
        package var podcast = ""
        /// The length in seconds; nil if unknown.
        package var seconds: Double?
        /// The line of the file; 0 for a new entry.
        package var line = 0

        package init() {}
    }

    /// The limits of a file.
    package struct Limits: Sendable {
        /// The maximum size, in bytes.
        package var bytes = 32 << 20
        /// The maximum number of entries.
        package var entries = 100_000
        /// The maximum length of a text, in bytes; a longer one is cut.
        package var text = 8_192

        package init() {}
    }

    /// The title of the playlist; empty if the file has none.
    package var title = ""
    /// The episodes, in order.
    package var entries: [Entry] = []

    package init() {}

    /// The prefix of the identifier of an episode.
    static let identifier = "urn:lockstep:episode:"

    /// Reads a file. No other file and no network is accessed.
    ///
    /// - Parameters:
    ///   - name: the name of the file in messages.
    ///   - format: nil: recognised by the content.
    /// - Throws: `malformed` for another kind of file, `tooLarge` beyond a limit.
    package static func parse(
        _ bytes: [UInt8], named name: String, as format: Format? = nil, limits: Limits = Limits()
    ) throws(Failure) -> PlaylistFile {
        guard bytes.count <= limits.bytes else { throw tooLong(name, limits) }
        let isXML = format == .xspf || format == nil && beginsWithMarkup(bytes)
        return isXML
            ? try XSPFReader.parse(bytes, named: name, limits) : try M3UReader.parse(bytes, named: name, limits)
    }

    /// The failure of a file beyond the limit of its size.
    package static func tooLong(_ name: String, _ limits: Limits = Limits()) -> Failure {
        Failure(.tooLarge, "\(name) is longer than \(limits.bytes >> 20) MiB, and wasn’t read.")
    }

    static func tooManyEntries(_ name: String, _ limits: Limits) -> Failure {
        Failure(.tooLarge, "\(name) has more than \(limits.entries) entries, and wasn’t imported.")
    }

    /// The failure of a file of another kind.
    static func malformed(_ name: String, _ reason: String) -> Failure {
        Failure(.malformed, "\(name) isn’t an M3U or XSPF playlist: \(reason).")
    }

    private static func beginsWithMarkup(_ bytes: [UInt8]) -> Bool {
        var input = FeedInput()
        _ = input.clean(bytes.prefix(4_096))
        _ = input.finish()
        guard input.beginsWithMarkup else { return false }
        // An M3U file in UTF-16 also begins with a byte order mark.
        return FileText.decode(bytes.prefix(1_024)).unicodeScalars.first { !$0.properties.isWhitespace } == "<"
    }
}

extension PlaylistFile.Entry {
    /// Sets the location, or the ID if the text is an episode’s identifier.
    mutating func refer(to text: String) {
        if let id = Self.episode(text) { episode = id } else if location.isEmpty { location = text }
    }

    static func episode(_ text: String) -> EpisodeID? {
        guard text.hasPrefix(PlaylistFile.identifier) else { return nil }
        return EpisodeID(String(text.dropFirst(PlaylistFile.identifier.count)))
    }

    private var reference: String {
        location.isEmpty ? episode.map { PlaylistFile.identifier + $0.text } ?? "" : location
    }

    fileprivate var m3u: [String] {
        let name = [podcast, title].filter { !$0.isEmpty }.map(FileText.line).joined(separator: " - ")
        var lines = ["#EXTINF:\(seconds.map { "\(Int($0.rounded()))" } ?? "-1"),\(name)"]
        if !podcast.isEmpty { lines.append("#EXTALB:\(FileText.line(podcast))") }
        if let episode, !location.isEmpty { lines.append("#\(PlaylistFile.identifier)\(episode.text)") }
        return lines + [FileText.line(reference)]
    }

    fileprivate var track: [String] {
        var lines = ["    <track>"]
        func add(_ element: String, _ text: String) {
            guard !text.isEmpty else { return }
            lines.append("      <\(element)>\(FileText.escaped(text))</\(element)>")
        }
        add("location", location)
        add("identifier", episode.map { PlaylistFile.identifier + $0.text } ?? "")
        add("title", title)
        add("creator", podcast)
        add("duration", seconds.map { "\(Int(($0 * 1_000).rounded()))" } ?? "")
        return lines + ["    </track>"]
    }
}

extension PlaylistFile {
    /// The file’s text in UTF-8.
    package func text(as format: Format) -> String {
        switch format {
        case .m3u:
            let head = ["#EXTM3U"] + (title.isEmpty ? [] : ["#PLAYLIST:\(FileText.line(title))"])
            return (head + entries.flatMap(\.m3u)).joined(separator: "\n") + "\n"
        case .xspf:
            let head = [
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>",
                "<playlist version=\"1\" xmlns=\"http://xspf.org/ns/0/\">",
                "  <title>\(FileText.escaped(title))</title>", "  <trackList>",
            ]
            return (head + entries.flatMap(\.track) + ["  </trackList>", "</playlist>"]).joined(separator: "\n") + "\n"
        }
    }
}

/// Texts of files from and for other programs.
enum FileText {
    /// Decodes a text: UTF-16 with a byte order mark, UTF-8, or else Latin-1.
    static func decode(_ bytes: some Collection<UInt8>) -> String {
        let bytes = Array(bytes)
        if bytes.starts(with: [0xff, 0xfe]) { return wide(bytes) { UInt16($0) | UInt16($1) << 8 } }
        if bytes.starts(with: [0xfe, 0xff]) { return wide(bytes) { UInt16($0) << 8 | UInt16($1) } }
        let plain = bytes.starts(with: [0xef, 0xbb, 0xbf]) ? bytes.dropFirst(3) : bytes[...]
        return String(validating: plain, as: UTF8.self)
            ?? String(String.UnicodeScalarView(plain.map { Unicode.Scalar($0) }))
    }

    private static func wide(_ bytes: [UInt8], _ unit: (UInt8, UInt8) -> UInt16) -> String {
        let units = stride(from: 2, to: bytes.count - 1, by: 2).map { unit(bytes[$0], bytes[$0 + 1]) }
        return String(decoding: units, as: UTF16.self)
    }

    /// A text on one line: control characters and line breaks become spaces.
    static func line(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .lineSeparator, .paragraphSeparator: " "
                    default: scalar
                    }
                }))
    }

    /// A text as the content of an XML element or the value of an attribute. Characters that XML can’t contain are left out.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\u{fffe}", "\u{ffff}": continue
            case "\t", "\n", "\r", "\u{7f}"..."\u{9f}": result += "&#\(scalar.value);"
            case _ where scalar.value < 0x20: continue
            // A terminal that prints the file would reorder the line.
            case _ where scalar.properties.isBidiControl: result += "&#\(scalar.value);"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }
}
