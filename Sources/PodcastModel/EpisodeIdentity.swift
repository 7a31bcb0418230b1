/// The identity of an episode, by which it is recognised when its feed is fetched again.
///
/// Within a podcast, an episode is identified by its GUID, by its normalised enclosure address, or by title, date and
/// length. Each of these is an alias: when a feed changes its GUIDs or moves its files, another alias still matches.
public enum EpisodeIdentity: Sendable, Hashable, CustomStringConvertible {
    /// The GUID in the feed.
    case guid(String)
    /// The address of the audio, by `WebAddress.identity`.
    case enclosure(String)
    /// Title, publication date and announced length.
    case title(String, published: Timestamp?, duration: EpisodeDuration?)

    /// The stored text of an alias: `guid:…`, `url:…` or `title:…`.
    public var alias: String {
        switch self {
        case .guid(let guid): return "guid:" + guid
        case .enclosure(let address): return "url:" + address
        case .title(let title, let published, let duration):
            let date = published.map { String($0.milliseconds / 1_000) } ?? "-"
            let length = duration.map { String(Int64(min(1e12, $0.seconds.rounded()))) } ?? "-"
            return "title:\(date):\(length):\(title)"
        }
    }

    /// The stored text of the alias.
    public var description: String { alias }

    /// The ID of a new episode with this identity.
    public func episodeID(in podcast: PodcastID) -> EpisodeID {
        EpisodeID.derived(from: podcast.text + "\n" + alias)
    }
}

extension PodcastID {
    /// The ID of the podcast whose feed is at `address`: the same for http and https.
    public static func feed(at address: WebAddress) -> PodcastID {
        PodcastID.derived(from: address.identity)
    }
}

/// An item of a feed with its identities.
public struct IdentifiedItem: Sendable, Hashable {
    /// The item from the feed.
    public var item: FeedEpisode
    /// The identity from which the ID of a new episode is derived.
    public var identity: EpisodeIdentity
    /// All its identities that no other item of the document has, `identity` first.
    public var aliases: [EpisodeIdentity]
}

extension FeedDocument {
    /// Returns each item once, with its identities, and a warning for each kind of duplicate.
    ///
    /// A GUID that several items share identifies none of them. Items with the same audio are one episode, of which the
    /// first item is used; the others are identified by their audio.
    public func identified() -> (items: [IdentifiedItem], warnings: [FeedWarning]) {
        let names = items.map(ItemNames.init)
        var audio: [String: Set<String>] = [:]
        for name in names where !name.guid.isEmpty { audio[name.guid, default: []].insert(name.enclosure) }
        let shared = Set(audio.lazy.filter { $0.value.count > 1 }.map(\.key))

        var uses: [EpisodeIdentity: Int] = [:]
        var candidates: [(item: FeedEpisode, names: [EpisodeIdentity])] = []
        var seen: Set<EpisodeIdentity> = []
        var repeated = 0
        for (item, name) in zip(items, names) {
            let all = name.identities(withGUID: !shared.contains(name.guid))
            guard let identity = all.first, seen.insert(identity).inserted else {
                repeated += 1
                continue
            }
            for alias in all { uses[alias, default: 0] += 1 }
            candidates.append((item, all))
        }
        let identified = candidates.compactMap { candidate -> IdentifiedItem? in
            guard let identity = candidate.names.first else { return nil }
            let aliases = candidate.names.filter { $0 == identity || uses[$0] == 1 }
            return IdentifiedItem(item: candidate.item, identity: identity, aliases: aliases)
        }
        var warnings: [FeedWarning] = []
        if repeated > 0 {
            warnings.append(
                FeedWarning(code: "repeatedItem", message: "The feed lists the same episode twice", count: repeated)
            )
        }
        if !shared.isEmpty {
            warnings.append(
                FeedWarning(
                    code: "sharedGUID", message: "Different episodes share a GUID, which is ignored",
                    count: shared.count))
        }
        return (identified, warnings)
    }
}

/// The identities of one item.
private struct ItemNames {
    let guid: String
    let enclosure: String
    let title: EpisodeIdentity

    init(_ item: FeedEpisode) {
        guid = item.guid
        enclosure = WebAddress(item.enclosureURL)?.identity ?? item.enclosureURL
        title = .title(item.title, published: item.published, duration: item.duration)
    }

    func identities(withGUID: Bool) -> [EpisodeIdentity] {
        var all: [EpisodeIdentity] = []
        if withGUID, !guid.isEmpty { all.append(.guid(guid)) }
        if !enclosure.isEmpty { all.append(.enclosure(enclosure)) }
        if case .title(let text, let published, _) = title, !text.isEmpty, all.isEmpty || published != nil {
            all.append(title)
        }
        return all
    }
}
