import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// A queue with its name, history and modes, its last advance and its pending load.
struct NamedQueue: Sendable {
    let name: String
    var queue = Queue()
    private(set) var history = QueueHistory()
    /// The last load whose end has been handled.
    var advancedLoad = ""
    /// A load that playback has not accepted yet.
    var pending: WireQueueHeaderRecord.PendingLoad?
    /// Its repeat mode, whether entries leave at their end, and its limit.
    var modes = WireQueueModes()
    /// The number of deltas since the last put.
    var deltas = 0
    /// The bytes of these, but for those that continue the put.
    var deltaBytes = 0
    /// The bytes of the last put, with those that continue it.
    var putBytes = 0

    init(name: String) {
        self.name = name
    }

    /// A stored queue.
    init(name: String, header: WireQueueHeaderRecord, entries: [Queue.Entry], history: QueueHistory) {
        self.name = name
        queue = Queue(
            entries: entries, current: header.current.isEmpty ? nil : header.current,
            successor: header.successor.isEmpty ? nil : header.successor, revision: header.revision)
        self.history = history
        advancedLoad = header.advancedLoad
        modes = header.modes
        pending = header.hasPending ? header.pending : nil
    }

    /// The maximum number of entries.
    var limit: Int { modes.limit == 0 ? Queue.limit : min(Int(modes.limit), Queue.limit) }

    // MARK: Changing

    /// A change that was undone or redone.
    struct HistoryStep {
        var change: OwnerChange
        var description: String
        /// The episodes whose entries came back, as they were then.
        var episodes: [String]
        /// The number of entries that did not, because their podcasts are forgotten.
        var forgotten: Int
    }

    /// A change that a user made, or an advance: it gets a revision and can be undone.
    mutating func edit(_ steps: [WireQueueStep], _ description: String, origin: String, now: Timestamp) -> OwnerChange {
        let outcome = queue.apply(steps)
        guard !outcome.steps.isEmpty else { return OwnerChange() }
        queue.revision += 1
        var record = WireQueueHistoryRecord()
        record.redo = Self.structural(outcome.steps)
        record.undo = Self.structural(outcome.inverse)
        // Another current entry alone is playing, not editing: there is nothing to undo.
        guard !record.undo.isEmpty else { return finish(outcome) }
        record.item.revision = queue.revision
        record.item.at = now.milliseconds
        record.item.description_p = description
        record.item.origin = origin
        record.item.entries = UInt32(clamping: queue.entries.count)
        record.origin = origin
        let changes = history.append(record, of: name)
        return finish(outcome, with: changes)
    }

    /// An episode's title or position was brought up to date: no revision, nothing to undo.
    mutating func refresh(_ steps: [WireQueueStep]) -> OwnerChange {
        let outcome = queue.apply(steps)
        return outcome.steps.isEmpty ? OwnerChange() : finish(outcome)
    }

    /// The change where only the pending load or the last advance is different.
    func headerChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)])
    }

    /// The change where the modes are different; they aren’t part of the history.
    mutating func modesChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)], publications: wholePut())
    }

    /// The change that deletes the queue with all its records.
    var deletion: OwnerChange {
        OwnerChange(
            changes: [
                .deleting("queue", name), .deletingAll("entry/\(name)"), .deletingAll("history/\(name)"),
            ], publications: [Publication(.delete, .queue(name))])
    }

    /// The entries as they were at a revision that the history knows: one that a change of the list led to, or one that
    /// it started from.
    func entries(at revision: UInt64) -> [WireQueueEntry]? {
        guard let path = history.path(to: revision, from: queue.revision) else { return nil }
        var past = queue
        for steps in path { _ = past.apply(steps) }
        return past.entries.map(\.wire)
    }

    /// Undoes the newest change. Nil: there is none. An entry that comes back while it is `loaded` is current again.
    mutating func undo(loaded: String, without podcasts: Set<String>) -> HistoryStep? {
        history.back().map { applyHistory($0.undo, $0.item.description_p, loaded: loaded, without: podcasts) }
    }

    /// Redoes the change that was undone last. Nil: there is none.
    mutating func redo(loaded: String, without podcasts: Set<String>) -> HistoryStep? {
        history.forth().map { applyHistory($0.redo, $0.item.description_p, loaded: loaded, without: podcasts) }
    }

    private mutating func applyHistory(
        _ all: [WireQueueStep], _ description: String, loaded: String, without podcasts: Set<String>
    ) -> HistoryStep {
        let newcomers = WireQueueStep.newcomers(of: all)
        let gone = newcomers.filter { podcasts.contains($0.episode.podcastID) }
        let steps = WireQueueStep.leaving(out: Set(gone.map(\.id)), of: all)
        // A move removes its entry and inserts it again, and it would not be current any more.
        let current = queue.current ?? loaded
        let comesBack = steps.contains { step in
            if case .insert(let insertion) = step.step { return insertion.entry.id == current }
            return false
        }
        let outcome = queue.apply(comesBack ? steps + [.settingCurrent(current)] : steps)
        queue.revision += 1
        return HistoryStep(
            change: finish(outcome), description: description,
            episodes: newcomers.map(\.episode).filter { !podcasts.contains($0.podcastID) }.map(\.id),
            forgotten: gone.count)
    }

    /// The steps without changes of the current entry, which follow what plays.
    private static func structural(_ steps: [WireQueueStep]) -> [WireQueueStep] {
        steps.filter {
            if case .setCurrent = $0.step { return false }
            return true
        }
    }

    // MARK: Storing

    private var header: WireQueueHeaderRecord {
        var header = WireQueueHeaderRecord()
        header.revision = queue.revision
        header.current = queue.current ?? ""
        header.successor = queue.successor ?? ""
        header.advancedLoad = advancedLoad
        header.modes = modes
        header.undone = UInt32(clamping: history.undone)
        if let pending { header.pending = pending }
        return header
    }

    private func record(_ entry: Queue.Entry) -> WireChange {
        var record = WireQueueEntryRecord()
        record.entry = entry.wire
        record.rank = entry.rank
        return .putting("entry/\(name)", entry.id, record)
    }

    /// All records, for a database that has lost some.
    var everything: [WireChange] {
        [.putting("queue", name, header)] + queue.entries.map(record) + history.everything(of: name)
    }

    private mutating func finish(_ outcome: Queue.Outcome, with history: [WireChange] = []) -> OwnerChange {
        // A load whose entry was removed is void, also when the entry comes back. Its ID stays, as it may have begun.
        if let entry = pending?.entry, outcome.removed.contains(entry) { pending?.entry = "" }
        var change = OwnerChange()
        change.changes.append(.putting("queue", name, header))
        if outcome.removed.count > queue.entries.count {
            change.changes.append(.deletingAll("entry/\(name)"))
            change.changes += queue.entries.map(record)
        } else {
            change.changes += outcome.removed.sorted().map { .deleting("entry/\(name)", $0) }
            if outcome.touched.count > 8 {
                change.changes += queue.entries.filter { outcome.touched.contains($0.id) }.map(record)
            } else {
                change.changes += outcome.touched.sorted().compactMap { queue.entry($0).map(record) }
            }
        }
        change.changes += history
        change.publications = publications(of: outcome.steps)
        return change
    }
}
