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

    init(_ id: String, title: String, createdAt: Timestamp) {
        name = id
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
    }

    static let favourites = Playlist(
        PlaylistName.favourites, title: PlaylistName.title(PlaylistName.favourites),
        createdAt: Timestamp(milliseconds: 0))

    var id: ListID { .playlist(name) }
    var limit: Int { Queue.limit }
    var shown: String { "“\(title)”" }

    /// The playlist as it is published.
    var wire: WirePlaylist {
        .with {
            $0.id = name
            $0.title = title
            $0.revision = queue.revision
            $0.items = UInt32(clamping: queue.entries.count)
            $0.createdAt = createdAt.milliseconds
            $0.updatedAt = updatedAt.milliseconds
            $0.continuous = isContinuous
            $0.shuffle = isShuffled
            $0.duration = queue.entries.reduce(0) { $0 + max(0, $1.wire.episode.duration) }
        }
    }

    var publication: Publication { Publication(.put, .playlist(name), wire.wireBytes) }
    var everything: [WireChange] { [headerRecord] + entryRecords }

    var deletion: OwnerChange {
        OwnerChange(
            changes: [.deleting("playlist", name)] + entryDeletion,
            publications: [Publication(.delete, .playlist(name))])
    }

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
    /// - Throws: `invalidArgument` for an invalid title; `notApplicable` for the title of the favourites.
    mutating func apply(_ change: WireChangePlaylist, now: Timestamp) throws(Failure) -> OwnerChange {
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
        guard (changed.title, changed.isContinuous, changed.isShuffled) != (title, isContinuous, isShuffled) else {
            return OwnerChange()
        }
        changed.queue.revision += 1
        changed.updatedAt = max(updatedAt, now)
        self = changed
        return headerChange
    }

    /// Moves items to a position relative to another one, as one change.
    mutating func move(_ move: WireMoveItems, origin: String, now: Timestamp) throws(Failure) -> (
        change: OwnerChange, moved: [WireQueueEntry], index: Int
    ) {
        guard !move.texts.isEmpty, move.texts.count <= Self.textLimit else {
            throw Failure(.invalidArgument, "A request moves 1 to \(Self.textLimit) items, not \(move.texts.count).")
        }
        var finder = EntryFinder(in: self)
        var ids: Set<String> = []
        for text in move.texts { ids.insert(try finder.entry(text).entry.id) }
        let moved = queue.entries.filter { ids.contains($0.id) }
        let rest = queue.entries.filter { !ids.contains($0.id) }
        func index(of text: String) throws(Failure) -> Int {
            let other = try finder.entry(text).entry.id
            guard let index = rest.firstIndex(where: { $0.id == other }) else {
                throw Failure(.notApplicable, "An item can’t be moved before or after itself.")
            }
            return index
        }
        let index =
            switch move.to {
            case .beforeText(let text): try index(of: text)
            case .afterText(let text): try index(of: text) + 1
            case .index(let index): Int(index)
            case nil: throw Failure(.invalidArgument, "The request has no position to which to move the items.")
            }
        guard index <= rest.count else {
            throw Failure(
                .notApplicable, "\(shown) has \(queue.counted); there is no position \(index + moved.count).")
        }
        let anchor = index == 0 ? "" : rest[index - 1].id
        let target = Array(rest[..<index]) + moved + Array(rest[index...])
        guard target.map(\.id) != queue.entries.map(\.id) else { return (OwnerChange(), moved.map(\.wire), index) }
        let what = moved.count == 1 ? "“\(moved[0].wire.episode.title)”" : Queue.counted(moved.count)
        let change = edit(
            moved.reversed().map { .removing($0.id) } + WireQueueStep.inserting(moved.map(\.wire), after: anchor),
            "Moved \(what) to position \(index + 1)", origin: origin, now: now)
        return (change, moved.map(\.wire), index)
    }

    /// Returns the items to play in order.
    ///
    /// - Throws: `queueEmpty`; `notFound` or `ambiguous` for the first item.
    func items(toPlay play: WirePlayPlaylist, request: RequestID) throws(Failure) -> [Queue.Entry] {
        guard !queue.entries.isEmpty else {
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

extension Playlists {
    /// The playlists in order of their titles, the favourites first.
    var inOrder: [Playlist] {
        values.sorted { left, right in
            let favourites = PlaylistName.favourites
            guard left.name != favourites, right.name != favourites else { return left.name == favourites }
            return (left.title, left.name) < (right.title, right.name)
        }
    }

    /// - Throws: `notFound`, whose message suggests the most similar ID.
    func existing(_ id: String) throws(Failure) -> Playlist {
        if let playlist = self[id] { return playlist }
        let advice = NearestWord.among(keys.sorted(), to: id).map { "Did you mean \($0)? " } ?? ""
        throw Failure(.notFound, "There is no playlist “\(id)”. \(advice)`lockstep playlist` lists them.")
    }
}
