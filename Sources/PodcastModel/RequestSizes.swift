/// The maximum sizes of messages and lists, which clients and services share.
public enum RequestSizes {
    /// The maximum number of episodes, podcasts or IDs in one request or reply.
    public static let episodes = 500
    /// The maximum number of entries of a queue.
    public static let queueEntries = 10_000
}

extension Array {
    /// The elements in order, in parts of at most `size`.
    package func parts(of size: Int) -> [[Element]] {
        stride(from: 0, to: count, by: size).map { Array(self[$0..<Swift.min($0 + size, count)]) }
    }
}
