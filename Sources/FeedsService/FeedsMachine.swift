package import BusKit
import FoundationEssentials
package import OwnerKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// Owns the podcasts and their episodes: the subscriptions, their refreshes, and the changes by fetched feeds.
///
/// Each podcast has the records `podcast/<ID>` and `seen/<ID>`, and its entry and episodes in the library.
package struct FeedsMachine: OwnerMachine {
    package typealias Input = FeedsInput
    package typealias Action = FeedsAction

    package enum Query: Sendable {
        /// A query for the aliases of a fetch’s episodes.
        case aliases(fetch: UInt64, WireAliasQuery)
        /// A query for the episode of a search for chapters.
        case chapters(search: UInt64)
    }

    package enum Timer: Sendable, Hashable {
        case schedule, readAgain, storeUnchanged, saveSecrets, jobs, forgetting
        /// Marks the fetch with this number as slow.
        case slow(UInt64)
        /// Cancels the fetch with this number at its time limit.
        case limit(UInt64)
    }

    package struct Step: Sendable {
        var id: TransactionID
        var purpose: Purpose
    }

    /// The purpose of a transaction, which determines the actions after its outcome.
    struct Purpose: Sendable {
        /// The results to report when it is durable.
        var results: [(waiter: Waiter, result: WireFeedResult)] = []
        var podcast: PodcastID?
        /// Whether every feed is read again after it; such a transaction is retried until it is durable.
        var readsAgain = false
        /// The commands that requested an episode’s chapters.
        var chapterCommands: [RequestID] = []
        /// The podcasts that it forgets.
        var forgotten: [PodcastID] = []
        /// The job that begins after it.
        var job: JobID?
    }

    package static let owner = ServiceName.feeds

    typealias Subscription = FeedsLibrary.Subscription

    private static let readBackoff = Backoff.constant(.seconds(30))
    /// The delay after a podcast or the passwords couldn’t be saved.
    static let saveBackoff = Backoff.constant(.seconds(60))
    /// The maximum size of a stored reply, in bytes.
    static let answerLimit = 400 << 10

    var library = SpeculativeState(FeedsLibrary())
    /// The podcasts whose last refresh changed only times and validators, which aren’t stored yet.
    var unstored: Set<PodcastID> = []
    var schedule: RefreshSchedule
    var commands: [RequestID: FeedCommand] = [:]
    var jobs: [JobID: FeedsJob] = [:]
    /// The time at which a job is published or removed next.
    var jobTimer: MonotonicTime?
    var fetches = FetchQueue()
    /// The number of fetched feeds whose commit is pending.
    var storing = 0
    var merges: [UInt64: Merge] = [:]
    /// The times before which feeds whose refresh couldn’t be saved aren’t refreshed.
    var notBefore: [PodcastID: MonotonicTime] = [:]
    var searches: [UInt64: ChapterSearch] = [:]
    var searchCount: UInt64 = 0
    /// The users and passwords of feeds.
    var secrets: FeedSecrets
    /// Whether the secrets differ from their file.
    var secretsAreUnsaved = false
    /// The number of the last save of the secrets.
    var lastSave: UInt64 = 0
    /// The number of the first save with the secrets from an older database, until a save with them has succeeded.
    var migrationSave: UInt64?
    /// The fetches that wait until a save is durable, by its number.
    var fetchesAwaitingSave: [UInt64: (fetch: UInt64, outcome: FetchOutcome)] = [:]
    /// The commands that continue when a save is durable, by its number.
    var commandsAwaitingSave: [UInt64: Command] = [:]
    /// The podcasts that have records; used during restoration only.
    private var storedPodcasts: Set<String> = []
    private let damage: String?

    /// - Parameter damage: The message about a damaged file of users and passwords; nil if it isn’t damaged.
    package init(
        schedule: RefreshSchedule = RefreshSchedule(), secrets: FeedSecrets = FeedSecrets(), damage: String? = nil
    ) {
        self.schedule = schedule
        self.secrets = secrets
        self.damage = damage
    }

    // MARK: - Starting

    package mutating func restore(_ record: StoredRecord, now: Moment) throws {
        switch record.collection {
        case "podcast":
            storedPodcasts.insert(record.key)
            let podcast = try WirePodcast(wireBytes: record.value)
            guard let id = PodcastID(record.key), podcast.id == record.key else { return }
            library.amend { $0[id] = Subscription(podcast: podcast) }
        case "seen":
            guard let id = PodcastID(record.key) else { return }
            library.amend { $0[id]?.seen = SeenEpisodes(packed: record.value) }
        case "job":
            guard let job = FeedsJob(record.key, try WireJobRecord(wireBytes: record.value)) else { return }
            jobs[job.id] = job
        default: _ = try library.amend { try $0.alerts.restore(record) }
        }
    }

    package mutating func start(now: Moment, _ effects: inout [Effect]) {
        if let damage { raiseSecretsDamaged(damage, now: now.wall, &effects) }
        forgetSecrets(ofAllBut: storedPodcasts, &effects)
        storedPodcasts = []
        effects.append(.perform(.migrateSecrets))
        continueJobs(now: now, &effects)
        if !jobs.isEmpty { effects.append(.timer(.jobs, at: now.monotonic)) }
        scheduleNext(now: now, notBefore: .seconds(2), &effects)
        scheduleForgetting(now: now, &effects)
    }

    package func retained(now: Moment) -> [Publication] {
        library.current.sorted.map { Self.publication($0.podcast) } + library.current.alerts.retained
            + jobs.values.filter(\.isStored).sorted { $0.id < $1.id }.map(publication)
    }

    /// Returns every record, and every podcast in the library; the next refresh restores the episodes.
    package func everything() -> [WireChange] {
        library.current.sorted.flatMap(Self.changes(storing:)) + library.current.alerts.everything
            + jobs.values.filter { $0.ended == nil }.map { .putting("job", $0.id.text, $0.record) }
    }

    /// Returns the publication of a podcast, without fields that only this service needs, and with the beginning of the
    /// description.
    static func publication(_ podcast: WirePodcast) -> Publication {
        Publication(.put, .podcast(podcast.id), podcast.summary.wireBytes)
    }

    /// Returns the publication of a podcast, if it differs from the published one.
    func publications(_ podcast: WirePodcast) -> [Publication] {
        let old = PodcastID(podcast.id).flatMap { library.current[$0] }
        return old?.podcast.summary == podcast.summary ? [] : [Self.publication(podcast)]
    }

    static func changes(storing subscription: Subscription) -> [WireChange] {
        let seen = WireChange.with {
            $0.put.collection = "seen"
            $0.put.key = subscription.podcast.id
            $0.put.value = Data(subscription.seen.packed)
        }
        return [change(storing: subscription.podcast), seen]
    }

    static func change(storing podcast: WirePodcast) -> WireChange { .with { $0.putPodcast = podcast } }

    // MARK: - Deciding

    package mutating func handle(_ event: Event, now: Moment) -> [Effect] {
        var effects: [Effect] = []
        switch event {
        case .command(let command): handle(command, now: now, &effects)
        case .committed(let step): committed(step, now: now, &effects)
        case .refused(let step, let failure): refused(step, failure, now: now, &effects)
        case .answered(.aliases(let fetch, let query), let result):
            aliasesAnswered(fetch, query, result.persistenceReply, now: now, &effects)
        case .answered(.chapters(let search), let result):
            chaptersAnswered(search, result.persistenceReply, now: now, &effects)
        case .databaseReplaced:
            effects.append(.perform(.migrateSecrets))
            readAgain(now: now, &effects)
        case .observed, .podcastForgotten: break
        case .timer(.schedule): startDue(now: now, &effects)
        case .timer(.readAgain): readAgain(now: now, &effects)
        case .timer(.storeUnchanged): storeUnchanged(&effects)
        case .timer(.saveSecrets): save(secrets, &effects)
        case .timer(.jobs): jobTimer = nil
        case .timer(.forgetting): forgetDue(now: now, &effects)
        case .timer(.slow(let number)):
            fetches.markSlow(number)
            startFetches(now: now, &effects)
        case .timer(.limit(let number)): fetchTimedOut(number, now: now, &effects)
        case .input(.postponed(let number)): limitFetch(number, since: nil, &effects)
        case .input(.began(let number)): limitFetch(number, since: now, &effects)
        case .input(.fetched(let number, let outcome)): fetched(number, outcome, now: now, &effects)
        case .input(.chapters(let number, let outcome)): chaptersFetched(number, outcome, now: now, &effects)
        case .input(.secretsSaved(let number, let failure)): secretsSaved(number, failure, now: now, &effects)
        case .input(.secretsMoved(let moved)): secretsMoved(moved, &effects)
        case .input(.secretsDamaged(let message)): raiseSecretsDamaged(message, now: now.wall, &effects)
        case .stopping:
            effects += fetches.running.map { .perform(.cancel($0)) }
            storeUnchanged(&effects)
        }
        publishJobs(now: now, &effects)
        effects += fetches.drainRemoved().map { .perform(.forget($0)) }
        return effects
    }

    /// Applies a change of the library and commits it.
    mutating func commit(
        _ changes: [WireChange], _ publications: [Publication] = [], for purpose: Purpose = Purpose(),
        answering answer: (request: RequestID, reply: [UInt8])? = nil, onRefusal: RefusalAnswer = .failure,
        _ effects: inout [Effect], _ change: (inout FeedsLibrary) -> Void = { _ in }
    ) {
        let step = Step(id: library.apply(change), purpose: purpose)
        if purpose.podcast != nil { storing += 1 }
        effects.append(
            .commit(
                Transaction(
                    step, changes: changes, publications: publications, answering: answer, onRefusal: onRefusal)))
    }

    private mutating func committed(_ step: Step, now: Moment, _ effects: inout [Effect]) {
        library.committed(step.id)
        stored(step, now: now, &effects)
        for (waiter, result) in step.purpose.results { answer(waiter, result, &effects) }
        effects += step.purpose.chapterCommands.map { .reply($0, .success(WireFeedsReply().wireBytes)) }
        forgetSecrets(of: step.purpose.forgotten, &effects)
        if let job = step.purpose.job { begin(job, now: now, &effects) }
        scheduleNext(now: now, &effects)
    }

    /// Continues with waiting fetches after the commit of a fetched feed.
    private mutating func stored(_ step: Step, now: Moment, _ effects: inout [Effect]) {
        guard step.purpose.podcast != nil else { return }
        storing -= 1
        startFetches(now: now, &effects)
    }

    private mutating func refused(_ step: Step, _ failure: Failure, now: Moment, _ effects: inout [Effect]) {
        library.refused(step.id)
        stored(step, now: now, &effects)
        if let job = step.purpose.job { jobs[job] = nil }
        if step.purpose.readsAgain {
            effects.append(.timer(.readAgain, at: now.monotonic.advanced(by: Self.readBackoff.wait())))
        }
        effects += step.purpose.chapterCommands.map { .reply($0, .failure(failure)) }
        if !step.purpose.forgotten.isEmpty {
            effects.append(.timer(.forgetting, at: now.monotonic.advanced(by: Self.saveBackoff.wait())))
        }
        if let podcast = step.purpose.podcast {
            notBefore[podcast] = now.monotonic.advanced(by: Self.saveBackoff.wait())
        }
        for (waiter, result) in step.purpose.results { answer(waiter, failed(result.url, failure), &effects) }
        scheduleNext(now: now, &effects)
    }

    /// Reads every feed again, because a restored database lacks everything stored since its backup.
    private mutating func readAgain(now: Moment, _ effects: inout [Effect]) {
        var next = library.current
        for (id, var subscription) in next.all {
            subscription.seen = subscription.seen.withoutFingerprints
            (subscription.podcast.etag, subscription.podcast.lastModified) = ("", "")
            subscription.podcast.nextRefresh = now.wall.milliseconds
            next[id] = subscription
        }
        let changes = next.sorted.flatMap(Self.changes(storing:))
        guard !changes.isEmpty else { return }
        // All changes are in one commit: if one of many were refused, its feed would remain “not modified” forever.
        commit(changes, for: Purpose(readsAgain: true), &effects) { $0 = next }
        scheduleNext(now: now, &effects)
    }
}
