import BusKit
import PodcastModel
import WireMessages

/// A queue with what is stored and published beside its entries: history, the advance and the load under way.
struct NamedQueue: Sendable {
    /// The most changes that can be undone; older ones are forgotten.
    static let historyLimit = 100
    /// More steps than this are published as a whole put.
    private static let deltaLimit = 256
    /// The bus keeps 64 deltas behind a put; a whole put comes in good time before.
    private static let deltasPerPut = 48
    /// The size at which a put is continued in a delta, in bytes.
    private static let chunkBytes = 384 * 1_024

    let name: String
    var queue = Queue()
    private(set) var history: [WireQueueHistoryRecord] = []
    /// The last load whose end has been dealt with.
    var advancedLoad = ""
    /// A load that playback has not been seen to accept.
    var pending: WireQueueHeaderRecord.PendingLoad?
    /// The load that was decided last in this queue.
    var lastLoad = ""
    /// What happens at an entry's end, and how many entries it takes.
    var modes = WireQueueModes()
    private var deltas = 0

    init(name: String) {
        self.name = name
    }

    /// A stored queue.
    init(name: String, header: WireQueueHeaderRecord, entries: [Queue.Entry], history: [WireQueueHistoryRecord]) {
        self.name = name
        queue = Queue(
            entries: entries, current: header.current.isEmpty ? nil : header.current,
            successor: header.successor.isEmpty ? nil : header.successor, revision: header.revision)
        self.history = history.sorted { $0.item.revision < $1.item.revision }
        advancedLoad = header.advancedLoad
        lastLoad = header.lastLoad
        modes = header.modes
        pending = header.hasPending ? header.pending : nil
    }

    /// The most entries that can be added up to.
    var limit: Int { modes.limit == 0 ? Queue.limit : min(Int(modes.limit), Queue.limit) }

    // MARK: Changing

    /// What a change writes and publishes.
    struct Change {
        var changes: [WireChange] = []
        var publications: [Publication] = []
        /// Whether anything is different now.
        var isEmpty: Bool { changes.isEmpty }
    }

    /// A change that a user made, or an advance: it gets a revision and can be undone.
    mutating func edit(_ steps: [WireQueueStep], _ description: String, origin: String, now: Timestamp) -> Change {
        let outcome = queue.apply(steps)
        guard !outcome.steps.isEmpty else { return Change() }
        queue.revision += 1
        var record = WireQueueHistoryRecord()
        record.redo = Self.structural(outcome.steps)
        record.undo = Self.structural(outcome.inverse)
        // Moving the mark alone is playing, not editing: there is nothing to undo.
        guard !record.undo.isEmpty else { return finish(outcome) }
        record.item.revision = queue.revision
        record.item.at = now.milliseconds
        record.item.description_p = description
        record.item.origin = origin
        record.item.entries = UInt32(clamping: queue.entries.count)
        record.origin = origin
        // What was taken back stands at the end.
        var dropped: [WireQueueHistoryRecord] = []
        while let last = history.last, last.item.undone { dropped.append(history.removeLast()) }
        history.append(record)
        if history.count > Self.historyLimit {
            dropped.append(history.removeFirst())
        }
        return finish(outcome, writing: [record], dropping: dropped)
    }

    /// An episode's title or position was brought up to date: no revision, nothing to undo.
    mutating func refresh(_ steps: [WireQueueStep]) -> Change {
        let outcome = queue.apply(steps)
        return outcome.steps.isEmpty ? Change() : finish(outcome)
    }

    /// Only what stands beside the entries has changed: the load under way, the advance.
    func headerChange() -> Change {
        Change(changes: [.putting("queue", name, header)])
    }

    /// The modes are others now; they are no part of the history.
    mutating func modesChange() -> Change {
        Change(changes: [.putting("queue", name, header)], publications: wholePut())
    }

    /// The queue goes, with all that is stored of it.
    var deletion: Change {
        Change(
            changes: [
                .deleting("queue", name), .deletingAll("entry/\(name)"), .deletingAll("history/\(name)"),
            ], publications: [Publication(.delete, .queue(name))])
    }

    /// The entries as they were at a revision that the history knows: one that a change of the list led to, or one that
    /// it started from.
    func entries(at revision: UInt64) -> [WireQueueEntry]? {
        let applied = history.prefix { !$0.item.undone }.count
        let goal: Int
        if revision == queue.revision {
            goal = applied
        } else if let index = history.firstIndex(where: { $0.item.revision == revision }) {
            goal = index + 1
        } else if let index = history.firstIndex(where: { $0.item.revision == revision &+ 1 }) {
            goal = index
        } else {
            return nil
        }
        var past = queue
        for record in history[min(goal, applied)..<applied].reversed() { _ = past.apply(record.undo) }
        for record in history[applied..<max(goal, applied)] { _ = past.apply(record.redo) }
        return past.entries.map(\.wire)
    }

    /// Takes the newest change back. Nil: there is none. An entry that comes back while it is `loaded` is current again.
    mutating func undo(loaded: String) -> (change: Change, description: String)? {
        guard let index = history.lastIndex(where: { !$0.item.undone }) else { return nil }
        return travel(index, history[index].undo, undone: true, loaded: loaded)
    }

    /// Makes the change again that was taken back last. Nil: there is none.
    mutating func redo(loaded: String) -> (change: Change, description: String)? {
        guard let index = history.firstIndex(where: { $0.item.undone }) else { return nil }
        return travel(index, history[index].redo, undone: false, loaded: loaded)
    }

    private mutating func travel(
        _ index: Int, _ steps: [WireQueueStep], undone: Bool, loaded: String
    ) -> (change: Change, description: String) {
        let comesBack = steps.contains { step in
            if case .insert(let insertion) = step.step { return insertion.entry.id == loaded }
            return false
        }
        let outcome = queue.apply(comesBack && queue.current == nil ? steps + [.settingCurrent(loaded)] : steps)
        queue.revision += 1
        history[index].item.undone = undone
        return (finish(outcome, writing: [history[index]]), history[index].item.description_p)
    }

    /// Without the moves of the mark, which follow what plays.
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
        header.lastLoad = lastLoad
        header.modes = modes
        if let pending { header.pending = pending }
        return header
    }

    private func record(_ entry: Queue.Entry) -> WireChange {
        var record = WireQueueEntryRecord()
        record.entry = entry.wire
        record.rank = entry.rank
        return .putting("entry/\(name)", entry.id, record)
    }

    private static func key(_ revision: UInt64) -> String {
        let digits = String(revision, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    private func record(_ history: WireQueueHistoryRecord) -> WireChange {
        .putting("history/\(name)", Self.key(history.item.revision), history)
    }

    /// All of it, for a database that has lost some.
    var everything: [WireChange] {
        [.putting("queue", name, header)] + queue.entries.map(record) + history.map(record)
    }

    private mutating func finish(
        _ outcome: Queue.Outcome, writing: [WireQueueHistoryRecord] = [], dropping: [WireQueueHistoryRecord] = []
    ) -> Change {
        var change = Change()
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
        change.changes += dropping.map { .deleting("history/\(name)", Self.key($0.item.revision)) }
        change.changes += writing.map(record)
        change.publications = publications(of: outcome.steps)
        return change
    }

    // MARK: Publishing

    private mutating func publications(of steps: [WireQueueStep]) -> [Publication] {
        guard steps.reduce(0, { $0 + $1.weight }) <= Self.deltaLimit, deltas < Self.deltasPerPut else {
            return wholePut()
        }
        deltas += 1
        var delta = WireQueueDelta()
        delta.revision = queue.revision
        delta.steps = steps
        // The entries say what is current when it was taken away with its entry.
        if !steps.contains(where: { $0.step == .setCurrent(queue.current ?? "") }) {
            delta.steps.append(.settingCurrent(queue.current ?? ""))
        }
        return [Publication(.delta, .queue(name), delta.wireBytes)]
    }

    /// The whole queue: a put, continued in deltas where it is long.
    mutating func wholePut() -> [Publication] {
        let publications = wholePublications
        deltas = publications.count - 1
        return publications
    }

    /// The whole queue as messages.
    var wholePublications: [Publication] {
        var chunks: [[WireQueueEntry]] = [[]]
        var size = 0
        for entry in queue.entries {
            let bytes =
                64 + entry.wire.episode.title.utf8.count + entry.wire.episode.enclosureURL.utf8.count
                + entry.wire.episode.imageURL.utf8.count + entry.wire.episode.podcastTitle.utf8.count + 64
            if size + bytes > Self.chunkBytes {
                chunks.append([])
                size = 0
            }
            size += bytes
            chunks[chunks.count - 1].append(entry.wire)
        }
        var state = WireQueueState()
        state.name = name
        state.revision = queue.revision
        state.entries = chunks[0]
        state.current = queue.current ?? ""
        state.modes = modes
        state.more = chunks.count > 1
        var publications = [Publication(.put, .queue(name), state.wireBytes)]
        var last = chunks[0].last?.id ?? ""
        for (index, chunk) in chunks.enumerated().dropFirst() {
            var delta = WireQueueDelta()
            delta.revision = queue.revision
            delta.more = index + 1 < chunks.count
            for entry in chunk {
                delta.steps.append(.inserting(entry, after: last))
                last = entry.id
            }
            publications.append(Publication(.delta, .queue(name), delta.wireBytes))
        }
        return publications
    }

    /// The newest changes first.
    func newestHistory(_ limit: Int) -> [WireHistoryItem] {
        history.suffix(limit).reversed().map { record in
            var item = record.item
            if item.origin.isEmpty { item.origin = record.origin }
            return item
        }
    }
}
