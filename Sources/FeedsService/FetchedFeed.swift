package import BusKit
package import FeedFetching
package import FeedParsing
package import PodcastModel

/// A request to the shell to fetch a feed.
package struct FetchOrder: Sendable, Hashable {
    /// The number of the fetch, unique in this process.
    package var number: UInt64
    package var request: FeedRequest
    /// The podcast of the feed; if nil, its ID is derived from the feed’s final address.
    package var podcast: PodcastID?
    /// Whether a command requests the fetch.
    package var isRequested = false
    /// The episodes that are stored already.
    package var seen = SeenEpisodes()
}

/// An action of the service’s shell, which reports its result with the action’s number.
package enum FeedsAction: Sendable, Hashable {
    case fetch(FetchOrder)
    /// Stops the fetch with this number; no report is needed.
    case cancel(UInt64)
    /// Releases the fetch with this number, whose outcome has been handled.
    case forget(UInt64)
    case fetchChapters(UInt64, WebAddress, [WebOrigin: WebCredentials])
    case saveSecrets(UInt64, FeedSecrets)
    /// Reads the users and passwords that persistence found in an older database, and reports them if there are any.
    case migrateSecrets
    /// Deletes the file of migrated secrets, which have been saved with the others.
    case dropMovedSecrets
}

/// A report of the service’s shell about an action, by its number.
package enum FeedsInput: Sendable {
    /// The fetch waits until others have ended.
    case postponed(UInt64)
    case began(UInt64)
    case fetched(UInt64, FetchOutcome)
    case chapters(UInt64, Result<[ChapterMark], Failure>)
    /// The users and passwords are stored, or couldn’t be written if there is a failure.
    case secretsSaved(UInt64, Failure?)
    /// Persistence found these secrets in an older database.
    case secretsMoved(FeedSecrets)
    /// The file of migrated secrets is damaged, and was renamed.
    case secretsDamaged(String)
}

package enum FetchOutcome: Sendable {
    case feed(FetchedFeed)
    /// The feed hasn’t changed; `movedTo` is its new address, if it moved permanently.
    case unchanged(movedTo: WebAddress?)
    /// The feed couldn’t be fetched, or isn’t a feed; `retryAfter` is the delay that the server requests.
    case failed(Failure, retryAfter: Duration?)
}

/// A fetched feed and its differences from the stored one.
package struct FetchedFeed: Sendable {
    package var podcast: PodcastID
    /// The feed’s address after permanent redirects.
    package var address: WebAddress
    /// The validators for the next conditional request.
    package var etag = ""
    package var lastModified = ""
    /// The description of the podcast, with absolute addresses.
    package var channel: FeedChannel
    package var report: FeedReport
    /// The episodes that are new or differ from the stored ones.
    package var changed: [FetchedEpisode]
    /// The IDs of all its episodes, derived from their identities.
    package var present: Set<SeenEpisodes.Key>
    /// Whether the document has all episodes of the feed: it wasn’t cut off, and has not too many.
    package var isComplete = true
    /// The users and passwords that were removed from its addresses.
    package var secrets: [WebOrigin: WebCredentials] = [:]
}

extension FetchedFeed {
    /// Compares a document with the stored episodes. Its addresses are resolved by `ResolvedFeed`.
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
            changed: changed, present: present, isComplete: !resolved.isCut, secrets: feed.secrets)
    }
}
