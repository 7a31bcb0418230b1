/// The maximum sizes of messages and lists, which clients and services share.
public enum RequestSizes {
    /// The maximum number of episodes, podcasts or IDs in one request or reply.
    public static let episodes = 500
    /// The size in bytes after which a page ends, whatever its number of rows. A single row may exceed it.
    package static let pageBytes = 512 << 10
    /// The maximum number of entries of a queue.
    public static let queueEntries = 10_000
    /// The maximum number of episodes that a search finds.
    public static let searchResults = 200
    /// The maximum length of the text of a search, in Unicode scalars.
    package static let searchText = 500

    /// The refusal of the text of a search that is too long; nil if it isn’t.
    package static func refusal(ofSearch text: String) -> Failure? {
        let count = text.unicodeScalars.count
        guard count > searchText else { return nil }
        return Failure(
            .invalidArgument, "The text of the search has \(count) characters; at most \(searchText) are allowed.")
    }
}

extension Array {
    /// The elements in order, in parts of at most `size`.
    package func parts(of size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
