/// The tags that users give to podcasts. Tags that differ only in case are the same.
public enum PodcastTag {
    /// The maximum number of tags of a podcast.
    public static let limit = 100
    /// The maximum number of characters of a tag.
    public static let lengthLimit = 50
    /// The rule for valid tags, for messages.
    static let rule = "1 to \(lengthLimit) characters without line breaks and other control characters"

    /// Returns the form in which tags are compared.
    public static func key(_ tag: String) -> String { tag.lowercased() }

    /// Returns the tag without surrounding spaces.
    ///
    /// - Throws: `invalidArgument` if it is empty, too long, or contains control characters.
    public static func checked(_ text: String) throws(Failure) -> String {
        let tag = String(text.trimmed)
        guard PlainLine.isValid(tag, limit: lengthLimit) else {
            throw Failure(.invalidArgument, "“\(PlainLine.shown(tag))” can’t be a tag; a tag has \(rule).")
        }
        return tag
    }

    /// Returns a text without surrounding spaces.
    public static func trimmed(_ text: String) -> String { String(text.trimmed) }

    /// Returns the tag for the name of a folder in another program: the beginning of the name, without control
    /// characters; nil if that is empty.
    public static func tag(forFolder name: String) -> String? {
        let tag = PlainLine.fitted(name, limit: lengthLimit)
        return PlainLine.isValid(tag, limit: lengthLimit) ? tag : nil
    }
}

/// The titles that users give to podcasts in place of the feeds’ titles.
public enum PodcastTitle {
    /// The maximum number of characters in a title.
    public static let limit = 200

    /// Returns the title without surrounding spaces.
    ///
    /// - Throws: `invalidArgument` if it is empty, too long, or contains control characters.
    public static func checked(_ text: String) throws(Failure) -> String {
        let title = String(text.trimmed)
        guard PlainLine.isValid(title, limit: limit) else {
            throw Failure(
                .invalidArgument,
                "A podcast’s title has 1 to \(limit) characters without line breaks and other control characters.")
        }
        return title
    }

    /// Returns the beginning of a title from another program, without control characters; empty if nothing is left.
    public static func fitted(_ text: String) -> String {
        let title = PlainLine.fitted(text, limit: limit)
        return PlainLine.isValid(title, limit: limit) ? title : ""
    }
}

/// Texts of one line.
private enum PlainLine {
    /// The maximum number of bytes for each allowed character, which may combine any number of code points.
    private static let bytesPerCharacter = 8

    static func isValid(_ text: String, limit: Int) -> Bool {
        (1...limit).contains(text.count) && text.utf8.count <= limit * bytesPerCharacter
            && text.unicodeScalars.allSatisfy { !breaksLine($0) }
    }

    /// Replaces control characters and line breaks by spaces.
    static func cleaned(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { breaksLine($0) ? " " : $0 }))
    }

    static func fitted(_ text: String, limit: Int) -> String {
        String(cleaned(text).trimmed.prefix(limit).trimmed)
    }

    /// The beginning of a refused text.
    static func shown(_ text: String) -> String { String(cleaned(text).prefix(60)) }

    private static func breaksLine(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: false
        }
    }
}
