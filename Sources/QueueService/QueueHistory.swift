import BusKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The changes of a queue that can be undone and redone.
///
/// A change of thousands of entries (clearing, sorting) is stored in several records, none of
/// which is too large for one message, and isn’t written again when it is undone.
struct QueueHistory: Sendable {
    /// The maximum number of changes; older ones are evicted.
    static let limit = 100
    /// The maximum size of the changes before the newest one, in bytes.
    static let byteLimit = 16 << 20
    /// The maximum size of the steps in one record, in bytes.
    private static let partBytes = 384 * 1_024

    /// A change with its size. It is a class because every edit of a queue copies the list of changes.
    private final class Change: Sendable {
        let record: WireQueueHistoryRecord
        /// The stored size, in bytes.
        let size: Int
        /// The number of parts that are still missing during restoration.
        let missing: UInt32

        init(record: WireQueueHistoryRecord, size: Int, missing: UInt32 = 0) {
            (self.record, self.size, self.missing) = (record, size, missing)
        }
    }

    private var changes: [Change] = []
    /// The number of the newest changes that are undone.
    var undone = 0 {
        didSet { undone = min(max(undone, 0), changes.count) }
    }

    /// The number of changes that aren’t undone.
    private var applied: Int { changes.count - undone }

    /// The revision of the newest change that isn’t undone; 0 if there is none.
    var newestRevision: UInt64 { applied > 0 ? changes[applied - 1].record.item.revision : 0 }

    /// The revision of a change that can be undone now, and couldn’t before; 0 if there is none.
    func change(since earlier: QueueHistory?) -> UInt64 {
        newestRevision > (earlier?.newestRevision ?? 0) ? newestRevision : 0
    }

    /// Appends a change, and drops the undone ones and the oldest ones beyond the limits. Returns the changes of the
    /// database.
    mutating func append(_ record: WireQueueHistoryRecord, of list: ListID) -> [WireChange] {
        var dropped = Array(changes[applied...])
        changes.removeSubrange(applied...)
        undone = 0
        var record = record
        let stored = Self.stored(&record, of: list)
        changes.append(Change(record: record, size: stored.reduce(0) { $0 + $1.put.value.count }))
        var bytes = changes.dropLast().reduce(0) { $0 + $1.size }
        while changes.count > Self.limit || bytes > Self.byteLimit {
            let oldest = changes.removeFirst()
            bytes -= oldest.size
            dropped.append(oldest)
        }
        return dropped.flatMap { Self.deletions(of: $0.record, of: list) } + stored
    }

    /// Undoes the newest change that isn’t undone, and returns it; nil if there is none.
    mutating func stepBack() -> WireQueueHistoryRecord? {
        guard applied > 0 else { return nil }
        undone += 1
        return changes[applied].record
    }

    /// Redoes the oldest undone change, and returns it; nil if there is none.
    mutating func stepForward() -> WireQueueHistoryRecord? {
        guard undone > 0 else { return nil }
        undone -= 1
        return changes[applied - 1].record
    }

    func newest(_ limit: Int) -> [WireHistoryItem] {
        changes.enumerated().suffix(limit).reversed().map { index, change in
            var item = change.record.item
            if item.origin.isEmpty { item.origin = change.record.origin }
            item.undone = index >= applied
            return item
        }
    }

    /// Returns the steps, change by change, from the current revision to another one, before or after a stored change;
    /// nil if the history doesn’t contain that revision.
    func path(to revision: UInt64, from now: UInt64) -> [[WireQueueStep]]? {
        let goal: Int
        if revision == now {
            goal = applied
        } else if let index = changes.firstIndex(where: { $0.record.item.revision == revision }) {
            goal = index + 1
        } else if let index = changes.firstIndex(where: { $0.record.item.revision == revision &+ 1 }) {
            goal = index
        } else {
            return nil
        }
        return changes[min(goal, applied)..<applied].reversed().map(\.record.undo)
            + changes[applied..<max(goal, applied)].map(\.record.redo)
    }
}

// MARK: - Storing

extension QueueHistory {
    func everything(of list: ListID) -> [WireChange] {
        changes.flatMap { change in
            var record = change.record
            return Self.stored(&record, of: list)
        }
    }

    private static func key(_ revision: UInt64, part: UInt32 = 0) -> String {
        func digits(_ number: some BinaryInteger, _ count: Int) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: max(0, count - digits.count)) + digits
        }
        return digits(revision, 16) + (part == 0 ? "" : "." + digits(part, 4))
    }

    private static func deletions(of record: WireQueueHistoryRecord, of list: ListID) -> [WireChange] {
        (0...record.parts).map { .deleting(list.historyCollection, key(record.item.revision, part: $0)) }
    }

    /// Returns the records of a change, the first of which contains their number.
    private static func stored(_ record: inout WireQueueHistoryRecord, of list: ListID) -> [WireChange] {
        record.parts = 0
        let whole = WireChange.putting(list.historyCollection, key(record.item.revision), record)
        guard whole.put.value.count > partBytes else { return [whole] }
        let parts =
            slices(record.undo).map { steps in WireQueueHistoryRecord.with { $0.undo = steps } }
            + slices(record.redo).map { steps in WireQueueHistoryRecord.with { $0.redo = steps } }
        record.parts = UInt32(parts.count)
        var head = record
        head.undo = []
        head.redo = []
        return [.putting(list.historyCollection, key(record.item.revision), head)]
            + parts.enumerated().map { index, part in
                .putting(list.historyCollection, key(record.item.revision, part: UInt32(index + 1)), part)
            }
    }

    /// Returns slices of at most `partBytes`; a larger step is a slice of its own.
    private static func slices(_ steps: [WireQueueStep]) -> [[WireQueueStep]] {
        var slices: [[WireQueueStep]] = []
        var size = partBytes
        for step in steps {
            let bytes = step.wireBytes.count
            if size + bytes > partBytes {
                slices.append([])
                size = 0
            }
            size += bytes
            slices[slices.count - 1].append(step)
        }
        return slices
    }
}

// MARK: - Restoring

extension QueueHistory {
    /// Restores a record. Records arrive in order of their keys, so a change is followed by its parts.
    mutating func restore(_ record: WireQueueHistoryRecord, key: String, size: Int) {
        guard key.contains(".") else {
            return changes.append(Change(record: record, size: size, missing: record.parts))
        }
        guard let whole = changes.last, whole.missing > 0,
            key == Self.key(whole.record.item.revision, part: whole.record.parts - whole.missing + 1)
        else { return }
        var joined = whole.record
        joined.undo += record.undo
        joined.redo += record.redo
        changes[changes.count - 1] = Change(record: joined, size: whole.size + size, missing: whole.missing - 1)
    }

    /// Ends the restoration: drops changes that lack a part, and returns their revisions. `undone` is nil for records
    /// of an older format, in which each record has a flag instead.
    mutating func restored(undone: Int?) -> [UInt64] {
        let broken = changes.filter { $0.missing > 0 }.map(\.record.item.revision)
        changes.removeAll { $0.missing > 0 }
        let marked = changes.reversed().prefix { $0.record.item.undone }.count
        changes = changes.map { change in
            guard change.record.item.undone else { return change }
            var record = change.record
            record.item.undone = false
            return Change(record: record, size: change.size)
        }
        self.undone = undone ?? marked
        return broken
    }
}
