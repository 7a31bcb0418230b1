import WireMessages
import ZeroMQ

/// The topics that a snapshot contains: the prefixes in a FETCH.
struct SnapshotFilter: Sendable, Hashable {
    private var excluded: [[UInt8]] = []
    /// The included prefixes; nil if every topic is included.
    private var included: [[UInt8]]?

    /// Reads the frames after the nonce: excluded prefixes and, after an empty frame, included ones. Returns nil if the
    /// frames are malformed.
    init?(decoding frames: ArraySlice<Frame>, limit: Int) {
        let lists = frames.split(separator: .empty, maxSplits: 1, omittingEmptySubsequences: false)
        for list in lists {
            guard list.count <= limit,
                list.allSatisfy({ !$0.isEmpty && $0.count <= Topic.limit && $0.text != nil })
            else { return nil }
        }
        excluded = lists.first?.map(\.bytes) ?? []
        guard lists.count > 1 else { return }
        guard !lists[1].isEmpty else { return nil }
        included = lists[1].map(\.bytes)
    }

    var isAll: Bool { excluded.isEmpty && included == nil }

    /// Whether the snapshot contains the topic.
    func contains(_ topic: Frame) -> Bool {
        guard !excluded.contains(where: { topic.starts(with: $0) }) else { return false }
        return included?.contains { topic.starts(with: $0) } ?? true
    }
}
