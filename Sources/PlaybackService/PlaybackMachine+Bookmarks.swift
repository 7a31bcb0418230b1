import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// The longest note, in bytes, and the most bookmarks of an episode: so that they fit in one message.
    private static let noteLimit = 2_000
    private static let bookmarkLimit = 200
    /// Less than the bus carries in one message, in bytes.
    private static let replyLimit = 900_000

    mutating func setBookmark(_ set: WireSetBookmark, _ command: Command) throws(Failure) {
        guard set.note.utf8.count <= Self.noteLimit else {
            throw Failure(.limitReached, "The note is longer than \(Self.noteLimit) bytes; shorten it.")
        }
        guard set.id.isEmpty else {
            guard var bookmark = bookmarks[set.id] else {
                throw Failure(.notFound, "There is no bookmark “\(set.id)”.")
            }
            bookmark.note = set.note
            return put(bookmark, command)
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
            throw Self.invalid("“\(bookmark.episode)” isn’t a valid episode ID.")
        }
        guard bookmarks.values.count(where: { $0.episode == bookmark.episode }) < Self.bookmarkLimit else {
            throw Failure(
                .limitReached, "The episode has \(Self.bookmarkLimit) bookmarks already; remove some of them first.")
        }
        if set.hasPosition {
            guard let position = PlaybackPosition(seconds: set.position) else {
                throw Self.invalid("\(set.position) s isn’t a valid position.")
            }
            bookmark.position = position.seconds
        }
        guard let session, session.episode.id == bookmark.episode else {
            bookmark.position = set.hasPosition ? bookmark.position : -1
            let call = CallID("bookmark/\(command.id)")
            bookmarking[call] = (command, bookmark)
            return lookUp(bookmark.episode, as: call)
        }
        if !set.hasPosition { bookmark.position = session.position(at: now.monotonic).seconds }
        bookmark.title = session.episode.title
        bookmark.podcast = session.episode.podcastID
        try check(bookmark, duration: session.duration?.seconds ?? 0)
        put(bookmark, command)
    }

    /// The episode of a new bookmark has been looked up.
    mutating func makeBookmark(
        _ making: (command: Command, bookmark: WireBookmark), _ result: Result<[UInt8], Failure>
    ) {
        do throws(Failure) {
            if case .failure(let failure) = result { throw failure }
            guard let episode = Self.episode(in: result) else {
                throw Failure(.notFound, "There is no episode “\(making.bookmark.episode)”.")
            }
            var bookmark = making.bookmark
            if bookmark.position < 0 { bookmark.position = episode.state.position }
            bookmark.title = episode.title
            bookmark.podcast = episode.podcastID
            try check(bookmark, duration: episode.state.duration > 0 ? episode.state.duration : episode.duration)
            put(bookmark, making.command)
        } catch {
            pending.refuse(making.command.id, error)
        }
    }

    private func check(_ bookmark: WireBookmark, duration: Double) throws(Failure) {
        guard duration == 0 || bookmark.position <= duration else {
            throw Self.invalid(
                "\(clockText(bookmark.position)) is beyond the end of the episode at \(clockText(duration)).")
        }
    }

    mutating func removeBookmark(_ id: String, _ command: Command) throws(Failure) {
        guard let bookmark = bookmarks[id] else {
            throw Failure(.notFound, "There is no bookmark “\(id)”; it may have been removed already.")
        }
        commit(nil, instead: bookmark, command)
    }

    mutating func listBookmarks(_ episode: String, _ command: Command) throws(Failure) {
        var reply = WirePlaybackReply()
        reply.bookmarks.bookmarks = ordered { episode.isEmpty || $0.episode == episode }
        let bytes = reply.wireBytes
        guard bytes.count <= Self.replyLimit else {
            throw Failure(
                .limitReached, "All \(bookmarks.count) bookmarks together are too much for one answer; name an episode."
            )
        }
        pending.replies.append((command.id, .success(bytes)))
    }

    private mutating func put(_ bookmark: WireBookmark, _ command: Command) {
        guard bookmarks[bookmark.id] != bookmark else {
            var reply = WirePlaybackReply()
            reply.bookmarks.bookmarks = [bookmark]
            reply.changed = false
            return pending.replies.append((command.id, .success(reply.wireBytes)))
        }
        commit(bookmark, instead: bookmarks[bookmark.id], command)
    }

    /// Holds at once for the commands behind it, and is taken back if it cannot be saved.
    private mutating func commit(_ bookmark: WireBookmark?, instead was: WireBookmark?, _ command: Command) {
        guard let subject = bookmark ?? was else { return }
        bookmarks[subject.id] = bookmark
        var reply = WirePlaybackReply()
        reply.bookmarks.bookmarks = [subject]
        reply.changed = true
        let id = nextTransaction()
        book.begin(id, .bookmark(subject.id, was: was, request: command.id))
        pending.transactions.append(
            Transaction(
                id: id,
                changes: [
                    bookmark.map { .putting("bookmark", subject.id, $0) } ?? .deleting("bookmark", subject.id)
                ],
                publications: [publication(of: subject.episode)], answering: (command.id, reply.wireBytes)))
    }

    /// A change was refused.
    mutating func restoreBookmark(_ id: String, _ was: WireBookmark?) {
        let episode = bookmarks[id]?.episode ?? was?.episode ?? ""
        bookmarks[id] = was
        if !episode.isEmpty { pending.publications.append(publication(of: episode)) }
    }

    /// All bookmarks, for the stream.
    var bookmarkPublications: [Publication] {
        Set(bookmarks.values.map(\.episode)).sorted().map(publication)
    }

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
