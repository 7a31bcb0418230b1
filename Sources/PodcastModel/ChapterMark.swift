/// A chapter of an episode, from the file, the feed or a chapters file.
public struct ChapterMark: Sendable, Hashable {
    /// The position where it starts.
    public var start: PlaybackPosition
    /// The position where it ends; nil if it ends where the next chapter starts.
    public var end: PlaybackPosition?
    /// The title, which may be empty.
    public var title: String
    /// The address of a web page about the chapter; empty if there is none.
    public var url: String
    /// The address of an image of the chapter; empty if there is none.
    public var imageURL: String

    /// Creates a chapter that starts at a position.
    public init(
        start: PlaybackPosition, end: PlaybackPosition? = nil, title: String = "", url: String = "",
        imageURL: String = ""
    ) {
        (self.start, self.end) = (start, end)
        (self.title, self.url, self.imageURL) = (title, url, imageURL)
    }

    /// The maximum number of chapters of an episode; further ones are omitted.
    public static let limit = 1_000
    /// The maximum position of a chapter, in seconds: more than any episode lasts.
    static let lastPosition = 1e7
    /// The maximum length of a title in characters, and of an address in bytes.
    static let titleLimit = 200
    static let addressLimit = 2_048
    /// The maximum total size of the texts of a list, in bytes: every state of the player contains the list.
    static let textLimit = 96 * 1_024

    /// Returns the list for players: sorted by start, one chapter at each position, none at or after the end of the audio, with
    /// single-line texts and web addresses only. At most `limit` chapters, with the texts that fit in one message.
    public static func normalised(_ marks: [ChapterMark], duration: EpisodeDuration? = nil) -> [ChapterMark] {
        var seen: Set<PlaybackPosition> = []
        let end = min(duration?.seconds ?? lastPosition, lastPosition)
        let inside = marks.filter { $0.start.seconds < end }
        // The offset makes the sort stable, so that the first of several chapters at a position is used.
        let ordered = inside.enumerated().sorted { ($0.element.start, $0.offset) < ($1.element.start, $1.offset) }
        var room = textLimit
        return ordered.compactMap { seen.insert($0.element.start).inserted ? $0.element.sanitized(duration) : nil }
            .prefix(limit).map { $0.truncated(to: &room) }
    }

    /// Returns the chapter with the texts that fit in `room` bytes, and subtracts their size.
    private func truncated(to room: inout Int) -> ChapterMark {
        var mark = self
        for text in [\ChapterMark.title, \.url, \.imageURL] {
            let bytes = mark[keyPath: text].utf8.count
            if bytes <= room { room -= bytes } else { mark[keyPath: text] = "" }
        }
        return mark
    }

    private func sanitized(_ duration: EpisodeDuration?) -> ChapterMark {
        var mark = self
        mark.title = Self.line(title)
        mark.url = Self.address(url)
        mark.imageURL = Self.address(imageURL)
        if let end, let duration { mark.end = PlaybackPosition(clamping: min(end.seconds, duration.seconds)) }
        if let end = mark.end, end <= start || end.seconds > Self.lastPosition { mark.end = nil }
        return mark
    }

    private static func line(_ text: String) -> String {
        let scalars = text.unicodeScalars.prefix(titleLimit * 4).map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: " "
            default: scalar
            }
        }
        let words = String(String.UnicodeScalarView(scalars)).split(whereSeparator: \.isWhitespace)
        return String(words.joined(separator: " ").prefix(titleLimit))
    }

    private static func address(_ text: String) -> String {
        guard text.utf8.count <= addressLimit, let address = WebAddress(text), !address.isFile else { return "" }
        return address.text
    }
}
