import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A command that changes the entries of one queue or playlist, decided from the list and the player’s state only.
struct ListEdit<List: EditableList> {
    private(set) var list: List
    let context: CommandContext
    /// The player’s state; nil for a playlist, which doesn’t play.
    let player: WirePlaybackState?
    /// The forgotten podcasts, whose entries aren’t restored.
    let forgotten: Set<String>
    private(set) var change = OwnerChange()
    private(set) var reply = WireQueueReply()
    /// The episodes whose entries were restored.
    private(set) var restoredEpisodes: Set<String> = []

    mutating func apply(_ command: WireQueueRequest.OneOf_Command?) throws(Failure) {
        switch command {
        case .add(let add): try self.add(add)
        case .remove(let remove): try self.remove(remove)
        case .move(let move): try self.move(move)
        case .clear: clear()
        case .undo(let undo): try self.undo(undo)
        case .redo: applyHistory(redo: true)
        case .sort(let sort): try self.sort(sort)
        case .shuffle(let shuffle): self.shuffle(seed: shuffle.seed)
        case .deduplicate: deduplicate()
        case .restore(let restore): try self.restore(restore.revision)
        default: throw QueueMachine.unknownCommand
        }
    }

    private mutating func edit(_ steps: [WireQueueStep], _ description: String) {
        change = list.edit(steps, description, origin: context.command.origin, now: context.now.wall)
    }

    /// Removes entries, which are in the queue’s order, and lists them in the reply.
    private mutating func remove(_ entries: [Queue.Entry], _ description: String) {
        edit(entries.reversed().map { .removing($0.id) }, description)
        reply.entries = entries.prefix(RequestSizes.episodes).map(\.wire).fitting
        reply.count = UInt32(clamping: entries.count)
    }

    private mutating func add(_ add: WireAddEntries) throws(Failure) {
        guard !add.episodes.isEmpty else { throw Failure(.invalidArgument, "The request names no episodes to add.") }
        let new = Set(list.queue.absent(among: add.episodes))
        try list.checkRoom(for: new.count)
        let anchor = list.anchor(next: add.next, loaded: player?.queueEntry ?? "")
        var entries: [WireQueueEntry] = []
        var moved: [WireQueueEntry] = []
        var all: [WireQueueEntry] = []
        var seen: Set<String> = []
        for (index, episode) in add.episodes.enumerated() where seen.insert(episode).inserted {
            if new.contains(episode) {
                entries.append(try .adding(episode, index, context))
                all += entries.suffix(1)
            } else if add.next, let known = list.queue.entry(episode: episode), known.id != list.queue.current,
                known.id != player?.queueEntry
            {
                moved.append(known.wire)
                all += moved.suffix(1)
            } else {
                reply.alreadyThere.append(episode)
            }
        }
        let steps = list.inserting(all, moving: moved, after: anchor)
        if steps.isEmpty {
            reply.alreadyThere += moved.map(\.episode.id)
        } else {
            reply.moved = moved.map(\.episode.id)
        }
        edit(steps, description(ofAdding: entries, moving: moved, next: add.next))
        reply.entries = entries.fitting
        reply.count = UInt32(entries.count)
    }

    private func description(
        ofAdding entries: [WireQueueEntry], moving moved: [WireQueueEntry], next: Bool
    ) -> String {
        let changed = entries.isEmpty ? moved : entries
        let what = changed.count == 1 ? "“\(changed[0].episode.title)”" : "\(changed.count) episodes"
        let verb = entries.isEmpty ? "Moved" : "Added"
        guard next else { return "\(verb) \(what)" }
        if case .playlist = list.id { return "\(verb) \(what) \(entries.isEmpty ? "to" : "at") the front" }
        return "\(verb) \(what) to play next"
    }

    private mutating func remove(_ remove: WireRemoveEntries) throws(Failure) {
        let found = try list.entries(remove)
        self.remove(
            found, "Removed " + (found.count == 1 ? "“\(found[0].wire.episode.title)”" : "\(found.count) entries"))
    }

    private mutating func clear() {
        let loaded = player.map { [.idle, .finished].contains($0.status) ? "" : $0.queueEntry } ?? ""
        let removed = list.queue.entries.filter { $0.id != loaded }
        remove(removed, "Cleared \(Queue.counted(removed.count))")
        reply.description_p = Queue.counted(removed.count)
    }

    private mutating func deduplicate() {
        // The playing entry is kept.
        let removed = list.duplicates(keeping: [player?.queueEntry, list.queue.current].compactMap(\.self))
        remove(removed, "Removed \(removed.count == 1 ? "1 duplicate" : "\(removed.count) duplicates")")
        reply.description_p = Queue.counted(removed.count)
    }

    private mutating func move(_ move: WireMoveEntry) throws(Failure) {
        guard let from = list.queue.index(of: move.entry) else {
            throw Failure(
                .notFound, "That entry is no longer in \(list.shown); nothing was moved.")
        }
        switch move.to {
        case .before(let id): try self.move([from], to: .before(id))
        case .after(let id): try self.move([from], to: .after(id))
        case .index(let index): try self.move([from], to: .index(Int(index)))
        case .beforeText, .afterText, nil:
            throw Failure(.invalidArgument, "The request has no position to which to move the entry.")
        }
    }

    mutating func move(_ move: WireMoveItems) throws(Failure) {
        guard !move.texts.isEmpty, move.texts.count <= List.textLimit else {
            throw Failure(.invalidArgument, "A request moves 1 to \(List.textLimit) items, not \(move.texts.count).")
        }
        var finder = EntryFinder(in: list)
        func id(_ text: String) throws(Failure) -> String { try finder.entry(text).entry.id }
        var moved: Set<Int> = []
        for text in move.texts { moved.formUnion([list.queue.index(of: try id(text))].compactMap(\.self)) }
        switch move.to {
        case .beforeText(let text): try self.move(moved.sorted(), to: .before(try id(text)))
        case .afterText(let text): try self.move(moved.sorted(), to: .after(try id(text)))
        case .index(let index): try self.move(moved.sorted(), to: .index(Int(index)))
        case nil: throw Failure(.invalidArgument, "The request has no position to which to move the items.")
        }
    }

    /// Moves the entries at these indices, which are in order, as one change.
    private mutating func move(_ moved: [Int], to target: MoveTarget) throws(Failure) {
        let queue = list.queue
        let index = try list.index(of: target, moving: moved)
        let entries = moved.map { queue.entries[$0].wire }
        reply.entries = entries.fitting
        reply.index = UInt32(index)
        guard moved != Array(index..<index + moved.count) else { return }
        // The present index of the entry that they will follow.
        let before = moved.reduce(index - 1) { $1 <= $0 ? $0 + 1 : $0 }
        let anchor = index == 0 ? "" : queue.entries[before].id
        var steps = entries.reversed().map { WireQueueStep.removing($0.id) }
        steps += WireQueueStep.inserting(entries, after: anchor)
        // The current entry remains current after the move.
        if let current = queue.current, entries.contains(where: { $0.id == current }) {
            steps.append(.settingCurrent(current))
        }
        let what = entries.count == 1 ? "“\(entries[0].episode.title)”" : Queue.counted(entries.count)
        edit(steps, "Moved \(what) to position \(index + 1)")
    }

    private mutating func sort(_ sort: WireSortEntries) throws(Failure) {
        guard let order = EntryOrder(sort.by, descending: sort.descending) else {
            throw Failure(
                .invalidArgument,
                "Entries are sorted by title, podcast, published, duration, added or remaining.")
        }
        let ids = order.sorted(list.queue.entries.map(\.wire)).map(\.id)
        edit([.ordering(ids)], "Sorted by \(order.name)\(sort.descending ? ", descending" : "")")
    }

    /// Puts the entries after the current one into a random order.
    private mutating func shuffle(seed: UInt64) {
        let id = context.command.id
        var generator = SeededGenerator(seed: seed == 0 ? id.high ^ id.low : seed)
        let first = list.queue.current.flatMap { list.queue.index(of: $0) }.map { $0 + 1 } ?? 0
        let following = list.queue.entries.dropFirst(first).map(\.id)
        edit([.ordering(following.shuffled(using: &generator))], "Shuffled \(Queue.counted(following.count))")
    }

    private mutating func undo(_ undo: WireUndo) throws(Failure) {
        guard undo.change == 0 || undo.change == list.history.newestRevision else {
            throw Failure(
                .revisionMismatch,
                "This change of \(list.shown) isn’t the newest one any more, so it wasn’t undone. "
                    + "`lockstep \(list.id.command("history"))` lists the changes.")
        }
        applyHistory(redo: false)
    }

    private mutating func applyHistory(redo: Bool) {
        let loaded = player?.queueEntry ?? ""
        // The change is restored in full, even if a lower limit has been set since.
        guard
            let step = list.applyHistory(
                redo: redo, loaded: loaded, without: forgotten, now: context.now.wall)
        else { return }
        change = step.change
        reply.description_p = step.description + List.omissionNote(step.forgotten)
        restoredEpisodes = Set(step.episodes)
    }

    private mutating func restore(_ revision: UInt64) throws(Failure) {
        let (target, lost) = try list.entries(at: revision, without: forgotten)
        let loaded = player.map { $0.status == .idle ? "" : $0.queueEntry } ?? ""
        var steps = list.queue.steps(to: target)
        if list.queue.index(of: loaded) == nil, target.contains(where: { $0.id == loaded }) {
            steps.append(.settingCurrent(loaded))
        }
        edit(steps, "Restored revision \(revision)")
        reply.description_p = Queue.counted(target.count) + List.omissionNote(lost)
        restoredEpisodes = Set(WireQueueStep.additions(of: steps).map(\.episode.id))
    }
}
