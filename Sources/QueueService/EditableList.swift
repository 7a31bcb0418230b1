import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The name of a queue or the ID of a playlist, which determines the collections of the list’s records.
enum ListID: Sendable, Hashable, CustomStringConvertible {
    case queue(String)
    case playlist(String)

    var description: String {
        switch self {
        case .queue(let name): "queue \(name)"
        case .playlist(let id): "playlist \(id)"
        }
    }

    /// The collection of the list’s entries. Persistence reads which episodes a queue, a playlist or the favourites
    /// contain from the names of these collections.
    var entryCollection: String {
        switch self {
        case .queue(let name): "entry/\(name)"
        case .playlist(let id): "item/\(id)"
        }
    }

    var historyCollection: String {
        switch self {
        case .queue(let name): "history/\(name)"
        case .playlist(let id): "playlist-history/\(id)"
        }
    }

    /// The option that names the list in a command.
    var option: String {
        switch self {
        case .queue(let name): "--queue \(name)"
        case .playlist(let id): "playlist \(id)"
        }
    }

    /// The command that shows the list, without `lockstep`, for messages.
    var showCommand: String {
        switch self {
        case .queue(let name): "queue\(QueueName.option(name))"
        case .playlist: command("show")
        }
    }

    /// A command to the list, such as `undo`, without `lockstep`, for messages.
    func command(_ verb: String) -> String {
        switch self {
        case .queue(let name): "queue \(verb)\(QueueName.option(name))"
        case .playlist(let id): "playlist \(verb) \(id)"
        }
    }

    /// The failure for a list that doesn’t exist.
    func missing(among lists: [String]) -> Failure {
        let (kind, name, command) =
            switch self {
            case .queue(let name): ("queue", name, "queues")
            case .playlist(let id): ("playlist", id, "playlist")
            }
        let advice = NearestWord.among(lists.sorted(), to: name).map { "Did you mean \($0)? " } ?? ""
        return Failure(.notFound, "There is no \(kind) “\(name)”. \(advice)`lockstep \(command)` lists them.")
    }
}

/// A list of episodes with a history: a queue or a playlist.
protocol EditableList: Sendable {
    /// A queue’s name, or a playlist’s ID.
    var name: String { get }
    static func id(_ name: String) -> ListID
    var queue: Queue { get set }
    var history: QueueHistory { get set }
    /// The maximum number of entries.
    var limit: Int { get }
    /// The list’s name in sentences.
    var shown: String { get }
    /// Whether the database contains the entries.
    var storesEntries: Bool { get }

    /// Returns the header record and the publications of a change that was applied to `queue`.
    ///
    /// - Parameter time: the time of an edit; nil for one that the history doesn’t contain.
    mutating func header(after outcome: Queue.Outcome, at time: Timestamp?) -> OwnerChange
}

extension Dictionary where Key == String, Value: EditableList {
    /// The lists in order of their names.
    var inOrder: [Value] { values.sorted { $0.name < $1.name } }

    /// - Throws: `notFound`, whose message suggests the most similar name.
    func existing(_ name: String) throws(Failure) -> Value {
        guard let list = self[name] else { throw Value.id(name).missing(among: Array(keys)) }
        return list
    }
}

extension EditableList {
    var id: ListID { Self.id(name) }
    var storesEntries: Bool { true }

    /// Applies a change by a command, a rule or an advance. It increments the revision and can be undone.
    mutating func edit(_ steps: [WireQueueStep], _ description: String, origin: String, now: Timestamp) -> OwnerChange {
        let outcome = queue.apply(steps)
        guard !outcome.steps.isEmpty else { return OwnerChange() }
        queue.revision += 1
        var record = WireQueueHistoryRecord()
        record.redo = Self.structural(outcome.steps)
        record.undo = Self.structural(outcome.inverse)
        // A change of only the current entry belongs to playback and can’t be undone.
        guard !record.undo.isEmpty else { return finish(outcome, at: now) }
        record.item.revision = queue.revision
        record.item.at = now.milliseconds
        record.item.description_p = description
        record.item.origin = origin
        record.item.entries = UInt32(clamping: queue.entries.count)
        record.origin = origin
        let changes = history.append(record, of: id)
        return finish(outcome, at: now, with: changes)
    }

    /// The steps that insert entries in this order after another one, or at the front if `anchor` is empty.
    ///
    /// - Parameter moved: those of the entries that the list holds already.
    /// - Returns: no steps if all are there in this order.
    func inserting(
        _ entries: [WireQueueEntry], moving moved: [WireQueueEntry], after anchor: String
    ) -> [WireQueueStep] {
        guard !moved.isEmpty else { return WireQueueStep.inserting(entries, after: anchor) }
        let ids = Set(moved.map(\.id))
        // The entry before the inserted ones must not be one that is moved.
        var before = queue.index(of: anchor) ?? -1
        while before >= 0, ids.contains(queue.entries[before].id) { before -= 1 }
        guard queue.entries.dropFirst(before + 1).prefix(entries.count).map(\.id) != entries.map(\.id) else {
            return []
        }
        return moved.map { .removing($0.id) }
            + WireQueueStep.inserting(entries, after: before < 0 ? "" : queue.entries[before].id)
    }

    /// Updates titles and positions of episodes, without a revision or an undo step.
    mutating func refresh(_ steps: [WireQueueStep]) -> OwnerChange {
        let outcome = queue.apply(steps)
        return outcome.steps.isEmpty ? OwnerChange() : finish(outcome, at: nil)
    }

    /// Undoes the newest change, or redoes the last undone one, without the entries of `podcasts`; nil if there is
    /// none. If `loaded` is restored, it becomes current.
    ///
    /// - Returns: The change, its description, the episodes of the restored entries, and the number of omitted entries.
    mutating func applyHistory(
        redo: Bool, loaded: String, without podcasts: Set<String>, now: Timestamp
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
        return (finish(outcome, at: now), record.item.description_p, episodes, gone.count)
    }

    /// Returns the steps without changes of the current entry, which follows playback.
    private static func structural(_ steps: [WireQueueStep]) -> [WireQueueStep] {
        steps.filter { if case .setCurrent? = $0.step { false } else { true } }
    }

    /// Removes the entries of a podcast whose episodes are being deleted.
    mutating func removeEntries(of podcast: String, now: Timestamp) -> OwnerChange {
        let removed = queue.entries.filter { $0.wire.episode.podcastID == podcast }
        return edit(
            removed.reversed().map { .removing($0.id) },
            "Removed \(Queue.counted(removed.count)) of a forgotten podcast", origin: ServiceName.feeds.text, now: now)
    }

    private func record(_ entry: Queue.Entry) -> WireChange {
        let record = WireQueueEntryRecord.with { ($0.entry, $0.rank) = (entry.wire, entry.rank) }
        return .putting(id.entryCollection, entry.id, record, about: (entry.wire.episode.id, 0))
    }

    /// The records of the entries and of the history.
    var entryRecords: [WireChange] {
        storesEntries ? queue.entries.map(record) + history.everything(of: id) : []
    }

    /// The deletion of the records of the entries and of the history.
    var entryDeletion: [WireChange] { [.deletingAll(id.entryCollection), .deletingAll(id.historyCollection)] }

    private mutating func finish(
        _ outcome: Queue.Outcome, at time: Timestamp?, with history: [WireChange] = []
    ) -> OwnerChange {
        var change = header(after: outcome, at: time)
        guard storesEntries else { return change }
        let collection = id.entryCollection
        if outcome.removed.count > queue.entries.count {
            change.changes.append(.deletingAll(collection))
            change.changes += queue.entries.map(record)
        } else {
            change.changes += outcome.removed.sorted().map { .deleting(collection, $0) }
            if outcome.touched.count > 8 {
                change.changes += queue.entries.filter { outcome.touched.contains($0.id) }.map(record)
            } else {
                change.changes += outcome.touched.sorted().compactMap { queue.entry($0).map(record) }
            }
        }
        change.changes += history
        return change
    }
}
