package import BusKit
import FoundationEssentials
package import OwnerKit
package import PodcastModel
package import ProcessKit
package import WireMessages

/// Owns the podcasts and their episodes: what is subscribed to, when it is refreshed, what a fetched feed changes.
///
/// Fetching is the shell's; each fetch is one podcast's own business, and one that is slow gives its place to others. What
/// is stored: a record `podcast/<id>` and a record `seen/<id>` for each, the podcast and its episodes in the library.
package struct FeedsMachine: OwnerMachine {
    /// What the shell reports.
    package typealias Input = FeedsInput
    /// What the shell does.
    package typealias Action = FeedsAction
    typealias Effect = OwnerEffect<FeedsAction>

    /// The name on the bus.
    package static let owner = ServiceName.feeds

    typealias Subscription = FeedsLibrary.Subscription

    static let scheduleTimer = TimerName("schedule")
    private static let readingTimer = TimerName("read again")
    private static let readingRetry = Backoff.constant(.seconds(30))
    /// The wait after a podcast or the passwords could not be saved.
    static let savingRetry = Backoff.constant(.seconds(60))
    static let storingTimer = TimerName("store unchanged")
    /// The most bytes of a command's answer that is stored.
    static let answerLimit = 400 << 10

    var podcasts = SpeculativeState(FeedsLibrary())
    /// Podcasts whose last refresh changed nothing but times and validators, which are not stored yet.
    var unstored: Set<PodcastID> = []
    var schedule: RefreshSchedule
    var jobs: [RequestID: Job] = [:]
    var fetches = FetchQueue()
    var merges: [UInt64: Merge] = [:]
    var unsettled: [TransactionID: Unsettled] = [:]
    /// Feeds whose refresh could not be saved are left alone until then.
    var notBefore: [PodcastID: MonotonicTime] = [:]
    /// Episodes whose chapters are looked for.
    var searches: [UInt64: ChapterSearch] = [:]
    var searchCount: UInt64 = 0
    /// The users and passwords of feeds.
    var secrets: FeedSecrets
    /// Whether the file has something else.
    var secretsAreUnsaved = false
    /// The saves so far; each is named by its number.
    var lastSave: UInt64 = 0
    /// The save that has what persistence found in an older database, until one with it has succeeded.
    var takeoverSave: UInt64?
    /// Fetches that wait until a save is on the disk, by its number.
    var parked: [UInt64: (fetch: UInt64, outcome: FetchOutcome)] = [:]
    var alerts = OwnerAlerts(.feeds)
    private let damage: String?
    private var lastTransaction: UInt64 = 0

    /// What waits for a transaction.
    struct Unsettled: Sendable {
        /// Results that hold once it is durable.
        var results: [(waiter: Waiter, result: WireFeedResult)] = []
        /// The command that it answers.
        var command: RequestID?
        /// The command’s answer where only the answer is stored: what it reports is durable already.
        var reply: [UInt8]?
        /// The podcast that it is about.
        var podcast: PodcastID?
        /// That every feed is to be read anew; it is tried again until it is durable.
        var readsAgain = false
        /// Commands that asked for an episode's chapters.
        var chapterCommands: [RequestID] = []
        /// Podcasts that are forgotten with it.
        var forgotten: [PodcastID] = []
    }

    /// An owner that knows only the users and passwords; `damage` says that their file could not be read.
    package init(
        schedule: RefreshSchedule = RefreshSchedule(), secrets: FeedSecrets = FeedSecrets(), damage: String? = nil
    ) {
        self.schedule = schedule
        self.secrets = secrets
        self.damage = damage
    }

    // MARK: - Starting

    /// Takes the stored podcasts over; a record that cannot be read is left where it is and reported.
    package mutating func restore(_ records: [StoredRecord], now: Moment) -> [OwnerEffect<FeedsAction>] {
        var effects: [Effect] = []
        var restored: [PodcastID: Subscription] = [:]
        let known = records.filter { $0.collection == "podcast" }.map(\.key)
        for record in records {
            let podcast = PodcastID(record.key)
            switch record.collection {
            case "podcast":
                guard let id = podcast else { continue }
                do {
                    restored[id, default: Subscription(podcast: WirePodcast())].podcast = try WirePodcast(
                        wireBytes: record.value)
                } catch {
                    effects.append(.log(.error, "record podcast/\(record.key) is unreadable: \(error)"))
                }
            case "seen":
                guard let id = podcast else { continue }
                restored[id, default: Subscription(podcast: WirePodcast())].seen = SeenEpisodes(packed: record.value)
            default:
                do {
                    _ = try alerts.restore(record)
                } catch {
                    effects.append(.log(.error, "record \(record.collection)/\(record.key) is unreadable: \(error)"))
                }
            }
        }
        podcasts = SpeculativeState(FeedsLibrary(restored.filter { PodcastID($0.value.podcast.id) == $0.key }))
        if let damage {
            let change = alerts.raiseDamage(damage, now: now.wall)
            effects.append(commit(change.changes, change.publications))
        }
        effects += forgetSecrets(ofAllBut: known)
        effects.append(.perform(.takeOverSecrets))
        effects += scheduleNext(now: now, notBefore: .seconds(2))
        return effects
    }

    package func retained(now: Moment) -> [Publication] {
        podcasts.current.all.sorted { $0.key < $1.key }.map { Self.publication($0.value.podcast) } + alerts.retained
    }

    /// Every record, and every podcast in the library; episodes come back with the next refresh.
    package func everything() -> [WireChange] {
        podcasts.current.all.sorted { $0.key < $1.key }.flatMap { Self.changes(storing: $0.value) } + alerts.everything
    }

    /// A podcast as the stream has it: without what only the feeds need, and with the beginning of its description.
    static func publication(_ podcast: WirePodcast) -> Publication {
        Publication(.put, .podcast(podcast.id), podcast.summary.wireBytes)
    }

    /// The same, if it differs from what is on the stream.
    func publications(_ podcast: WirePodcast) -> [Publication] {
        let old = PodcastID(podcast.id).flatMap { podcasts.current[$0] }
        return old?.podcast.summary == podcast.summary ? [] : [Self.publication(podcast)]
    }

    static func changes(storing subscription: Subscription) -> [WireChange] {
        let podcast = subscription.podcast
        var seen = WireChange()
        seen.put.collection = "seen"
        seen.put.key = podcast.id
        seen.put.value = Data(subscription.seen.packed)
        return [WireChange(.putPodcast(podcast)), seen]
    }

    static func changes(storing podcast: WirePodcast) -> [WireChange] {
        [WireChange(.putPodcast(podcast))]
    }

    // MARK: - Deciding

    package mutating func handle(_ event: OwnerEvent<FeedsInput>, now: Moment) -> [OwnerEffect<FeedsAction>] {
        let effects = decide(event, now: now)
        return effects + fetches.takeRemoved().map { .perform(.settled($0)) }
    }

    private mutating func decide(_ event: OwnerEvent<FeedsInput>, now: Moment) -> [Effect] {
        switch event {
        case .command(let command): return handle(command, now: now)
        case .committed(let id):
            podcasts.committed(id)
            guard let settled = unsettled.removeValue(forKey: id) else { return [] }
            return settled.results.flatMap { answer($0.waiter, $0.result) }
                + settled.chapterCommands.map { .reply($0, .success(WireFeedsReply().wireBytes)) }
                + forgetSecrets(of: settled.forgotten) + scheduleNext(now: now)
        case .refused(let id, let failure): return refused(id, failure, now: now)
        case .answered(let call, let result) where Self.isAboutChapters(call):
            return chaptersAnswered(call, result, now: now)
        case .answered(let call, let result): return aliasesAnswered(call, result, now: now)
        case .databaseReplaced: return [.perform(.takeOverSecrets)] + readAgain(now: now)
        case .observed, .podcastForgotten: return []
        case .timer(Self.scheduleTimer): return startDue(now: now)
        case .timer(Self.readingTimer): return readAgain(now: now)
        case .timer(Self.storingTimer): return storeUnchanged()
        case .timer(Self.secretsTimer): return [save(secrets)]
        case .timer(let name): return fetchTimer(name, now: now)
        case .input(.postponed(let number)): return limitFetch(number, since: nil)
        case .input(.began(let number)): return limitFetch(number, since: now)
        case .input(.fetched(let number, let outcome)): return fetched(number, outcome, now: now)
        case .input(.chapters(let number, let outcome)): return chaptersFetched(number, outcome, now: now)
        case .input(.secretsSaved(let number, let failure)): return secretsSaved(number, failure, now: now)
        case .input(.secretsMoved(let moved)): return secretsMoved(moved)
        case .input(.secretsDamaged(let message)):
            let change = alerts.raiseDamage(message, now: now.wall)
            return [commit(change.changes, change.publications)]
        case .stopping: return fetches.running.map { .perform(.cancel($0)) } + storeUnchanged()
        }
    }

    /// Applies a change of the podcasts and commits it.
    mutating func commit(
        _ changes: [WireChange], _ publications: [Publication], _ waiting: Unsettled = Unsettled(),
        answering answer: (request: RequestID, reply: [UInt8])? = nil,
        _ change: (inout FeedsLibrary) -> Void = { _ in }
    ) -> Effect {
        lastTransaction += 1
        let id = TransactionID(lastTransaction)
        podcasts.apply(id, change)
        unsettled[id] = waiting
        return .commit(Transaction(id: id, changes: changes, publications: publications, answering: answer))
    }

    private mutating func refused(_ id: TransactionID, _ failure: Failure, now: Moment) -> [Effect] {
        podcasts.refused(id)
        guard let settled = unsettled.removeValue(forKey: id) else { return [] }
        var effects: [Effect] = []
        if settled.readsAgain {
            effects.append(.timer(Self.readingTimer, at: now.monotonic.advanced(by: Self.readingRetry.wait())))
        }
        effects += settled.chapterCommands.map { .reply($0, .failure(failure)) }
        if let podcast = settled.podcast { notBefore[podcast] = now.monotonic.advanced(by: Self.savingRetry.wait()) }
        if let command = settled.command, failure.code != "duplicateRequest" {
            effects.append(.reply(command, settled.reply.map { .success($0) } ?? .failure(failure)))
        }
        for (waiter, result) in settled.results {
            var failed = WireFeedResult()
            failed.url = result.url
            failed.kind = .failed
            failed.failure = WireFailure(failure)
            effects += answer(waiter, failed)
        }
        return effects + scheduleNext(now: now)
    }

    /// Another database has lost what was stored since its backup: every feed is read anew.
    private mutating func readAgain(now: Moment) -> [Effect] {
        var changes: [WireChange] = []
        var next: [PodcastID: Subscription] = [:]
        for (id, subscription) in podcasts.current.all.sorted(by: { $0.key < $1.key }) {
            var changed = subscription
            changed.seen = subscription.seen.withoutFingerprints
            changed.podcast.etag = ""
            changed.podcast.lastModified = ""
            changed.podcast.nextRefresh = now.wall.milliseconds
            changes += Self.changes(storing: changed)
            next[id] = changed
        }
        guard !changes.isEmpty else { return [] }
        // All at once: of a thousand commits some would be refused, and their feeds would say “not modified”.
        let effect = commit(changes, [], Unsettled(readsAgain: true)) { podcasts in
            for (id, subscription) in next { podcasts[id] = subscription }
        }
        return [effect] + scheduleNext(now: now)
    }
}

extension WireChange {
    init(_ change: OneOf_Change) {
        self.init()
        self.change = change
    }
}
