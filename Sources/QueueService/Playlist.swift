import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A list of episodes that doesn’t play by itself: playing it adds its items to Up Next.
struct Playlist: EditableList {
    /// The maximum number of playlists.
    static let countLimit = 200

    let name: String
    var queue = Queue()
    var history = QueueHistory()
    private(set) var title: String
    private(set) var createdAt: Timestamp
    private(set) var updatedAt: Timestamp
    /// Whether playing adds the items after the first one, too.
    private(set) var isContinuous = true
    /// Whether playing adds the items in random order.
    private(set) var isShuffled = false
    /// The rule that chooses the items; nil if commands do.
    private(set) var smart: SmartList?
    /// When it was deleted; nil if it exists.
    private(set) var deletedAt: Timestamp?

    init(_ id: String, title: String, smart: SmartList? = nil, createdAt: Timestamp) {
        name = id
        self.smart = smart
        self.title = title
        self.createdAt = createdAt
        updatedAt = createdAt
    }

    init(_ id: String, record: WirePlaylistRecord, items: [Queue.Entry], history: QueueHistory) {
        name = id
        queue = Queue(entries: items, current: nil, successor: nil, revision: record.revision)
        self.history = history
        title = record.title.isEmpty ? PlaylistName.title(id) : record.title
        createdAt = Timestamp(milliseconds: record.createdAt)
        updatedAt = Timestamp(milliseconds: record.updatedAt)
        isContinuous = !record.single
        isShuffled = record.shuffle
        smart = record.hasSmart ? SmartList(record) : nil
        deletedAt = record.deletedAt == 0 ? nil : Timestamp(milliseconds: record.deletedAt)
    }

    /// Creates a copy with another ID.
    init(_ id: String, copying other: Playlist) {
        name = id
        (queue, history, title, smart) = (other.queue, other.history, other.title, other.smart)
        (createdAt, updatedAt, deletedAt) = (other.createdAt, other.updatedAt, other.deletedAt)
        (isContinuous, isShuffled) = (other.isContinuous, other.isShuffled)
    }

    static let favourites = Playlist(
        PlaylistName.favourites, title: PlaylistName.title(PlaylistName.favourites),
        createdAt: Timestamp(milliseconds: 0))

    static func id(_ name: String) -> ListID { .playlist(name) }

    /// Whether its ID or title is this text, regardless of case.
    func isNamed(_ text: String) -> Bool { [name, title].contains { $0.lowercased() == text.lowercased() } }

    var limit: Int { smart.map { Int($0.wire.limit) } ?? Queue.limit }
    var shown: String { "“\(title)”" }
    var storesEntries: Bool { smart == nil }
    /// Whether the items are known: those of a smart playlist aren’t until its rule was evaluated.
    var hasItems: Bool { smart.map { $0.stored == nil } ?? true }

    private var count: UInt32 { smart?.stored?.count ?? UInt32(clamping: queue.entries.count) }
    private var duration: Double {
        smart?.stored?.duration ?? queue.entries.reduce(0) { $0 + max(0, $1.wire.episode.duration) }
    }

    /// The playlist as it is published.
    var wire: WirePlaylist {
        .with {
            $0.id = name
            $0.title = title
            $0.revision = queue.revision
            $0.items = count
            $0.createdAt = createdAt.milliseconds
            $0.updatedAt = updatedAt.milliseconds
            $0.continuous = isContinuous
            $0.shuffle = isShuffled
            $0.duration = duration
            if let smart { $0.smart = smart.wire }
        }
    }

    var publication: Publication { Publication(.put, .playlist(name), wire.wireBytes) }
    var everything: [WireChange] { [headerRecord] + entryRecords }

    /// Deletes the playlist for its users; its records stay, so that this can be undone.
    mutating func delete(now: Timestamp) -> OwnerChange {
        deletedAt = now
        return OwnerChange(changes: [headerRecord], publications: [Publication(.delete, .playlist(name))])
    }

    /// Undoes the deletion. The revision is a new one, because clients know the old one with the same items.
    ///
    /// - Parameters:
    ///   - forgotten: the podcasts that were forgotten since, whose episodes aren’t restored.
    ///   - smart: the rule of a smart playlist.
    mutating func undelete(without forgotten: Set<String>, smart: SmartList?, now: Timestamp) -> OwnerChange {
        deletedAt = nil
        self.smart = smart
        var change = OwnerChange()
        for podcast in forgotten.sorted() {
            change.changes += removeEntries(of: podcast, now: now).changes
        }
        queue.revision += 1
        updatedAt = max(updatedAt, now)
        change.changes += headerChange.changes
        change.publications = headerChange.publications
        return change
    }

    /// The deletion of all records.
    var erasure: [WireChange] { [.deleting("playlist", name)] + entryDeletion }

    private var headerRecord: WireChange {
        .putting(
            "playlist", name,
            WirePlaylistRecord.with {
                $0.title = title
                $0.revision = queue.revision
                $0.createdAt = createdAt.milliseconds
                $0.updatedAt = updatedAt.milliseconds
                $0.single = !isContinuous
                $0.shuffle = isShuffled
                $0.undone = UInt32(clamping: history.undone)
                $0.deletedAt = deletedAt?.milliseconds ?? 0
                guard let smart else { return }
                ($0.smart, $0.digest) = (smart.wire, smart.digest)
                ($0.items, $0.duration) = (count, duration)
            })
    }

    var headerChange: OwnerChange { OwnerChange(changes: [headerRecord], publications: [publication]) }

    mutating func header(after outcome: Queue.Outcome, at time: Timestamp?) -> OwnerChange {
        guard let time else { return OwnerChange(publications: [publication]) }
        updatedAt = max(updatedAt, time)
        return headerChange
    }

    /// Changes the title and the settings, which aren’t part of the history; the change is empty if they are equal.
    ///
    /// - Parameter smart: the changed rule of a smart playlist; nil if it doesn’t change.
    /// - Throws: `invalidArgument` for an invalid title; `notApplicable` for the title of the favourites.
    mutating func apply(
        _ change: WireChangePlaylist, smart: SmartList?, now: Timestamp
    ) throws(Failure) -> OwnerChange {
        var changed = self
        if change.hasTitle {
            let title = try PlaylistName.checked(title: change.title)
            guard name != PlaylistName.favourites || title == self.title else {
                throw Failure(
                    .notApplicable, "The favourites can’t be renamed. Create a playlist with that title instead.")
            }
            changed.title = title
        }
        if change.hasContinuous { changed.isContinuous = change.continuous }
        if change.hasShuffle { changed.isShuffled = change.shuffle }
        let isSame = (changed.title, changed.isContinuous, changed.isShuffled) == (title, isContinuous, isShuffled)
        if var smart, smart.wire != self.smart?.wire {
            // The number and the length stay until the new rule was evaluated.
            (smart.digest, smart.stored) = (0, (count, duration))
            changed.smart = smart
        } else if isSame {
            return OwnerChange()
        }
        changed.queue.revision += 1
        changed.updatedAt = max(updatedAt, now)
        self = changed
        return headerChange
    }

    /// Follows a queue that has a new name, in the rule of a smart playlist; the change is empty if it doesn’t name it.
    mutating func rename(queue name: String, to new: String, now: Timestamp) -> OwnerChange {
        guard var list = smart, list.rename(queue: name, to: new) else { return OwnerChange() }
        smart = list
        queue.revision += 1
        updatedAt = max(updatedAt, now)
        return headerChange
    }

    /// Sets the items that the rule chose; the change is empty if their IDs are the same.
    mutating func setItems(_ episodes: [WireEpisodeSummary], now: Timestamp) -> OwnerChange {
        guard var list = smart else { return OwnerChange() }
        let digest = SmartList.digest(of: episodes.map(\.id))
        let isSame = digest == list.digest
        (list.digest, list.stored) = (digest, nil)
        smart = list
        let entries = episodes.enumerated().map { index, episode in
            let entry = WireQueueEntry.with {
                $0.id = QueueEntryID.derived(from: "smart/\(name)/\(episode.id)").text
                $0.episode = episode
            }
            return Queue.Entry(entry, rank: Int64(index))
        }
        queue = Queue(entries: entries, current: nil, successor: nil, revision: queue.revision + (isSame ? 0 : 1))
        guard !isSame else { return OwnerChange() }
        updatedAt = max(updatedAt, now)
        return headerChange
    }

    /// Returns the items to play in order.
    ///
    /// - Throws: `queueEmpty`; `notFound` or `ambiguous` for the first item.
    func items(toPlay play: WirePlayPlaylist, request: RequestID) throws(Failure) -> [Queue.Entry] {
        guard !queue.entries.isEmpty else {
            if let smart { throw Failure(.queueEmpty, "No episode meets the rule of \(shown): \(smart.wire.rule).") }
            throw Failure(
                .queueEmpty,
                "\(shown) is empty. Add something with `lockstep playlist add \(name) EPISODE`.")
        }
        var finder = EntryFinder(in: self)
        let from = play.fromText.isEmpty ? nil : try finder.entry(play.fromText).entry.id
        var items = Array(queue.entries)
        if play.hasShuffle ? play.shuffle : isShuffled {
            var generator = SeededGenerator(seed: play.seed == 0 ? request.low : play.seed)
            items.shuffle(using: &generator)
            if let from, let index = items.firstIndex(where: { $0.id == from }) {
                items.insert(items.remove(at: index), at: 0)
            }
        } else if let from, let index = items.firstIndex(where: { $0.id == from }) {
            items.removeFirst(index)
        }
        return (play.hasContinuous ? play.continuous : isContinuous) ? items : Array(items.prefix(1))
    }
}

typealias Playlists = [String: Playlist]
