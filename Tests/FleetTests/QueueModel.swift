import OwnerKit
import PodcastModel
import QueueService
import WireMessages

/// The expected state of all queues.
struct QueueModels: Equatable {
    private(set) var queues = ["main": QueueModel(), "work": QueueModel()]

    /// The entries of each queue, in the order of the queues’ names.
    var lists: [[QueueModel.Entry]] { queues.keys.sorted().map(list) }

    func list(_ name: String) -> [QueueModel.Entry] { queues[name]?.list ?? [] }

    /// Sets a random revision to which the request’s queue can be restored.
    func chooseRevision(_ request: inout WireQueueRequest, _ random: inout SeededGenerator) {
        queues[Self.name(request)]?.chooseRevision(&request, &random)
    }

    mutating func apply(
        _ request: WireQueueRequest, _ id: RequestID, titles: [String: WireEpisode], player: WirePlaybackState
    ) {
        queues[Self.name(request)]?.apply(request, id, titles: titles, player: player)
    }

    mutating func observe(_ state: WirePlaybackState) {
        for name in queues.keys { queues[name]?.observe(state) }
    }

    /// Copies the revision and the new entries’ positions from a transaction of the queue.
    mutating func record(_ transaction: QueueMachine.Transaction) {
        for name in queues.keys { queues[name]?.record(transaction, of: name) }
    }

    private static func name(_ request: WireQueueRequest) -> String { request.queue.isEmpty ? "main" : request.queue }
}

/// The expected state of a queue: an array that commands and episode ends change, with a stack of past states.
struct QueueModel: Equatable {
    struct Entry: Equatable {
        var id: String
        var episode: String

        /// Creates the entry that a command adds.
        init(_ episode: String, _ index: Int, of command: RequestID) {
            id = QueueEntryID.derived(from: "\(command)/\(index)").text
            self.episode = episode
        }

        /// Creates an entry from a published one.
        init(_ wire: WireQueueEntry) {
            id = wire.id
            episode = wire.episode.id
        }
    }

    private struct Past: Equatable {
        var before: [Entry]
        var after: [Entry]
        var revision: UInt64 = 0
    }

    private(set) var list: [Entry] = []
    private var past: [Past] = []
    private var undone = 0
    private var ended = ""
    private var modes = WireQueueModes()
    /// New entries, and known ones, to be inserted at the mark.
    private var unplaced: [Entry] = []

    /// Sets a random revision to which the queue can be restored; does nothing if there is none.
    func chooseRevision(_ request: inout WireQueueRequest, _ random: inout SeededGenerator) {
        let known = past.map(\.revision).filter { $0 > 0 }
        guard !known.isEmpty else { return }
        request.restore.revision = known[random.below(known.count)]
    }

    /// Copies from a transaction the revision and the positions of entries that are inserted at the mark.
    mutating func record(_ transaction: QueueMachine.Transaction, of name: String) {
        for change in transaction.changes {
            guard case .put(let record)? = change.change, record.collection == "history/\(name)", undone == 0,
                let history = try? WireQueueHistoryRecord(wireBytes: Array(record.value))
            else { continue }
            if !unplaced.isEmpty { insertUnplaced(history.redo) }
            if let last = past.indices.last, past[last].revision == 0 { past[last].revision = history.item.revision }
        }
    }

    /// Inserts the new entries, and moves known ones, where the queue has inserted them; no other entry moves.
    private mutating func insertUnplaced(_ steps: [WireQueueStep]) {
        var next = list
        for step in steps {
            switch step.step {
            case .remove(let id): if unplaced.contains(where: { $0.id == id }) { next.removeAll { $0.id == id } }
            case .insert(let insertion):
                let entry = Entry(insertion.entry)
                guard unplaced.contains(entry) else { continue }
                let before = insertion.after.isEmpty ? nil : next.firstIndex { $0.id == insertion.after }
                next.insert(entry, at: before.map { $0 + 1 } ?? 0)
            default: break
            }
        }
        unplaced = []
        change(to: next)
    }

    private mutating func change(to next: [Entry]) {
        guard next != list else { return }
        dropUndone()
        past.append(Past(before: list, after: next))
        if past.count > 100 { past.removeFirst() }
        list = next
    }

    /// Discards the undone changes, which can’t be redone after a new change.
    private mutating func dropUndone() {
        past.removeLast(undone)
        undone = 0
    }

    mutating func apply(
        _ request: WireQueueRequest, _ id: RequestID, titles: [String: WireEpisode], player: WirePlaybackState
    ) {
        switch request.command {
        case .add(let add):
            let known = Set(list.map(\.episode))
            let new = add.episodes.enumerated().filter { index, episode in
                !known.contains(episode) && !add.episodes[..<index].contains(episode)
            }.map { Entry($1, $0, of: id) }
            guard add.next else { return change(to: list + new) }
            // Entries that the queue holds are moved, except the current one.
            insert(new + list.filter { add.episodes.contains($0.episode) })
        case .play(let play):
            guard case .episode(let episode)? = play.what, !list.contains(where: { $0.episode == episode }) else {
                return
            }
            insert([Entry(episode, 0, of: id)])
        case .remove(let remove):
            guard remove.entries.allSatisfy({ id in list.contains { $0.id == id } }) else { return }
            change(to: list.filter { !remove.entries.contains($0.id) })
        case .move(let move):
            guard let moved = list.first(where: { $0.id == move.entry }), Int(move.index) < list.count else { return }
            var next = list.filter { $0 != moved }
            next.insert(moved, at: Int(move.index))
            change(to: next)
        case .clear:
            let isLoaded = player.status != .idle && player.status != .finished
            change(to: list.filter { isLoaded && $0.id == player.queueEntry })
        case .undo where undone < past.count:
            undone += 1
            list = past[past.count - undone].before
        case .redo where undone > 0:
            list = past[past.count - undone].after
            undone -= 1
        case .sort(let sort):
            change(
                to: list.sorted {
                    let titles = (titles[$0.episode]?.title ?? "", titles[$1.episode]?.title ?? "")
                    return sort.descending ? titles.0 > titles.1 : titles.0 < titles.1
                })
        case .restore(let restore):
            if let found = past.first(where: { $0.revision == restore.revision }) {
                change(to: found.after)
            } else if let found = past.first(where: { $0.revision == restore.revision + 1 }) {
                // The mark was moved, or a later change was refused: the next change started from this state.
                change(to: found.before)
            }
        case .setModes(let set):
            if set.hasRepeat { modes.repeat = set.repeat }
            if set.hasConsume { modes.keep = !set.consume }
        default: break
        }
    }

    private mutating func insert(_ new: [Entry]) {
        guard !new.isEmpty else { return }
        dropUndone()
        unplaced = new
    }

    /// Records that an episode has ended: its entry is removed once, unless entries are kept.
    mutating func observe(_ state: WirePlaybackState) {
        guard state.status == .finished, state.loadID != ended else { return }
        ended = state.loadID
        if !modes.keep, modes.repeat != .one { change(to: list.filter { $0.id != state.queueEntry }) }
    }
}
