import BusKit
import FeedFetching
import FeedParsing
import OwnerHarness
import OwnerKit
import PodcastModel
import Testing
import WireMessages

@testable import FeedsService

/// A feeds machine with a library and a file of passwords in memory. The test provides the responses to fetches.
final class FeedsRig: OwnerRig {
    typealias Request = WireFeedsRequest
    typealias Reply = WireFeedsReply

    let owner: OwnerHarness<FeedsMachine>
    var orders: [FetchOrder] = []
    private(set) var cancelled: [UInt64] = []
    private(set) var chapterFetches: [(number: UInt64, address: WebAddress)] = []
    /// The contents that were written to the file of passwords.
    var saves: [FeedSecrets] = []
    var holdsSecrets = false
    var secretsFailure: Failure?
    private(set) var dropsMovedSecrets = false

    // The library.
    var podcasts: [String: WirePodcast] = [:]
    var episodes: [String: WireEpisode] = [:]
    private(set) var aliases: [String: String] = [:]
    private(set) var documents: [String: [UInt8]] = [:]

    init(machine: FeedsMachine = FeedsMachine()) {
        owner = OwnerHarness(machine) { Issue.record("\($0)") }
    }

    /// Returns a rig with a new process and this one’s library.
    func restarted() -> FeedsRig {
        let next = FeedsRig()
        (next.podcasts, next.episodes, next.aliases, next.documents) = (podcasts, episodes, aliases, documents)
        (next.saves, next.now, next.owner.records) = (saves, now, records)
        next.restart(FeedsMachine(secrets: saves.last ?? FeedSecrets()))
        return next
    }

    /// Sends a command and returns its ID.
    @discardableResult
    func send(_ build: (inout WireFeedsRequest) -> Void) -> RequestID {
        let id = RequestID.random()
        send(id: id, build)
        return id
    }

    func subscribe(_ urls: String..., keep: Bool = false) -> RequestID {
        send {
            $0.subscribe.urls = urls
            $0.subscribe.keep = keep
        }
    }

    /// Answers the last order with this feed.
    func deliver(_ text: String, to index: Int? = nil, at address: String? = nil, etag: String = "") throws {
        let order = orders[index ?? orders.count - 1]
        let source = address.flatMap { WebAddress($0) } ?? order.request.address
        var feed = FetchedFeed(
            try FeedParser.parse(text.utf8), base: source, address: source, podcast: order.podcast, seen: order.seen)
        feed.etag = etag
        handle(.input(.fetched(order.number, .feed(feed))))
    }

    func fail(_ failure: Failure = Failure(.fetchFailed, "no"), retryAfter: Duration? = nil) {
        handle(.input(.fetched(orders[orders.count - 1].number, .failed(failure, retryAfter: retryAfter))))
    }

    func advance(_ duration: Duration) { advance(by: duration) }

    func results(_ id: RequestID) -> [WireFeedResult] { reply(to: id)?.reply?.results ?? [] }

    func perform(_ action: FeedsMachine.Action) {
        switch action {
        case .fetch(let order): orders.append(order)
        case .cancel(let number): cancelled.append(number)
        case .fetchChapters(let number, let address, _): chapterFetches.append((number, address))
        case .saveSecrets(let number, let saved):
            saves.append(saved)
            if !holdsSecrets { owner.enqueue(.input(.secretsSaved(number, secretsFailure))) }
        case .dropMovedSecrets: dropsMovedSecrets = true
        case .migrateSecrets, .forget: break
        }
    }

    func apply(_ changes: [WireChange]) {
        for change in changes { apply(change) }
    }

    private func apply(_ change: WireChange) {
        switch change.change {
        case .putPodcast(let podcast):
            podcasts[podcast.id] = podcast
            // The database returns an owner’s podcasts as records.
            owner.records["podcast", default: [:]][podcast.id] = podcast.wireBytes
        case .deletePodcast(let id):
            podcasts[id] = nil
            owner.records["podcast"]?[id] = nil
            episodes = episodes.filter { $0.value.podcastID != id }
            aliases = aliases.filter { !$0.key.hasPrefix(id + " ") }
        case .putEpisode(let episode): episodes[episode.id] = episode
        case .setFlags(let flags):
            for id in flags.all ? Array(episodes.keys) : flags.episodes {
                guard let old = episodes[id]?.flags else { continue }
                episodes[id]?.flags = old & ~flags.clear | flags.set
            }
        case .putAlias(let alias): aliases["\(alias.podcast) \(alias.alias)"] = alias.episode
        case .putDocument(let document): documents["\(document.collection)/\(document.key)"] = Array(document.value)
        case .deleteDocuments(let collection):
            documents = documents.filter { !$0.key.hasPrefix(collection + "/") }
        default: break
        }
    }

    func answer(_ call: FeedsMachine.Call) -> Result<[UInt8], Failure> {
        var reply = WirePersistenceReply()
        let request = try? WirePersistenceRequest(wireBytes: call.payload)
        if let ids = request?.episodesByID.ids, !ids.isEmpty {
            reply.episodes.episodes = ids.compactMap { id in
                guard var episode = episodes[id] else { return nil }
                let record = documents["chapters/\(episode.podcastID)/\(id)"]
                let chapters = record.flatMap { try? WireChaptersRecord(wireBytes: $0) }
                episode.chaptersFetched = chapters?.fetchedAt ?? 0
                return episode
            }
        } else if let query = request?.aliases {
            reply.aliases.taken = query.ids.filter { id in
                episodes[id].map { $0.podcastID != query.podcast } ?? false
            }
            reply.aliases.aliases = query.aliases.compactMap { text in
                guard let episode = aliases["\(query.podcast) \(text)"] else { return nil }
                var alias = WireEpisodeAlias()
                alias.podcast = query.podcast
                alias.alias = text
                alias.episode = episode
                return alias
            }
        }
        return .success(reply.wireBytes)
    }
}

/// Returns a feed with episodes that are described by (GUID, audio, title).
func rss(_ episodes: [(guid: String, audio: String, title: String)], title: String = "Waves") -> String {
    let items = episodes.map { episode in
        let guid = episode.guid.isEmpty ? "" : "<guid>\(episode.guid)</guid>"
        return
            "<item><title>\(episode.title)</title>\(guid)<enclosure url=\"\(episode.audio)\" type=\"audio/mpeg\"/></item>"
    }
    return "<rss><channel><title>\(title)</title>\(items.joined())</channel></rss>"
}
