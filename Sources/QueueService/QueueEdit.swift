import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A command that changes the entries or modes of one queue, decided from the queue and the player’s state only.
struct QueueEdit {
    /// The maximum number of entries in a reply; longer lists aren’t returned in full.
    private static let replyLimit = RequestSizes.episodes

    private(set) var named: NamedQueue
    let context: CommandContext
    let player: WirePlaybackState?
    /// The forgotten podcasts, whose entries aren’t restored.
    let forgotten: Set<String>
    private(set) var change = OwnerChange()
    private(set) var reply = WireQueueReply()
    /// The episodes whose entries were restored.
    private(set) var restoredEpisodes: Set<String> = []

    mutating func apply() throws(Failure) {
        switch context.request.command {
        case .add(let add): try self.add(add)
        case .remove(let remove): try self.remove(remove.entries)
        case .move(let move): try self.move(move)
        case .clear: clear()
        case .undo(let undo): try applyHistory(redo: false, at: undo.fromRevision)
        case .redo(let redo): try applyHistory(redo: true, at: redo.fromRevision)
        case .sort(let sort): try self.sort(sort)
        case .deduplicate: deduplicate()
        case .setModes(let modes): try setModes(modes)
        case .restore(let restore): try self.restore(restore.revision)
        default: throw QueueMachine.unknownCommand
        }
    }

    private mutating func edit(_ steps: [WireQueueStep], _ description: String) {
        change = named.edit(steps, description, origin: context.command.origin, now: context.now.wall)
    }

    /// Removes entries, which are in the queue’s order, and lists them in the reply.
    private mutating func remove(_ entries: [Queue.Entry], _ description: String) {
        edit(entries.reversed().map { .removing($0.id) }, description)
        reply.entries = entries.prefix(Self.replyLimit).map(\.wire)
        reply.count = UInt32(clamping: entries.count)
    }

    private mutating func add(_ add: WireAddEntries) throws(Failure) {
        guard !add.episodes.isEmpty else { throw Failure(.invalidArgument, "The request names no episodes to add.") }
        let new = Set(named.queue.absent(among: add.episodes))
        try named.checkRoom(for: new.count)
        var entries: [WireQueueEntry] = []
        var seen: Set<String> = []
        for (index, episode) in add.episodes.enumerated() where seen.insert(episode).inserted {
            if new.contains(episode) {
                entries.append(try .adding(episode, index, context))
            } else {
                reply.alreadyThere.append(episode)
            }
        }
        let anchor = named.anchor(next: add.next, loaded: player?.queueEntry ?? "")
        let what = entries.count == 1 ? "“\(entries[0].episode.title)”" : "\(entries.count) episodes"
        edit(
            WireQueueStep.inserting(entries, after: anchor), add.next ? "Added \(what) to play next" : "Added \(what)")
        reply.entries = Array(entries.prefix(Self.replyLimit))
        reply.count = UInt32(entries.count)
    }

    private mutating func remove(_ ids: [String]) throws(Failure) {
        let found = try named.entries(ids)
        remove(found, "Removed " + (found.count == 1 ? "“\(found[0].wire.episode.title)”" : "\(found.count) entries"))
    }

    private mutating func clear() {
        let loaded = player.map { [.idle, .finished].contains($0.status) ? "" : $0.queueEntry } ?? ""
        let removed = named.queue.entries.filter { $0.id != loaded }
        remove(removed, "Cleared \(Queue.counted(removed.count))")
        reply.description_p = Queue.counted(removed.count)
    }

    private mutating func deduplicate() {
        // The playing entry is kept.
        let removed = named.duplicates(keeping: [player?.queueEntry, named.queue.current].compactMap(\.self))
        remove(removed, "Removed \(removed.count == 1 ? "1 duplicate" : "\(removed.count) duplicates")")
        reply.description_p = Queue.counted(removed.count)
    }

    private mutating func move(_ move: WireMoveEntry) throws(Failure) {
        let queue = named.queue
        guard let entry = queue.entry(move.entry), let from = queue.index(of: move.entry) else {
            throw Failure(
                .notFound, "That entry is no longer in \(QueueName.shown(named.name)); nothing was moved.")
        }
        let index = try named.index(of: move, from: from)
        reply.entries = [entry.wire]
        reply.index = UInt32(index)
        guard index != from else { return }
        let anchor = index == 0 ? nil : queue.entries[index <= from ? index - 1 : index]
        var steps: [WireQueueStep] = [.removing(move.entry), .inserting(entry.wire, after: anchor?.id ?? "")]
        // The entry remains current after the move.
        if queue.current == move.entry { steps.append(.settingCurrent(move.entry)) }
        edit(steps, "Moved “\(entry.wire.episode.title)” to position \(index + 1)")
    }

    private mutating func sort(_ sort: WireSortEntries) throws(Failure) {
        guard let order = EntryOrder(sort.by, descending: sort.descending) else {
            throw Failure(
                .invalidArgument,
                "Entries are sorted by title, podcast, published, duration, added or remaining.")
        }
        let ids = order.sorted(named.queue.entries.map(\.wire)).map(\.id)
        edit([.ordering(ids)], "Sorted by \(order.name)\(sort.descending ? ", descending" : "")")
    }

    private mutating func setModes(_ set: WireSetModes) throws(Failure) {
        let modes = try named.modes.applying(set)
        guard modes != named.modes else { return }
        named.modes = modes
        change = named.modesChange()
    }

    private mutating func applyHistory(redo: Bool, at revision: UInt64) throws(Failure) {
        if revision != 0 { try named.requireRevision(revision) }
        let loaded = player?.queueEntry ?? ""
        // The change is restored in full, even if a lower limit has been set since.
        guard let step = named.applyHistory(redo: redo, loaded: loaded, without: forgotten) else { return }
        change = step.change
        reply.description_p = step.description + NamedQueue.omissionNote(step.forgotten)
        restoredEpisodes = Set(step.episodes)
    }

    private mutating func restore(_ revision: UInt64) throws(Failure) {
        let (target, lost) = try named.entries(at: revision, without: forgotten)
        let loaded = player.map { $0.status == .idle ? "" : $0.queueEntry } ?? ""
        var steps = named.queue.steps(to: target)
        if named.queue.index(of: loaded) == nil, target.contains(where: { $0.id == loaded }) {
            steps.append(.settingCurrent(loaded))
        }
        edit(steps, "Restored revision \(revision)")
        reply.description_p = Queue.counted(target.count) + NamedQueue.omissionNote(lost)
        restoredEpisodes = Set(WireQueueStep.additions(of: steps).map(\.episode.id))
    }
}
