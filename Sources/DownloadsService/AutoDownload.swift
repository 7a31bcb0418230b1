import OwnerKit
import PodcastModel
import WireMessages

/// The rule `autoDownload`: downloads the newest episodes of subscribed podcasts.
struct AutoDownload: Sendable {
    /// The last observed number of episodes of each podcast. It reveals new episodes whose event was missed.
    private var episodeCounts: [String: UInt32] = [:]
    private var subscribed: Set<String> = []

    func wantedCount(of podcast: String, _ settings: OwnerSettings) -> UInt32 {
        subscribed.contains(podcast) ? UInt32(settings.number(.autoDownload, podcast: podcast)) : 0
    }

    /// Records podcasts from the library, except those that the stream has reported: its values are newer.
    mutating func update(from podcasts: [WirePodcast]) {
        for podcast in podcasts where episodeCounts[podcast.id] == nil { _ = podcastChanged(podcast) }
    }

    /// Records a podcast; returns whether it may have new episodes to download.
    mutating func podcastChanged(_ podcast: WirePodcast) -> Bool {
        let before = episodeCounts.updateValue(podcast.episodeCount, forKey: podcast.id)
        guard podcast.subscribed else {
            subscribed.remove(podcast.id)
            return false
        }
        return subscribed.insert(podcast.id).inserted || before != podcast.episodeCount
    }

    mutating func podcastRemoved(_ podcast: String) {
        episodeCounts[podcast] = nil
        subscribed.remove(podcast)
    }

    /// Adds the newest episodes that were neither played nor deleted before.
    func add(_ newest: [WireEpisode], of podcast: String, _ change: inout DownloadStoreChange) {
        guard subscribed.contains(podcast) else { return }
        let before = change.store
        let count = Int(before.settings.number(.autoDownload, podcast: podcast))
        let limit = Int(before.settings.number(.keepDownloads, podcast: podcast))
        for episode in newest.prefix(count)
        where !episode.state.played && before.downloads[episode.id] == nil && before.past[episode.id] == nil {
            guard var download = try? WireDownload(of: episode, episode.id) else { continue }
            download.requestedAt = change.now.wall.milliseconds
            download.begin()
            download.automatic = true
            // A file that would be deleted at once isn’t fetched.
            guard limit == 0 || change.store.newerDownloads(than: download) < limit else { continue }
            let rank = count == 1 ? "the newest" : "one of the newest \(count)"
            download.reason = "by a rule, as \(rank) of “\(episode.podcastTitle)”"
            change.put(download)
        }
    }

    /// Cancels queued downloads whose rule was removed; if the rule is set again, they are queued again.
    static func cancelQueued(_ change: inout DownloadStoreChange) {
        for download in change.store.ordered
        where download.automatic && download.state == .queued
            && change.store.settings.number(.autoDownload, podcast: download.podcastID) == 0
        {
            change.drop(download)
        }
    }
}
