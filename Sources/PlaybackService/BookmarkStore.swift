import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Stores the bookmarks. A change applies at once to later requests, and is rolled back if it can’t be saved.
struct BookmarkStore: Sendable {
    enum Outcome: Sendable {
        case unchanged(WireBookmark)
        case changed(Change)
        /// The bookmark’s episode must be looked up in the library; the answer is passed to `complete`.
        case needsEpisode(WireBookmark)
    }

    /// A bookmark that was set or removed, and its previous value.
    struct Change: Sendable {
        let bookmark: WireBookmark
        let was: WireBookmark?
    }

    /// The maximum size of a note, in bytes, and number of an episode’s bookmarks, so that they fit in one message.
    private static let noteLimit = 2_000
    private static let bookmarkLimit = 200
    /// The maximum size of a reply, in bytes, below the bus’s limit for a message.
    private static let replyLimit = 900_000

    private(set) var bookmarks = KeyedRecords<WireBookmark>("bookmark", about: { ($0.episode, 0) })
    /// The changes that are being committed, in order, and the bookmark before each of them.
    private var uncommitted: [(transaction: TransactionID, bookmark: String, was: WireBookmark?)] = []

    // MARK: Requests

    /// Creates a bookmark, or changes the note of an existing one.
    ///
    /// - Parameter session: the loaded episode, for a request that names no episode or position.
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
            throw Failure(.nothingLoaded, "Nothing is loaded; name an episode for the bookmark.")
        }
        guard EpisodeID(bookmark.episode) != nil else {
            throw Failure(.invalidArgument, "“\(bookmark.episode)” isn’t a valid episode ID.")
        }
        guard bookmarks.values.values.count(where: { $0.episode == bookmark.episode }) < Self.bookmarkLimit else {
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

    /// Creates a bookmark after the lookup of its episode; nil if the episode doesn’t exist.
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
                .notApplicable,
                "\(ClockText.format(bookmark.position)) is beyond the end of the episode at \(ClockText.format(duration))."
            )
        }
    }

    private mutating func put(_ bookmark: WireBookmark) -> Outcome {
        let was = bookmarks[bookmark.id]
        guard was != bookmark else { return .unchanged(bookmark) }
        store(bookmark.id, bookmark)
        return .changed(Change(bookmark: bookmark, was: was))
    }

    private mutating func store(_ id: String, _ bookmark: WireBookmark?) {
        var changes: [WireChange] = []
        if let bookmark { bookmarks.put(id, bookmark, &changes) } else { bookmarks.remove(id, &changes) }
    }

    mutating func remove(_ id: String) throws(Failure) -> Outcome {
        guard let bookmark = bookmarks[id] else {
            throw Failure(.notFound, "There is no bookmark “\(id)”; it may have been removed already.")
        }
        store(id, nil)
        return .changed(Change(bookmark: bookmark, was: bookmark))
    }

    /// Removes the bookmarks of a podcast’s episodes.
    mutating func removeAll(of podcast: String) -> OwnerChange {
        var change = OwnerChange()
        let gone = bookmarks.sorted.filter { $0.value.podcast == podcast }
        for (id, _) in gone { bookmarks.remove(id, &change.changes) }
        change.publications = Set(gone.map(\.value.episode)).sorted().map(publication)
        return change
    }

    /// Returns the bookmarks of an episode; an empty ID means all episodes.
    func list(of episode: String) throws(Failure) -> WirePlaybackReply {
        var reply = WirePlaybackReply()
        reply.bookmarks.bookmarks = ordered { episode.isEmpty || $0.episode == episode }
        guard reply.wireBytes.count <= Self.replyLimit else {
            throw Failure(
                .limitReached, "The \(bookmarks.count) bookmarks don’t fit in one reply; name an episode."
            )
        }
        return reply
    }

    // MARK: The database and the stream

    mutating func restore(_ record: StoredRecord) throws -> Bool { try bookmarks.restore(record) }

    /// Records that a change is being committed.
    mutating func begin(_ transaction: TransactionID, _ change: Change) {
        uncommitted.append((transaction, change.bookmark.id, change.was))
    }

    mutating func committed(_ transaction: TransactionID) {
        uncommitted.removeAll { $0.transaction == transaction }
    }

    /// Rolls back the change of a refused transaction. A bookmark that has been changed again keeps its value; if that
    /// later change is refused too, the bookmark before both is restored.
    ///
    /// - Returns: the episode whose bookmarks have changed.
    mutating func refused(_ transaction: TransactionID) -> String? {
        guard let index = uncommitted.firstIndex(where: { $0.transaction == transaction }) else { return nil }
        let (_, id, was) = uncommitted.remove(at: index)
        if let next = uncommitted[index...].firstIndex(where: { $0.bookmark == id }) {
            uncommitted[next].was = was
            return nil
        }
        let episode = bookmarks[id]?.episode ?? was?.episode
        store(id, was)
        return episode
    }

    var publications: [Publication] { Set(bookmarks.values.values.map(\.episode)).sorted().map(publication) }

    func publication(of episode: String) -> Publication {
        let topic = Topic.bookmarks(of: episode)
        var state = WireBookmarks()
        state.bookmarks = ordered { $0.episode == episode }
        return state.bookmarks.isEmpty ? Publication(.delete, topic) : Publication(.put, topic, state.wireBytes)
    }

    private func ordered(_ isWanted: (WireBookmark) -> Bool) -> [WireBookmark] {
        bookmarks.values.values.filter(isWanted).sorted {
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
            let written = OwnerChange(
                changes: [bookmarks.bookmarks.change(change.bookmark.id)],
                publications: [bookmarks.publication(of: change.bookmark.episode)])
            bookmarks.begin(commit(.bookmark, written, answering: command.id, reply), change)
        }
    }

    /// Creates a bookmark after the lookup of its episode.
    mutating func makeBookmark(_ bookmark: WireBookmark, _ command: Command, _ result: Result<[UInt8], Failure>) {
        do throws(Failure) {
            if case .failure(let failure) = result { throw failure }
            finish(try bookmarks.complete(bookmark, result.episode), command)
        } catch {
            pending.refuse(command.id, error)
        }
    }
}
