package import BusKit
import FeedFetching
package import FeedParsing
package import PodcastModel
package import WireMessages

/// An order to fetch a feed.
package struct FetchOrder: Sendable, Hashable {
    /// Names the fetch in this life of the machine.
    package var number: UInt64
    package var address: WebAddress
    /// The podcast whose feed it is; nil: the ID follows from where the feed turns out to be.
    package var podcast: PodcastID?
    /// The validators of the last answer; empty: fetch in any case.
    package var etag = ""
    package var lastModified = ""
    /// Whether somebody asks for it now.
    package var isRequested = false
    /// The episodes that are stored already.
    package var seen = SeenEpisodes()
    package var credentials: [WebOrigin: WebCredentials] = [:]
}

/// An action of the service’s shell. It reports the end of what it fetches and saves under the action’s number.
package enum FeedsAction: Sendable, Hashable {
    case fetch(FetchOrder)
    /// Stop the fetch of this number; no report is needed.
    case cancel(UInt64)
    /// Forget the fetch of this number, whose outcome has been handled.
    case forget(UInt64)
    case fetchChapters(UInt64, WebAddress, [WebOrigin: WebCredentials])
    case saveSecrets(UInt64, FeedSecrets)
    /// Look for users and passwords that persistence found in an older database; report them if there are any.
    case migrateSecrets
    /// Delete the file of what persistence found: it is saved among the others now.
    case dropMovedSecrets
}

/// A report of the service’s shell about the action of a number.
package enum FeedsInput: Sendable {
    /// The fetch waits until others have ended.
    case postponed(UInt64)
    case began(UInt64)
    case fetched(UInt64, FetchOutcome)
    case chapters(UInt64, Result<[ChapterMark], Failure>)
    /// The users and passwords are on the disk, or (with a failure) can’t be written.
    case secretsSaved(UInt64, Failure?)
    /// Persistence found these in an older database.
    case secretsMoved(FeedSecrets)
    /// The file of what persistence found is damaged, and was moved aside.
    case secretsDamaged(String)
}

package enum FetchOutcome: Sendable {
    case feed(FetchedFeed)
    /// The feed has not changed since; `movedTo` is its new address, if it moved for good.
    case unchanged(movedTo: WebAddress?)
    /// The feed could not be fetched, or isn’t a feed; `retryAfter` is the wait that the server asks for.
    case failed(Failure, retryAfter: Duration?)
}

/// A feed that was read, compared with what is stored.
package struct FetchedFeed: Sendable {
    package var podcast: PodcastID
    /// Its address after permanent redirects.
    package var address: WebAddress
    /// The validators for the next conditional request.
    package var etag = ""
    package var lastModified = ""
    /// The description of the podcast, with absolute addresses.
    package var channel: FeedChannel
    package var report: FeedReport
    /// The episodes that are not stored in just this form.
    package var changed: [FetchedEpisode]
    /// The IDs that all its episodes have by their first names.
    package var present: Set<SeenEpisodes.Key>
    /// The users and passwords that stood in its addresses, which have none any more.
    package var secrets: [WebOrigin: WebCredentials] = [:]
}

package struct FetchedEpisode: Sendable {
    /// The ID by its first name; another one if it is known under an alias.
    package var id: EpisodeID
    /// The fingerprint of everything that the feed says about it.
    package var fingerprint: UInt64
    package var aliases: [String]
    /// The episode to store, without the IDs and the time when it was first seen.
    package var episode: WireEpisode
}

extension FetchedFeed {
    /// Compares a document with what is stored. Its addresses are made absolute as `ResolvedFeed` says.
    package init(
        _ document: FeedDocument, base: WebAddress, address: WebAddress, podcast: PodcastID?, seen: SeenEpisodes
    ) {
        let id = podcast ?? .feed(at: address)
        let feed = ResolvedFeed(document, base: base, address: address)
        let resolved = feed.document
        let known = seen.entries
        var present: Set<SeenEpisodes.Key> = []
        var changed: [FetchedEpisode] = []
        for identified in resolved.identified().items {
            let episode = FetchedEpisode(identified, of: id)
            guard let key = SeenEpisodes.Key(episode.id) else { continue }
            present.insert(key)
            if known[key]?.fingerprint != episode.fingerprint { changed.append(episode) }
        }
        self.init(
            podcast: id, address: address.withoutCredentials, channel: resolved.channel, report: FeedReport(resolved),
            changed: changed, present: present, secrets: feed.secrets)
    }
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
        episode.chapters = item.chapters.map(WireChapter.init)
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in episode.wireBytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
        self.init(
            id: identified.identity.episodeID(in: podcast), fingerprint: max(1, hash),
            aliases: identified.aliases.map(\.alias), episode: episode)
    }
}
