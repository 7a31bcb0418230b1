/// The IDs and titles of playlists.
public enum PlaylistName {
    /// The ID of the playlist that always exists.
    public static let favourites = "favourites"
    /// The maximum number of characters in a title.
    public static let titleLimit = 200

    /// The title of a playlist that was given none.
    public static func title(_ id: String) -> String { id == favourites ? "Favourites" : id }

    /// Returns the ID for a title: its ASCII letters and digits in lower case, with `-` between the words.
    ///
    /// The ID is `playlist` if the title has no such letters, as in other scripts.
    public static func id(for title: String) -> String {
        let words = title.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
        var id = words.joined(separator: "-").drop { !$0.isLetter }.prefix(40)
        if id.last == "-" { id.removeLast() }
        return id.isEmpty ? "playlist" : String(id)
    }

    /// Returns the title without surrounding spaces.
    ///
    /// - Throws: `invalidArgument` if it is empty, too long, or contains control characters.
    public static func checked(title: String) throws(Failure) -> String {
        let title = title.trimmed
        guard (1...titleLimit).contains(title.count),
            title.unicodeScalars.allSatisfy({ $0.properties.generalCategory != .control })
        else {
            throw Failure(
                .invalidArgument,
                "A playlist’s title has 1 to \(titleLimit) characters without line breaks and other control characters."
            )
        }
        return String(title)
    }
}
