import PodcastModel
import WireMessages

/// The entry that follows a loaded one in its queue.
struct NextEntry: Sendable {
    var queue: NamedQueue
    var entry: Queue.Entry?
    /// Whether the ended entry is removed.
    var leaves: Bool
}

extension NamedQueue {
    /// Returns the entry that follows the loaded one when that has ended, or is skipped because it failed.
    ///
    /// - Parameter index: the index of the loaded entry; nil: it was removed.
    func nextEntry(after loaded: String, at index: Int?, skipping: Bool) -> NextEntry {
        let own = index.map { queue.entries[$0] }
        let leaves = own != nil && !skipping && !modes.keep && modes.repeat != .one
        // A user selected another entry before the end was reported.
        if let current = queue.current, current != loaded {
            return NextEntry(queue: self, entry: queue.entry(current), leaves: leaves)
        }
        if let own, modes.repeat == .one, !skipping { return NextEntry(queue: self, entry: own, leaves: false) }
        var next = queue.entry(behind: index)
        if next == nil, modes.repeat == .all, let first = queue.entries.first,
            first.id != loaded || !leaves && !skipping
        {
            next = first
        }
        return NextEntry(queue: self, entry: next, leaves: leaves)
    }

    /// Returns the entry that follows the player’s, which has this index or was removed, or the reason why there is none.
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

    /// Returns the entry with which the queue starts: the current one, or the next one if that has ended and was kept.
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
