import PodcastModel

/// Reads M3U playlists, extended or not.
enum M3UReader {
    static func parse(
        _ bytes: [UInt8], named name: String, _ limits: PlaylistFile.Limits
    ) throws(Failure) -> PlaylistFile {
        let text = FileText.decode(bytes)
        guard !text.unicodeScalars.contains("\0") else { throw PlaylistFile.malformed(name, "it isn’t text") }
        var file = PlaylistFile()
        var entry = PlaylistFile.Entry()
        var number = 0
        // CR, LF and CRLF end a line; CRLF is one character.
        for line in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline) {
            number += 1
            let line = trimmed(line, limits)
            guard !line.isEmpty else { continue }
            guard line.hasPrefix("#") else {
                if number == 1, line.lowercased() == "[playlist]" {
                    throw PlaylistFile.malformed(name, "it is in the format PLS. Save it as M3U or XSPF")
                }
                entry.refer(to: line)
                entry.line = number
                file.entries.append(entry)
                entry = PlaylistFile.Entry()
                guard file.entries.count <= limits.entries else { throw PlaylistFile.tooManyEntries(name, limits) }
                continue
            }
            try apply(directive: line, to: &entry, of: &file, name)
        }
        guard !file.entries.isEmpty else { throw PlaylistFile.malformed(name, "it has no entries") }
        return file
    }

    private static func apply(
        directive line: String, to entry: inout PlaylistFile.Entry, of file: inout PlaylistFile, _ name: String
    ) throws(Failure) {
        if let value = value(of: "#EXTINF:", in: line) {
            let parts = value.split(separator: ",", maxSplits: 1, omittingEmptySubsequences: false)
            let length = parts[0].split(separator: " ").first.flatMap { Double($0) }
            entry.seconds = length.flatMap { $0.isFinite && $0 > 0 ? $0 : nil }
            entry.title = parts.count == 2 ? parts[1].drop(while: \.isWhitespace).description : ""
        } else if let value = value(of: "#EXTALB:", in: line) {
            entry.podcast = value
            if entry.title.hasPrefix("\(value) - ") { entry.title = String(entry.title.dropFirst(value.count + 3)) }
        } else if let value = value(of: "#PLAYLIST:", in: line) {
            if file.title.isEmpty { file.title = value }
        } else if line.hasPrefix("#EXT-X-") {
            throw PlaylistFile.malformed(name, "it describes an HLS stream, not a list of episodes")
        } else if let id = PlaylistFile.Entry.episode(String(line.dropFirst())) {
            entry.episode = id
        }
    }

    private static func value(of directive: String, in line: String) -> String? {
        guard line.count >= directive.count, line.prefix(directive.count).uppercased() == directive else { return nil }
        return String(line.dropFirst(directive.count).drop(while: \.isWhitespace))
    }

    private static func trimmed(_ line: Substring, _ limits: PlaylistFile.Limits) -> String {
        let line = line.trimmed
        guard line.utf8.count > limits.text else { return String(line) }
        return String(decoding: line.utf8.prefix(limits.text), as: UTF8.self)
    }
}
