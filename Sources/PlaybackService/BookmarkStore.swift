import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The bookmarks, and what becomes of the requests about them.
///
/// A change holds at once for the requests behind it, and is taken back if it can't be saved.
struct BookmarkStore: Sendable {
    /// The outcome of a request.
    enum Outcome: Sendable {
        /// There is nothing to change.
        case unchanged(WireBookmark)
        /// It is to be committed.
        case changed(Change)
        /// The library is to be asked for its episode; `complete` takes the answer.
        case needsEpisode(WireBookmark)
    }

    /// A bookmark that was set, or removed.
    struct Change: Sendable {
        /// As it was set, or removed.
        let bookmark: WireBookmark
        let isRemoval: Bool
        /// The bookmark before the change.
        let was: WireBookmark?

        var record: WireChange {
            isRemoval ? .deleting("bookmark", bookmark.id) : .putting("bookmark", bookmark.id, bookmark)
        }
    }

    /// The longest note, in bytes, and the maximum number of bookmarks of an episode: so that they fit in one message.
    private static let noteLimit = 2_000
    private static let bookmarkLimit = 200
    /// Less than the bus carries in one message, in bytes.
    private static let replyLimit = 900_000

    private(set) var bookmarks: [String: WireBookmark] = [:]
    /// Changes that have no outcome yet, in order, and what there was before each.
    private var uncommitted: [(transaction: TransactionID, bookmark: String, was: WireBookmark?)] = []

    // MARK: Requests

    /// Makes a bookmark, or changes the note of one.
    ///
    /// - Parameter session: what is loaded, which an episode or position that isn't named is taken from.
    mutating func set(
        _ set: WireSetBookmark, _ command: Command, of session: PlaybackSession?, now: Moment
    ) throws(Failure) -> Outcome {
        guard set.note.utf8.count <= Self.noteLimit else {
            throw Failure(.limitReached, "The note is longer than \(Self.noteLimit) bytes; shorten it.")
        }
        guard set.id.isEmpty else {
            guard var bookmark = bookmarks[set.id] else {
                throw Failure(.notFound, "There is no bookmark “\(set.id)”.")
            }
            bookmark.note = set.note
            return put(bookmark)
        }
        var bookmark = WireBookmark()
        bookmark.id = BookmarkID.derived(from: command.id.description).text
        bookmark.episode = set.episode.isEmpty ? session?.episode.id ?? "" : set.episode
        bookmark.note = set.note
        bookmark.createdAt = now.wall.milliseconds
        guard !bookmark.episode.isEmpty else {
            throw Failure(.nothingLoaded, "Nothing is loaded; name the episode that the bookmark is for.")
        }
        guard EpisodeID(bookmark.episode) != nil else {
            throw Failure(.invalidArgument, "“\(bookmark.episode)” isn’t a valid episode ID.")
        }
        guard bookmarks.values.count(where: { $0.episode == bookmark.episode }) < Self.bookmarkLimit else {
            throw Failure(
                .limitReached, "The episode has \(Self.bookmarkLimit) bookmarks already; remove some of them first.")
        }
        if set.hasPosition {
            guard let position = PlaybackPosition(seconds: set.position) else {
                throw Failure(.invalidArgument, "\(set.position) s isn’t a valid position.")
            }
            bookmark.position = position.seconds
        }
        guard let session, session.episode.id == bookmark.episode else {
            bookmark.position = set.hasPosition ? bookmark.position : -1
            return .needsEpisode(bookmark)
        }
        if !set.hasPosition { bookmark.position = session.position(at: now.monotonic).seconds }
        bookmark.title = session.episode.title
        bookmark.podcast = session.episode.podcastID
        try check(bookmark, duration: session.duration?.seconds ?? 0)
        return put(bookmark)
    }

    /// Makes a bookmark of an episode that has been looked up; nil: there is none.
    mutating func complete(_ bookmark: WireBookmark, _ episode: WireEpisode?) throws(Failure) -> Outcome {
        guard let episode else { throw Failure(.notFound, "There is no episode “\(bookmark.episode)”.") }
        var bookmark = bookmark
        if bookmark.position < 0 { bookmark.position = episode.state.position }
        bookmark.title = episode.title
        bookmark.podcast = episode.podcastID
        try check(bookmark, duration: episode.state.duration > 0 ? episode.state.duration : episode.duration)
        return put(bookmark)
    }

    private func check(_ bookmark: WireBookmark, duration: Double) throws(Failure) {
        guard duration == 0 || bookmark.position <= duration else {
            throw Failure(
                .invalidArgument,
                "\(ClockText.format(bookmark.position)) is beyond the end of the episode at \(ClockText.format(duration))."
            )
        }
    }

    private mutating func put(_ bookmark: WireBookmark) -> Outcome {
        guard let was = bookmarks.updateValue(bookmark, forKey: bookmark.id) else {
            return .changed(Change(bookmark: bookmark, isRemoval: false, was: nil))
        }
        return was == bookmark
            ? .unchanged(bookmark) : .changed(Change(bookmark: bookmark, isRemoval: false, was: was))
    }

    /// Removes a bookmark.
    mutating func remove(_ id: String) throws(Failure) -> Outcome {
        guard let bookmark = bookmarks.removeValue(forKey: id) else {
            throw Failure(.notFound, "There is no bookmark “\(id)”; it may have been removed already.")
        }
        return .changed(Change(bookmark: bookmark, isRemoval: true, was: bookmark))
    }

    /// Removes the bookmarks of a podcast's episodes.
    mutating func removeAll(of podcast: String) -> [WireBookmark] {
        let gone = bookmarks.values.filter { $0.podcast == podcast }
        for bookmark in gone { bookmarks[bookmark.id] = nil }
        return gone
    }

    /// The answer to a request for the bookmarks of an episode, or (empty) for all.
    func list(of episode: String) throws(Failure) -> WirePlaybackReply {
        var reply = WirePlaybackReply()
        reply.bookmarks.bookmarks = ordered { episode.isEmpty || $0.episode == episode }
        guard reply.wireBytes.count <= Self.replyLimit else {
            throw Failure(
                .limitReached, "All \(bookmarks.count) bookmarks together are too much for one answer; name an episode."
            )
        }
        return reply
    }

    // MARK: The database and the stream

    /// Takes over a stored bookmark.
    mutating func restore(_ bookmark: WireBookmark, as id: String) { bookmarks[id] = bookmark }

    /// A change is under way to the database.
    mutating func begin(_ transaction: TransactionID, _ change: Change) {
        uncommitted.append((transaction, change.bookmark.id, change.was))
    }

    /// A transaction has become durable.
    mutating func committed(_ transaction: TransactionID) {
        uncommitted.removeAll { $0.transaction == transaction }
    }

    /// A transaction was refused. A change in it never was: the next one under way follows what there was before it.
    ///
    /// - Returns: the episode whose bookmarks are others now.
    mutating func refused(_ transaction: TransactionID) -> String? {
        guard let index = uncommitted.firstIndex(where: { $0.transaction == transaction }) else { return nil }
        let (_, id, was) = uncommitted.remove(at: index)
        if let next = uncommitted[index...].firstIndex(where: { $0.bookmark == id }) {
            uncommitted[next].was = was
            return nil
        }
        let episode = bookmarks[id]?.episode ?? was?.episode
        bookmarks[id] = was
        return episode
    }

    /// A bookmark as it is stored.
    func change(_ id: String) -> WireChange {
        bookmarks[id].map { .putting("bookmark", id, $0) } ?? .deleting("bookmark", id)
    }

    /// All of them, for the database.
    var everything: [WireChange] { bookmarks.keys.sorted().map(change) }

    /// All of them, for the stream.
    var publications: [Publication] { Set(bookmarks.values.map(\.episode)).sorted().map(publication) }

    /// Those of an episode, for the stream.
    func publication(of episode: String) -> Publication {
        let topic = Topic.bookmarks(of: episode)
        var state = WireBookmarks()
        state.bookmarks = ordered { $0.episode == episode }
        return state.bookmarks.isEmpty ? Publication(.delete, topic) : Publication(.put, topic, state.wireBytes)
    }

    private func ordered(_ isWanted: (WireBookmark) -> Bool) -> [WireBookmark] {
        bookmarks.values.filter(isWanted).sorted {
            ($0.episode, $0.position, $0.id) < ($1.episode, $1.position, $1.id)
        }
    }
}

extension PlaybackMachine {
    /// Commits and answers the outcome of a request about bookmarks.
    mutating func finish(_ outcome: BookmarkStore.Outcome, _ command: Command) {
        var reply = WirePlaybackReply()
        switch outcome {
        case .needsEpisode(let bookmark): pending.lookUp([bookmark.episode], for: .bookmark(command, bookmark))
        case .unchanged(let bookmark):
            reply.bookmarks.bookmarks = [bookmark]
            reply.changed = false
            pending.reply(command.id, reply)
        case .changed(let change):
            reply.bookmarks.bookmarks = [change.bookmark]
            reply.changed = true
            let publication = bookmarks.publication(of: change.bookmark.episode)
            let written = OwnerChange(changes: [change.record], publications: [publication])
            bookmarks.begin(commit(.bookmark, written, answering: command.id, reply), change)
        }
    }

    /// The episode of a new bookmark has been looked up.
    mutating func makeBookmark(_ bookmark: WireBookmark, _ command: Command, _ result: Result<[UInt8], Failure>) {
        do throws(Failure) {
            if case .failure(let failure) = result { throw failure }
            finish(try bookmarks.complete(bookmark, result.episode), command)
        } catch {
            pending.refuse(command.id, error)
        }
    }
}
