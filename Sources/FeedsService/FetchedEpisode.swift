package import PodcastModel
package import WireMessages

/// An episode of a fetched feed in its stored form.
///
/// A new field of an episode goes into `Episode` of `library.proto` (then run `deploy/generate`), into `FeedEpisode`
/// (in `FeedDocument.swift`) with its element in `FeedTag` and `FeedBuilder`, here, and into `WireEpisode.json` (in
/// `WireJSON.swift`) and `cli.md`; if queues and the player show it, also into `EpisodeSummary` and
/// `WireEpisodeSummary`.
package struct FetchedEpisode: Sendable {
    /// The ID derived from the episode’s identity in the feed; the stored episode’s ID if an alias matches one.
    package var id: EpisodeID
    /// The hash of the feed’s data about the episode.
    package var fingerprint: UInt64
    package var aliases: [String]
    /// The episode to store, without the IDs and the time at which it was first seen.
    package var episode: WireEpisode
}

extension FetchedEpisode {
    init(_ identified: IdentifiedItem, of podcast: PodcastID) {
        let item = identified.item
        var episode = WireEpisode()
        episode.guid = item.guid
        episode.title = item.title.isEmpty ? "Untitled" : item.title
        episode.description_p = item.description
        episode.link = item.link
        episode.imageURL = item.imageURL
        episode.published = item.published?.milliseconds ?? 0
        episode.duration = item.duration?.seconds ?? 0
        episode.enclosureURL = item.enclosureURL
        episode.enclosureType = item.enclosureType
        episode.enclosureLength = item.enclosureLength
        episode.season = item.season
        episode.number = item.number
        episode.explicit = item.isExplicit
        episode.chaptersURL = item.chaptersURL
        episode.transcriptURL = item.transcriptURL
        episode.chapters = item.chapters.map(WireChapter.init)
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in episode.wireBytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        self.init(
            id: identified.identity.episodeID(in: podcast), fingerprint: max(1, hash),
            aliases: identified.aliases.map(\.alias), episode: episode)
    }
}
