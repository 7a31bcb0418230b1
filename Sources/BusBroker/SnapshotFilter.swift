import WireMessages
import ZeroMQ

/// The topics that a snapshot holds for whoever asks for it: the prefixes in a FETCH.
struct SnapshotFilter: Sendable, Hashable {
    private var excluded: [[UInt8]] = []
    /// The prefixes that are included; nil: every topic is.
    private var included: [[UInt8]]?

    /// Reads the frames behind the nonce: excluded prefixes and, behind an empty frame, included ones. Nil for frames of a
    /// wrong form.
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

    /// Whether the snapshot holds the topic.
    func contains(_ topic: Frame) -> Bool {
        guard !excluded.contains(where: { topic.starts(with: $0) }) else { return false }
        return included?.contains { topic.starts(with: $0) } ?? true
    }
}
