import PodcastModel
import SwiftProtobuf
import WireMessages

/// An ordered list of episodes with at most one current entry: the one that plays or would play now.
///
/// A change is a list of steps; applying them returns the steps that undo them, and the entries with changed records.
struct Queue: Sendable {
    struct Entry: Sendable {
        /// Entries are in order of their ranks, so that moving one entry writes one record.
        var rank: Int64
        private let box: Box
        /// The hashes of the IDs: a search compares them, and texts only if they are equal.
        fileprivate let idHash: Int
        fileprivate let episodeHash: Int

        var id: String { box.entry.id }
        /// The entry as it is published.
        var wire: WireQueueEntry { box.entry }
        /// The encoded entry: the put of a long queue is assembled from these.
        var wireBytes: [UInt8] { box.bytes }
        var episode: String { box.entry.episode.id }

        /// Creates an entry. A rank from a corrupt record is clamped to a range without overflow.
        init(_ entry: WireQueueEntry, rank: Int64) {
            self.rank = min(max(rank, -Queue.rankLimit), Queue.rankLimit)
            box = Box(entry)
            idHash = entry.id.hashValue
            episodeHash = entry.episode.id.hashValue
        }

        /// The content of an entry. It is one reference, so that lists of thousands of entries are cheap to shift and
        /// to copy.
        private final class Box: Sendable {
            let entry: WireQueueEntry
            let bytes: [UInt8]
            init(_ entry: WireQueueEntry) {
                self.entry = entry
                bytes = entry.wireBytes
            }
        }
    }

    /// The maximum number of entries; more are refused, none is dropped.
    static let limit = RequestSizes.queueEntries

    private(set) var entries = ChunkedArray<Entry>()
    /// The number of entries for each hash of an ID. If it is 0, no search is needed, as for most added episodes.
    private var idHashes = ShardedCounts()
    private var episodeHashes = ShardedCounts()
    /// The ID of the current entry.
    private(set) var current: String?
    /// The ID of the entry after the removed current one, while no entry is current.
    private(set) var successor: String?
    /// Counts edits, undos and redos.
    var revision: UInt64 = 0

    init() {}

    /// Restores a stored queue. A current entry that doesn’t exist any more is dropped.
    init(entries: [Entry], current: String?, successor: String?, revision: UInt64) {
        self.entries = ChunkedArray(entries.sorted { ($0.rank, $0.id) < ($1.rank, $1.id) })
        self.current = current.flatMap { id in entries.contains { $0.id == id } ? id : nil }
        self.successor = successor.flatMap { id in entries.contains { $0.id == id } ? id : nil }
        self.revision = revision
        for entry in entries { count(entry, 1) }
    }

    private mutating func count(_ entry: Entry, _ change: Int) {
        idHashes[entry.idHash] += change
        episodeHashes[entry.episodeHash] += change
    }

    /// Returns the index of an entry. The search runs from the end, where most bulk changes are.
    func index(of id: String) -> Int? {
        let hash = id.hashValue
        guard idHashes[hash] > 0 else { return nil }
        return entries.lastIndex { $0.idHash == hash && $0.id == id }
    }

    func entry(_ id: String) -> Entry? { index(of: id).map { entries[$0] } }

    func entry(episode: String) -> Entry? {
        let hash = episode.hashValue
        guard episodeHashes[hash] > 0 else { return nil }
        return entries.first { $0.episodeHash == hash && $0.episode == episode }
    }

    /// Returns the episodes that aren’t in the queue, each once, in order.
    func absent(among episodes: [String]) -> [String] {
        guard episodes.count > 1 else { return episodes.filter { entry(episode: $0) == nil } }
        var known = Set(entries.map(\.episode))
        return episodes.filter { known.insert($0).inserted }
    }

    /// Returns the entry after `id`; if that was removed, `fallbackCurrent`.
    func entry(after id: String) -> Entry? {
        entry(afterIndex: index(of: id))
    }

    /// Returns the entry after an index; `fallbackCurrent` if that is nil, because the entry was removed.
    func entry(afterIndex index: Int?) -> Entry? {
        guard let index else { return fallbackCurrent }
        return index + 1 < entries.count ? entries[index + 1] : nil
    }

    /// The entry after the removed current one; if there is none, the first one.
    var fallbackCurrent: Entry? { successor.flatMap { entry($0) } ?? entries.first }

    func entry(before id: String) -> Entry? {
        guard let index = index(of: id), index > 0 else { return nil }
        return entries[index - 1]
    }

    struct Outcome: Sendable {
        /// The steps that took effect.
        var steps: [WireQueueStep] = []
        /// The steps that undo them, in the order in which they must be applied.
        var inverse: [WireQueueStep] = []
        /// The entries whose records must be written or deleted.
        var touched: Set<String> = []
        var removed: Set<String> = []
    }

    /// Applies the steps in order. A step for an entry that doesn’t exist has no effect: the history that it comes from
    /// may be older than a restored backup.
    mutating func apply(_ steps: [WireQueueStep]) -> Outcome {
        var outcome = Outcome()
        for step in steps {
            guard let back = apply(step, &outcome) else { continue }
            outcome.steps.append(step)
            outcome.inverse.append(back)
        }
        outcome.inverse.reverse()
        return outcome
    }

    private mutating func apply(_ step: WireQueueStep, _ outcome: inout Outcome) -> WireQueueStep? {
        switch step.step {
        case .insert(let insertion):
            return insert(insertion, &outcome)
        case .remove(let id):
            return remove(id, &outcome)
        case .update(let insertion):
            guard let index = index(of: insertion.entry.id) else { return nil }
            let before = entries[index].wire
            guard before != insertion.entry else { return nil }
            count(entries[index], -1)
            entries[index] = Entry(insertion.entry, rank: entries[index].rank)
            count(entries[index], 1)
            outcome.touched.insert(insertion.entry.id)
            return .updating(before)
        case .setCurrent(let id):
            let before = current ?? ""
            guard id != before, id.isEmpty || index(of: id) != nil else { return nil }
            current = id.isEmpty ? nil : id
            successor = nil
            return .settingCurrent(before)
        case .order(let order):
            return reorder(order.entries, &outcome)
        case nil:
            return nil
        }
    }

    private mutating func insert(_ insertion: WireQueueStep.Insert, _ outcome: inout Outcome) -> WireQueueStep? {
        let id = insertion.entry.id
        guard !id.isEmpty, index(of: id) == nil else { return nil }
        // If the anchor doesn’t exist any more, the entry is added at the end.
        let index = insertion.after.isEmpty ? 0 : index(of: insertion.after).map { $0 + 1 } ?? entries.count
        let (rank, renumbered) = makeRank(at: index)
        let entry = Entry(insertion.entry, rank: rank)
        entries.insert(entry, at: index)
        count(entry, 1)
        outcome.touched.formUnion(renumbered)
        outcome.touched.insert(id)
        outcome.removed.remove(id)
        return .removing(id)
    }

    private mutating func remove(_ id: String, _ outcome: inout Outcome) -> WireQueueStep? {
        guard let index = index(of: id) else { return nil }
        let entry = entries.remove(at: index)
        count(entry, -1)
        let follower = index < entries.count ? entries[index].id : nil
        if current == id {
            current = nil
            successor = follower
        } else if successor == id {
            successor = follower
        }
        outcome.touched.remove(id)
        outcome.removed.insert(id)
        return .inserting(entry.wire, after: index > 0 ? entries[index - 1].id : "")
    }

    /// Orders the named entries among the indices and ranks that they already have.
    private mutating func reorder(_ ids: [String], _ outcome: inout Outcome) -> WireQueueStep? {
        let named = Set(ids)
        var all = Array(entries)
        let indices = all.indices.filter { named.contains(all[$0].id) }
        var present: [String: Entry] = [:]
        for index in indices { present[all[index].id] = all[index] }
        let ordered = ids.compactMap { present.removeValue(forKey: $0) }
        let before = indices.map { all[$0].id }
        guard ordered.map(\.id) != before else { return nil }
        for (index, entry) in zip(indices, ordered) where all[index].id != entry.id {
            var moved = entry
            moved.rank = all[index].rank
            all[index] = moved
            outcome.touched.insert(entry.id)
        }
        entries = ChunkedArray(all)
        return .ordering(before)
    }

    func updates(with episodes: [String: WireEpisodeSummary]) -> [WireQueueStep] {
        let affected = episodes.count < 8 ? episodes.keys.sorted().compactMap(entry(episode:)) : Array(entries)
        return affected.compactMap { entry in
            guard let episode = episodes[entry.episode], entry.wire.episode != episode else { return nil }
            var updated = entry.wire
            updated.episode = episode
            return .updating(updated)
        }
    }

    func steps(to target: [WireQueueEntry]) -> [WireQueueStep] {
        let wanted = Set(target.map(\.id))
        let here = Set(entries.map(\.id))
        var steps = entries.reversed().filter { !wanted.contains($0.id) }.map { WireQueueStep.removing($0.id) }
        var last = ""
        for entry in target {
            if !here.contains(entry.id) { steps.append(.inserting(entry, after: last)) }
            last = entry.id
        }
        let remaining = entries.map(\.id).filter(wanted.contains)
        if remaining != target.map(\.id).filter(here.contains) { steps.append(.ordering(target.map(\.id))) }
        return steps
    }
}

// MARK: - Ranks

extension Queue {
    /// The largest absolute value of a stored rank.
    private static let rankLimit: Int64 = 1 << 60
    /// The default distance between the ranks of neighbours.
    private static let gap: Int64 = 1 << 32
    /// The minimum distance after a renumbering, so that another one is rarely needed.
    private static let minimumGap: Int64 = 1 << 16

    /// Returns a rank for an entry at an index. If its neighbours leave none free, the smallest sufficient range is
    /// renumbered, so that even a thousand insertions at one index stay cheap.
    private mutating func makeRank(at index: Int) -> (rank: Int64, renumbered: Set<String>) {
        let before = index > 0 ? entries[index - 1].rank : nil
        let after = index < entries.count ? entries[index].rank : nil
        switch (before, after) {
        case (nil, nil): return (0, [])
        case (nil, let after?) where after > .min + Self.gap: return (after - Self.gap, [])
        case (let before?, nil) where before < .max - Self.gap: return (before + Self.gap, [])
        case (let before?, let after?) where after &- before >= 2 && after > before:
            return (before + (after - before) / 2, [])
        default: return renumber(around: index)
        }
    }

    private mutating func renumber(around center: Int) -> (rank: Int64, renumbered: Set<String>) {
        var reach = 8
        while true {
            let low = max(0, center - reach)
            let high = min(entries.count, center + reach)
            let count = Int64(high - low + 1)
            let before = low > 0 ? entries[low - 1].rank : nil
            let after = high < entries.count ? entries[high].rank : nil
            let start = before ?? after.map { $0 - count * Self.gap } ?? -(count / 2) * Self.gap
            let step = ((after ?? start + count * Self.gap) - start) / (count + 1)
            guard step >= Self.minimumGap || before == nil && after == nil else {
                reach *= 2
                continue
            }
            for index in low..<high {
                // One rank is left free for the new entry.
                entries[index].rank = start + Int64(index - low + (index < center ? 1 : 2)) * step
            }
            return (start + Int64(center - low + 1) * step, Set((low..<high).map { entries[$0].id }))
        }
    }
}

// MARK: - Steps

extension WireQueueStep {
    /// Inserts an entry after `after`, or at the front if that is empty.
    static func inserting(_ entry: WireQueueEntry, after: String) -> WireQueueStep {
        .with { ($0.insert.entry, $0.insert.after) = (entry, after) }
    }

    /// Inserts entries in this order, the first after `after`, or at the front if that is empty.
    static func inserting(_ entries: [WireQueueEntry], after: String) -> [WireQueueStep] {
        var after = after
        return entries.map { entry in
            defer { after = entry.id }
            return .inserting(entry, after: after)
        }
    }

    /// Returns the entries that these steps add. A move, which removes and inserts an entry, adds none.
    static func additions(of steps: [WireQueueStep]) -> [WireQueueEntry] {
        let moved = Set(steps.compactMap { if case .remove(let id)? = $0.step { id } else { nil } })
        return steps.compactMap { if case .insert(let insertion)? = $0.step { insertion.entry } else { nil } }
            .filter { !moved.contains($0.id) }
    }

    /// Returns the steps without these entries: an entry that would follow one of them follows its predecessor instead.
    static func omitting(_ ids: Set<String>, from steps: [WireQueueStep]) -> [WireQueueStep] {
        guard !ids.isEmpty else { return steps }
        var before: [String: String] = [:]
        return steps.compactMap { step in
            guard case .insert(var insertion)? = step.step else { return step }
            insertion.after = before[insertion.after] ?? insertion.after
            if ids.contains(insertion.entry.id) {
                before[insertion.entry.id] = insertion.after
                return nil
            }
            return .inserting(insertion.entry, after: insertion.after)
        }
    }

    static func removing(_ id: String) -> WireQueueStep { .with { $0.remove = id } }

    /// Replaces an entry whose episode has a new title or position.
    static func updating(_ entry: WireQueueEntry) -> WireQueueStep { .with { $0.update.entry = entry } }

    /// Makes an entry current, or none if `id` is empty.
    static func settingCurrent(_ id: String) -> WireQueueStep { .with { $0.setCurrent = id } }

    /// Orders entries among the indices that they already have.
    static func ordering(_ ids: [String]) -> WireQueueStep { .with { $0.order.entries = ids } }

    var weight: Int {
        if case .order(let order) = step { return order.entries.count }
        return 1
    }
}
