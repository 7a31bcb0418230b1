/// The names of downloaded files: readable, and safe for any contents of a feed.
enum DownloadName {
    /// The maximum length of a component in bytes, which every common file system accepts.
    private static let limit = 200

    /// The path `Podcast/Title [e123].mp3`, relative to the download folder. The ID makes it unique.
    static func path(podcast: String, title: String, episode: String, type: String, url: String) -> String {
        let ending = " [\(episode)].\(suffix(type: type, url: url))"
        return component(podcast, orElse: "Podcast", limit: limit) + "/"
            + component(title, orElse: "Episode", limit: limit - ending.utf8.count) + ending
    }

    /// Converts a text to a path component: without separators, invisible characters and those that change the writing
    /// direction, without a dot or space at either end, and not too long.
    static func component(_ text: String, orElse substitute: String, limit: Int) -> String {
        var name = ""
        for scalar in text.unicodeScalars {
            // Joiners combine emoji, and are part of words in some scripts.
            if scalar == "\u{200D}" || scalar == "\u{200C}" {
                name.unicodeScalars.append(scalar)
                continue
            }
            switch scalar.properties.generalCategory {
            case .control, .format, .surrogate, .privateUse, .unassigned, .lineSeparator, .paragraphSeparator: continue
            case .spaceSeparator: name.unicodeScalars.append(" ")
            default: name.unicodeScalars.append(#"/\:*?"<>|"#.unicodeScalars.contains(scalar) ? "-" : scalar)
            }
        }
        name = name.split(separator: " ").joined(separator: " ")
        while name.utf8.count > limit { name.removeLast() }
        let isEdge = { (character: Character) in character == "." || character == " " }
        name = String(name.drop(while: isEdge))
        while let last = name.last, isEdge(last) { name.removeLast() }
        return name.isEmpty ? substitute : name
    }

    private static let suffixes = [
        "audio/mpeg": "mp3", "audio/mp3": "mp3", "audio/mp4": "m4a", "audio/x-m4a": "m4a", "audio/m4a": "m4a",
        "audio/aac": "aac", "audio/ogg": "ogg", "audio/opus": "opus", "audio/flac": "flac", "audio/wav": "wav",
        "audio/x-wav": "wav", "video/mp4": "mp4", "video/x-m4v": "m4v",
    ]

    private static func suffix(type: String, url: String) -> String {
        let file = url.prefix { $0 != "?" }.split(separator: "/").last
        let ending = file?.split(separator: ".").last.map { $0.lowercased() } ?? ""
        if Set(suffixes.values).contains(ending) { return ending }
        let kind = type.split(separator: ";").first.map { $0.lowercased() } ?? ""
        return suffixes[kind] ?? "audio"
    }
}
