import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A queue with its name, history and modes, its last advance and its pending load.
struct NamedQueue: Sendable {
    let name: String
    var queue = Queue()
    private(set) var history = QueueHistory()
    /// The last load whose end, failure or skip has been handled, in one of the forms in `Queues.isAdvance`.
    var advancedLoad = ""
    /// The decided load that the player hasn’t accepted yet.
    var pending: WireQueueHeaderRecord.PendingLoad?
    var modes = WireQueueModes()
    /// The number of deltas since the last put, and the bytes of those that don’t continue it.
    var deltas = 0
    var deltaBytes = 0
    /// The bytes of the last put and of the deltas that continue it.
    var putBytes = 0

    init(name: String) {
        self.name = name
    }

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

    var limit: Int { modes.limit == 0 ? Queue.limit : min(Int(modes.limit), Queue.limit) }

    /// Applies a change by a command, a rule or an advance. It increments the revision and can be undone.
    mutating func edit(_ steps: [WireQueueStep], _ description: String, origin: String, now: Timestamp) -> OwnerChange {
        let outcome = queue.apply(steps)
        guard !outcome.steps.isEmpty else { return OwnerChange() }
        queue.revision += 1
        var record = WireQueueHistoryRecord()
        record.redo = Self.structural(outcome.steps)
        record.undo = Self.structural(outcome.inverse)
        // A change of only the current entry belongs to playback and can’t be undone.
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

    /// Updates titles and positions of episodes, without a revision or an undo step.
    mutating func refresh(_ steps: [WireQueueStep]) -> OwnerChange {
        let outcome = queue.apply(steps)
        return outcome.steps.isEmpty ? OwnerChange() : finish(outcome)
    }

    func headerChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)])
    }

    /// Returns the change of the modes, which aren’t part of the history.
    mutating func modesChange() -> OwnerChange {
        OwnerChange(changes: [.putting("queue", name, header)], publications: wholePut())
    }

    var deletion: OwnerChange {
        OwnerChange(
            changes: [
                .deleting("queue", name), .deletingAll("entry/\(name)"), .deletingAll("history/\(name)"),
            ], publications: [Publication(.delete, .queue(name))])
    }

    /// Undoes the newest change, or redoes the last undone one, without the entries of `podcasts`; nil if there is
    /// none. If `loaded` is restored, it becomes current.
    ///
    /// - Returns: The change, its description, the episodes of the restored entries, and the number of omitted entries.
    mutating func applyHistory(
        redo: Bool, loaded: String, without podcasts: Set<String>
    ) -> (change: OwnerChange, description: String, episodes: [String], forgotten: Int)? {
        guard let record = redo ? history.stepForward() : history.stepBack() else { return nil }
        let all = redo ? record.redo : record.undo
        let additions = WireQueueStep.additions(of: all)
        let gone = additions.filter { podcasts.contains($0.episode.podcastID) }
        let steps = WireQueueStep.omitting(Set(gone.map(\.id)), from: all)
        // A move removes its entry and inserts it again, so it would no longer be current.
        let current = queue.current ?? loaded
        let isRestored = steps.contains { if case .insert(let it)? = $0.step { it.entry.id == current } else { false } }
        let outcome = queue.apply(isRestored ? steps + [.settingCurrent(current)] : steps)
        queue.revision += 1
        let episodes = additions.map(\.episode).filter { !podcasts.contains($0.podcastID) }.map(\.id)
        return (finish(outcome), record.item.description_p, episodes, gone.count)
    }

    /// Returns the steps without changes of the current entry, which follows playback.
    private static func structural(_ steps: [WireQueueStep]) -> [WireQueueStep] {
        steps.filter { if case .setCurrent? = $0.step { false } else { true } }
    }

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
        let record = WireQueueEntryRecord.with { ($0.entry, $0.rank) = (entry.wire, entry.rank) }
        return .putting("entry/\(name)", entry.id, record, about: (entry.wire.episode.id, 0))
    }

    var everything: [WireChange] {
        [.putting("queue", name, header)] + queue.entries.map(record) + history.everything(of: name)
    }

    private mutating func finish(_ outcome: Queue.Outcome, with history: [WireChange] = []) -> OwnerChange {
        // A load whose entry was removed is cancelled, even if the entry is restored. Its ID remains, because the
        // player may have started it.
        if let entry = pending?.entry, outcome.removed.contains(entry) { pending?.entry = "" }
        var change = headerChange()
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
