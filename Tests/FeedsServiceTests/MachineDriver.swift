import BusKit
import FeedParsing
import OwnerKit
import PodcastModel
import WireMessages

@testable import FeedsService

/// Runs the machine against a library in memory: commits hold, unless told otherwise, and aliases are answered.
struct MachineDriver {
    var machine: FeedsMachine
    var now = Moment(
        monotonic: MonotonicTime(nanoseconds: 1_000_000_000_000), wall: Timestamp(milliseconds: 1_700_000_000_000))

    var orders: [FetchOrder] = []
    var cancelled: [UInt64] = []
    var chapterFetches: [(number: UInt64, address: WebAddress)] = []
    var timers: [FeedsMachine.Timer: MonotonicTime] = [:]
    var replies: [RequestID: Result<[UInt8], Failure>] = [:]
    var transactions: [FeedsMachine.Transaction] = []
    var published: [Publication] = []
    /// Transactions that wait while `holdsCommits`.
    var held: [FeedsMachine.Transaction] = []
    var holdsCommits = false
    var holdsCalls = false
    var calls: [FeedsMachine.Call] = []
    /// What was written to the file of passwords.
    var saves: [FeedSecrets] = []
    var holdsSecrets = false
    var secretsFailure: Failure?
    var dropsMovedSecrets = false
    var logged: [(level: LogLevel, text: String)] = []

    // The library.
    var podcasts: [String: WirePodcast] = [:]
    var episodes: [String: WireEpisode] = [:]
    var aliases: [String: String] = [:]
    var records: [String: StoredRecord] = [:]
    var documents: [String: [UInt8]] = [:]

    init(machine: FeedsMachine = FeedsMachine()) {
        self.machine = machine
    }

    /// A machine that starts over with what this one's library holds.
    func restarted() -> MachineDriver {
        var next = self
        next.machine = FeedsMachine(secrets: saves.last ?? FeedSecrets())
        next.orders = []
        next.timers = [:]
        next.replies = [:]
        next.perform(
            next.machine.restore(records.values.sorted { ($0.collection, $0.key) < ($1.collection, $1.key) }, now: now))
        return next
    }

    mutating func handle(_ event: FeedsMachine.Event) {
        perform(machine.handle(event, now: now))
    }

    @discardableResult
    mutating func send(_ build: (inout WireFeedsRequest) -> Void) -> RequestID {
        var request = WireFeedsRequest()
        build(&request)
        let id = RequestID.random()
        handle(.command(Command(id: id, origin: "test", payload: request.wireBytes)))
        return id
    }

    mutating func subscribe(_ urls: String..., keep: Bool = false) -> RequestID {
        send {
            $0.subscribe.urls = urls
            $0.subscribe.keep = keep
        }
    }

    /// The last order is answered with this feed.
    mutating func deliver(_ text: String, to index: Int? = nil, at address: String? = nil, etag: String = "") throws {
        let order = orders[index ?? orders.count - 1]
        let place = address.flatMap { WebAddress($0) } ?? order.address
        var feed = FetchedFeed(
            try FeedParser.parse(text.utf8), base: place, address: place, podcast: order.podcast, seen: order.seen)
        feed.etag = etag
        handle(.input(.fetched(order.number, .feed(feed))))
    }

    mutating func fail(_ failure: Failure = Failure(.fetchFailed, "no"), retryAfter: Duration? = nil) {
        handle(.input(.fetched(orders[orders.count - 1].number, .failed(failure, retryAfter: retryAfter))))
    }

    mutating func advance(_ duration: Duration) {
        now.monotonic = now.monotonic.advanced(by: duration)
        now.wall = Timestamp(milliseconds: now.wall.milliseconds + duration.milliseconds)
        while let due = timers.filter({ $0.value <= now.monotonic }).min(by: { $0.value < $1.value }) {
            timers[due.key] = nil
            handle(.timer(due.key))
        }
    }

    func results(_ id: RequestID) -> [WireFeedResult] {
        guard case .success(let bytes) = replies[id], let reply = try? WireFeedsReply(wireBytes: bytes) else {
            return []
        }
        return reply.results
    }

    mutating func perform(_ effects: [FeedsMachine.Effect]) {
        // As on the bus, an answer comes after all that was decided with the question.
        var questions: [FeedsMachine.Call] = []
        var answers: [FeedsMachine.Event] = []
        defer {
            for question in questions { answer(question) }
            for answer in answers { handle(answer) }
        }
        for effect in effects {
            switch effect {
            case .commit(let transaction):
                if holdsCommits { held.append(transaction) } else { commit(transaction) }
            case .publish(let publications): published += publications
            case .reply(let id, let result): replies[id] = result
            case .call(let call):
                calls.append(call)
                if !holdsCalls { questions.append(call) }
            case .timer(let name, let time): timers[name] = time
            case .perform(.fetch(let order)): orders.append(order)
            case .perform(.cancel(let number)): cancelled.append(number)
            case .perform(.fetchChapters(let number, let address, _)): chapterFetches.append((number, address))
            case .perform(.saveSecrets(let number, let saved)):
                saves.append(saved)
                if !holdsSecrets { answers.append(.input(.secretsSaved(number, secretsFailure))) }
            case .perform(.migrateSecrets): break
            case .perform(.dropMovedSecrets): dropsMovedSecrets = true
            case .perform(.forget): break
            case .log(let level, let text): logged.append((level, text))
            }
        }
    }

    mutating func commit(_ transaction: FeedsMachine.Transaction) {
        transactions.append(transaction)
        for change in transaction.changes { apply(change) }
        published += transaction.publications
        if let answer = transaction.answer { replies[answer.request] = .success(answer.reply) }
        handle(.committed(transaction.step))
    }

    mutating func refuse(_ transaction: FeedsMachine.Transaction, _ failure: Failure) {
        handle(.refused(transaction.step, failure))
        if let answer = transaction.answer { replies[answer.request] = transaction.onRefusal.result(failure) }
    }

    private mutating func apply(_ change: WireChange) {
        switch change.change {
        case .putPodcast(let podcast):
            podcasts[podcast.id] = podcast
            // The database gives an owner its podcasts back as records.
            records["podcast/\(podcast.id)"] = StoredRecord(
                collection: "podcast", key: podcast.id, value: podcast.wireBytes)
        case .deletePodcast(let id):
            podcasts[id] = nil
            records["podcast/\(id)"] = nil
            episodes = episodes.filter { $0.value.podcastID != id }
            aliases = aliases.filter { !$0.key.hasPrefix(id + " ") }
        case .putEpisode(let episode): episodes[episode.id] = episode
        case .putAlias(let alias): aliases["\(alias.podcast) \(alias.alias)"] = alias.episode
        case .put(let record):
            records["\(record.collection)/\(record.key)"] = StoredRecord(
                collection: record.collection, key: record.key, value: Array(record.value))
        case .putDocument(let document): documents["\(document.collection)/\(document.key)"] = Array(document.value)
        case .deleteDocuments(let collection):
            documents = documents.filter { !$0.key.hasPrefix(collection + "/") }
        case .delete(let key): records["\(key.collection)/\(key.key)"] = nil
        default: break
        }
    }

    mutating func answer(_ call: FeedsMachine.Call) {
        var reply = WirePersistenceReply()
        if let ids = try? WirePersistenceRequest(wireBytes: call.payload).episodesByID.ids, !ids.isEmpty {
            reply.episodes.episodes = ids.compactMap { id in
                guard var episode = episodes[id] else { return nil }
                let record = documents["chapters/\(episode.podcastID)/\(id)"]
                let chapters = record.flatMap { try? WireChaptersRecord(wireBytes: $0) }
                episode.chaptersFetched = chapters?.fetchedAt ?? 0
                return episode
            }
        } else if let query = try? WirePersistenceRequest(wireBytes: call.payload).aliases {
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
        handle(.answered(call.query, .success(reply.wireBytes)))
    }
}

/// A feed of episodes that are given as (GUID, audio, title).
func rss(_ episodes: [(guid: String, audio: String, title: String)], title: String = "Waves") -> String {
    let items = episodes.map { episode in
        let guid = episode.guid.isEmpty ? "" : "<guid>\(episode.guid)</guid>"
        return
            "<item><title>\(episode.title)</title>\(guid)<enclosure url=\"\(episode.audio)\" type=\"audio/mpeg\"/></item>"
    }
    return "<rss><channel><title>\(title)</title>\(items.joined())</channel></rss>"
}
