import BusKit
import PodcastModel
import WireMessages

// A podcast that was forgotten takes its settings and the bookmarks of its episodes along. One that is merely not
// subscribed to any more keeps them.

extension PlaybackMachine {
    static let census = "census"

    /// What feeds say of a podcast: that it is gone is all that matters here.
    mutating func observe(_ event: StreamEvent) {
        guard event.header.kind == .delete, let podcast = event.topic.parts.last else { return }
        forget(podcast: String(podcast))
    }

    private mutating func forget(podcast: String) {
        if let change = settings.forget(podcast: podcast) {
            for case .delete(let record)? in change.changes.map(\.change) {
                book.mark(.setting(podcast: podcast, key: record.key))
            }
            pending.publications += change.publications
            pending.commit = true
            applySettings()
        }
        let gone = bookmarks.values.filter { $0.podcast == podcast }
        for bookmark in gone {
            bookmarks[bookmark.id] = nil
            book.mark(.bookmark(bookmark.id))
            pending.commit = true
        }
        pending.publications += Set(gone.map(\.episode)).sorted().map(publication)
    }

    // MARK: - What was forgotten while this was not running

    /// Looks whether the podcasts that anything is kept for are there still.
    mutating func askCensus() {
        missing = Set(settings.podcasts + bookmarks.values.map(\.podcast)).subtracting([""])
        if !missing.isEmpty { askCensus(after: "") }
    }

    private mutating func askCensus(after cursor: String) {
        var query = WirePersistenceRequest()
        // What is merely not subscribed to any more keeps what it has.
        query.podcasts.includeUnsubscribed = true
        query.podcasts.limit = 500
        query.podcasts.after = cursor
        pending.calls.append(Call(id: CallID("\(Self.census)/\(cursor)"), to: .persistence, payload: query.wireBytes))
    }

    mutating func takeCensus(_ result: Result<[UInt8], Failure>) {
        guard case .success(let bytes) = result, let reply = try? WirePersistenceReply(wireBytes: bytes),
            case .podcasts(let page)? = reply.result
        else { return }
        missing.subtract(page.podcasts.map(\.id))
        guard !missing.isEmpty, !page.next.isEmpty else {
            for podcast in missing.sorted() { forget(podcast: podcast) }
            missing = []
            return
        }
        askCensus(after: page.next)
    }
}
