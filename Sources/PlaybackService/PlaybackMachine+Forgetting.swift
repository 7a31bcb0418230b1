import OwnerKit
import PodcastModel
import WireMessages

// A podcast that was forgotten takes its settings and the bookmarks of its episodes along. One that is merely not
// subscribed to any more keeps them.

extension PlaybackMachine {
    static let census = "census"

    /// What feeds say of a podcast: that it is gone is all that matters here.
    mutating func observe(_ event: StreamEvent) {
        guard event.header.kind == .delete, let podcast = event.topic.parts.last.map(String.init) else { return }
        // The bus itself takes back what a new life of feeds does not show: the library must say so, too.
        if kept.contains(podcast) { askLibrary(about: [podcast]) }
    }

    /// The podcasts that anything is kept for.
    private var kept: Set<String> {
        Set(settings.podcasts + bookmarks.bookmarks.values.map(\.podcast) + chapters.files.values.map(\.podcast))
            .subtracting([""])
    }

    private mutating func forget(podcast: String) {
        if let change = settings.forget(podcast: podcast) {
            for case .delete(let record)? in change.changes.map(\.change) {
                pending.writes.mark(.setting(podcast: podcast, key: record.key))
            }
            pending.publications += change.publications
            pending.commit = true
            applySettings()
        }
        let gone = bookmarks.removeAll(of: podcast)
        for bookmark in gone {
            pending.writes.mark(.bookmark(bookmark.id))
            pending.commit = true
        }
        pending.publications += Set(gone.map(\.episode)).sorted().map(bookmarks.publication)
        for episode in chapters.forget(podcast: podcast) {
            pending.writes.mark(.chapters(episode))
            pending.commit = true
        }
    }

    // MARK: - Asking the library

    /// Looks whether the podcasts that anything is kept for are there still: some may have been forgotten while this was
    /// not running.
    mutating func askCensus() { askLibrary(about: kept) }

    private mutating func askLibrary(about podcasts: Set<String>) {
        let isAsking = !doubtful.isEmpty
        doubtful.formUnion(podcasts)
        if !isAsking { askNext() }
    }

    private mutating func askNext() {
        guard let podcast = doubtful.min() else { return }
        var query = WirePersistenceRequest()
        query.findPodcast.text = podcast
        pending.calls.append(
            Call(id: CallID("\(Self.census)/\(podcast)"), to: .persistence, payload: query.wireBytes))
    }

    /// What the library says of a podcast; it finds one by a part of its title, too.
    mutating func takeCensus(_ call: CallID, _ result: Result<[UInt8], Failure>) {
        let podcast = String(call.text.dropFirst(Self.census.count + 1))
        guard doubtful.remove(podcast) != nil else { return }
        switch result {
        case .success(let bytes):
            let found = (try? WirePersistenceReply(wireBytes: bytes))?.podcasts.podcasts
            if let found, !found.contains(where: { $0.id == podcast }) { forget(podcast: podcast) }
        case .failure(let failure):
            if [.notFound, .ambiguous].contains(failure.known) { forget(podcast: podcast) }
        }
        askNext()
    }
}
