import OwnerKit
package import PodcastModel
import WireMessages

// A podcast that was forgotten takes its settings and the bookmarks of its episodes along. One that is merely not
// subscribed to any more keeps them.
extension PlaybackMachine {
    package var knownPodcasts: Set<PodcastID> {
        let texts = settings.podcasts + bookmarks.bookmarks.values.map(\.podcast) + chapters.files.values.map(\.podcast)
        return Set(texts.compactMap { PodcastID($0) })
    }

    mutating func forget(podcast: String) {
        if let change = settings.forget(podcast: podcast) {
            for case .delete(let record)? in change.changes.map(\.change) {
                pending.writes.mark(.setting(podcast: podcast, key: record.key))
            }
            pending.publications += change.publications
            pending.commit = true
            applySettings()
        }
        let gone = bookmarks.removeAll(of: podcast)
        pending.publications += Set(gone.map(\.episode)).sorted().map(bookmarks.publication)
        for bookmark in gone { pending.writes.mark(.bookmark(bookmark.id)) }
        for episode in chapters.forget(podcast: podcast) { pending.writes.mark(.chapters(episode)) }
        pending.commit = true
    }
}
