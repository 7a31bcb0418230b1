import PodcastModel
import WireMessages

/// The entry that follows a loaded one in its queue.
struct NextEntry: Sendable {
    var queue: NamedQueue
    var entry: Queue.Entry?
    /// Whether the ended entry is removed.
    var removesEnded: Bool
}

extension NamedQueue {
    /// Returns the entry that plays after the loaded one ends, or is skipped because it failed.
    ///
    /// - Parameter index: The index of the loaded entry; nil if it was removed.
    func nextEntry(after loaded: String, at index: Int?, skipping: Bool) -> NextEntry {
        let own = index.map { queue.entries[$0] }
        let removesEnded = own != nil && !skipping && !modes.keep && modes.repeat != .one
        // A user selected another entry before the end was reported.
        if let current = queue.current, current != loaded {
            return NextEntry(queue: self, entry: queue.entry(current), removesEnded: removesEnded)
        }
        if let own, modes.repeat == .one, !skipping { return NextEntry(queue: self, entry: own, removesEnded: false) }
        var next = queue.entry(afterIndex: index)
        if next == nil, modes.repeat == .all, let first = queue.entries.first,
            first.id != loaded || !removesEnded && !skipping
        {
            next = first
        }
        return NextEntry(queue: self, entry: next, removesEnded: removesEnded)
    }

    /// Returns the entry that plays after the player’s, or the reason why none does. `index` is nil if the player’s
    /// entry was removed.
    func following(
        _ state: WirePlaybackState, at index: Int?
    ) -> (entry: WireQueueEntry?, reason: WireQueueNext.Reason) {
        let hasEnded = state.status == .finished && advancedLoad == state.loadID
        if hasEnded || state.status == .failed && state.skip { return (nil, .ended) }
        if let entry = nextEntry(after: state.queueEntry, at: index, skipping: state.status == .failed).entry {
            return (entry.wire, .unknown)
        }
        let isAlone = queue.entries.allSatisfy { $0.id == state.queueEntry }
        return (nil, isAlone ? .noOtherEntry : .lastEntry)
    }

    /// Returns the ID of the entry with which the queue starts: the current one, or its successor if the current one
    /// has ended.
    func entryToStart(after player: WirePlaybackState?) -> String? {
        guard let current = queue.current, player?.status == .finished, player?.queueEntry == current,
            modes.repeat != .one
        else { return queue.current ?? queue.fallbackCurrent?.id }
        let first = modes.repeat == .all ? queue.entries.first : nil
        return (queue.entry(after: current) ?? first)?.id ?? current
    }

    /// Returns the neighbour of the current entry. In a repeating queue the first entry follows the last one.
    func neighbour(forward: Bool) -> Queue.Entry? {
        let current = queue.current ?? ""
        let neighbour =
            forward
            ? queue.entry(after: current) : queue.entry(before: current.isEmpty ? queue.successor ?? "" : current)
        let round = modes.repeat == .all ? (forward ? queue.entries.first : queue.entries.last) : nil
        return neighbour ?? round
    }
}

extension WirePlaybackState {
    /// Whether an episode is loaded that can be paused and resumed.
    var isLoaded: Bool { !loadID.isEmpty && ![.idle, .finished].contains(status) }

    /// Whether the episode plays, or will play once it is loaded.
    var plays: Bool { status == .playing || status == .loading && willPlay }

    /// Whether the next entry will play. It also plays after a failed or ended episode that a user skips.
    var nextWillPlay: Bool { plays || [.failed, .finished].contains(status) }
}
