import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

extension FeedsMachine {
    /// The minimum time between two publications of a job’s progress.
    private static let progressInterval = Duration.milliseconds(250)
    /// The time for which an ended job stays on the stream.
    private static let endedInterval = Duration.seconds(60)
    /// The maximum number of podcasts: the stream retains 20 000 values of a service, among them alerts and jobs.
    static let podcastLimit = 19_500
    /// The maximum number of results in a reply, and of their bytes.
    private static let pageLines = 200
    private static let pageBytes = 256 << 10

    // MARK: - Commands

    /// Starts a job that refreshes all subscribed podcasts, unless one is running.
    mutating func refreshAll(_ command: Command, now: Moment, _ effects: inout [Effect]) {
        if let running = jobs.values.first(where: { $0.kind == .refresh && $0.ended == nil }) {
            return reply(to: command.id, job: running.id, &effects)
        }
        let podcasts = library.current.sorted.map(\.podcast).filter(\.subscribed)
        let lines = podcasts.map { FeedsJob.Line(podcast: PodcastID($0.id)) }
        guard !lines.isEmpty else {
            return effects.append(.reply(command.id, .success(WireFeedsReply().wireBytes)))
        }
        start(job(.refresh, lines, command, now: now), [], [], for: command, &effects)
    }

    /// Stores subscriptions at once, and starts a job that fetches their feeds.
    mutating func addFeeds(
        _ request: WireAddFeeds, _ command: Command, now: Moment, _ effects: inout [Effect]
    ) throws(Failure) {
        guard !request.outlines.isEmpty, request.outlines.count <= RequestSizes.episodes else {
            throw Failure(.invalidArgument, "Name 1 to \(RequestSizes.episodes) feeds in one command.")
        }
        var added = AddedFeeds(library.current, secrets, now: now.wall)
        for outline in request.outlines { added.add(outline) }
        guard added.secrets == secrets else {
            // The passwords are durable before anything that needs them.
            save(added.secrets, &effects)
            commandsAwaitingSave[lastSave] = command
            return
        }
        var job = job(.subscribe, added.lines, command, now: now)
        job.dropsFailing = request.dropFailing
        let podcasts = added.changed.sorted { $0.key < $1.key }.map(\.value)
        for podcast in podcasts { PodcastID(podcast.id).map { _ = unstored.remove($0) } }
        start(
            job, podcasts.map(Self.change(storing:)), podcasts.map(Self.publication), for: command, &effects
        ) { library in
            for (id, podcast) in added.changed {
                library[id] = Subscription(podcast: podcast, seen: library[id]?.seen ?? SeenEpisodes())
            }
        }
    }

    /// Answers with a page of a job’s results.
    func jobResults(
        _ query: WireJobResults, _ command: Command, _ effects: inout [Effect]
    ) throws(Failure) {
        guard let job = JobID(query.job).flatMap({ jobs[$0] }) else {
            throw Failure(.notFound, "There is no job “\(query.job.prefix(80))”; it ended more than a minute ago.")
        }
        var reply = WireFeedsReply()
        var bytes = 0
        var index = Int(query.after)
        while index < job.lines.count, reply.results.count < Self.pageLines, bytes < Self.pageBytes {
            let line = result(of: job.lines[index])
            bytes += line.wireBytes.count
            reply.results.append(line)
            index += 1
        }
        reply.next = index < job.lines.count ? UInt32(clamping: index) : 0
        effects.append(.reply(command.id, .success(reply.wireBytes)))
    }

    private func result(of line: FeedsJob.Line) -> WireFeedResult {
        let podcast = line.podcast.flatMap { library.current[$0]?.podcast }
        let url = line.url.isEmpty ? podcast?.url ?? "" : line.url
        var result = podcast.map { self.result(line.kind, url, $0) } ?? WireFeedResult()
        (result.url, result.kind, result.warnings) = (url, line.kind, line.warnings)
        result.newEpisodes = line.newEpisodes
        if let failure = line.failure { result.failure = WireFailure(failure) }
        // A failing feed without its podcast was removed again.
        result.kept = line.kind == .failed && !line.url.isEmpty && podcast?.subscribed == true
        return result
    }

    private func reply(to command: RequestID, job: JobID, _ effects: inout [Effect]) {
        let reply = WireFeedsReply.with { $0.job = job.text }
        effects.append(.reply(command, .success(reply.wireBytes)))
    }

    // MARK: - Progress

    private func job(_ kind: FeedsJob.Kind, _ lines: [FeedsJob.Line], _ command: Command, now: Moment) -> FeedsJob {
        // The same ID for a repeated request.
        FeedsJob(
            kind, id: .derived(from: "job \(command.id)"), origin: command.origin, at: now.wall, lines)
    }

    /// Stores a job with the changes that it begins with; the fetches begin when it is durable.
    private mutating func start(
        _ job: FeedsJob, _ changes: [WireChange], _ publications: [Publication], for command: Command,
        _ effects: inout [Effect], _ change: (inout FeedsLibrary) -> Void = { _ in }
    ) {
        if let known = jobs[job.id] {
            // The commit of the first request answers while it isn’t durable.
            if known.isStored { reply(to: command.id, job: job.id, &effects) }
            return
        }
        jobs[job.id] = job
        let reply = WireFeedsReply.with { $0.job = job.id.text }
        commit(
            changes + [.putting("job", job.id.text, job.record)], publications + [publication(job)],
            for: Purpose(job: job.id), answering: (command.id, reply.wireBytes), &effects, change)
    }

    /// Begins the fetches of a stored job.
    mutating func begin(_ id: JobID, now: Moment, _ effects: inout [Effect]) {
        jobs[id]?.isStored = true
        jobs[id]?.isChanged = true
        guard let job = jobs[id] else { return }
        let operation: Waiter.Operation = job.kind == .refresh ? .refresh : .add(dropsFailing: job.dropsFailing)
        for (line, feed) in job.lines.enumerated() where feed.kind == .unknown {
            let waiter = Waiter(target: .job(id), line: line, name: feed.url, operation: operation)
            guard let podcast = feed.podcast, let known = library.current[podcast]?.podcast, known.subscribed else {
                answer(
                    waiter, failed(feed.url, job.dropsFailing ? .unreadFeedRemoved : .unsubscribedMeanwhile), &effects)
                continue
            }
            guard let address = WebAddress(known.url) else {
                answer(waiter, failed(known.url, .unusableAddress(known.url), known), &effects)
                continue
            }
            fetches.add(.podcast(podcast), address, waiter)
        }
        startFetches(now: now, &effects)
    }

    /// Continues the jobs that the last process left. What their podcasts show as done isn’t done again; feeds that
    /// failed are fetched again.
    mutating func continueJobs(now: Moment, _ effects: inout [Effect]) {
        for id in jobs.keys.sorted() {
            guard let job = jobs[id] else { continue }
            for (index, line) in job.lines.enumerated() where line.kind == .unknown {
                guard let podcast = line.podcast.flatMap({ library.current[$0]?.podcast }), podcast.subscribed,
                    podcast.lastRefresh >= job.started.milliseconds
                else { continue }
                let done = result(job.kind == .refresh ? .unchanged : .added, line.url, podcast)
                jobs[id]?.finish(index, done)
            }
            begin(id, now: now, &effects)
        }
    }

    func publication(_ job: FeedsJob) -> Publication {
        let message = job.wire { library.current[$0]?.podcast.title ?? $0.text }
        return Publication(.put, .job(.feeds, job.id.text), message.wireBytes)
    }

    /// Publishes the progress and the ends of jobs, and removes those that ended a minute ago.
    mutating func publishJobs(now: Moment, _ effects: inout [Effect]) {
        guard !jobs.isEmpty else { return }
        var due: [MonotonicTime] = []
        for (id, var job) in jobs.sorted(by: { $0.key < $1.key }) where job.isStored {
            if let removedAt = job.removedAt, removedAt <= now.monotonic {
                jobs[id] = nil
                effects.append(.publish([Publication(.delete, .job(.feeds, id.text))]))
                continue
            }
            if job.isDone, job.ended == nil {
                job.ended = now.wall
                job.removedAt = now.monotonic.advanced(by: Self.endedInterval)
                (job.isChanged, job.publishedAt) = (true, nil)
                // Without the record, a later process doesn’t know the job.
                commit([.deleting("job", id.text)], [], &effects)
            }
            if job.isChanged {
                let next = job.publishedAt?.advanced(by: Self.progressInterval) ?? now.monotonic
                if next <= now.monotonic {
                    (job.isChanged, job.publishedAt) = (false, now.monotonic)
                    effects.append(.publish([publication(job)]))
                } else {
                    due.append(next)
                }
            }
            if let removedAt = job.removedAt { due.append(removedAt) }
            jobs[id] = job
        }
        let next = due.min()
        if next != jobTimer { effects.append(.timer(.jobs, at: next)) }
        jobTimer = next
    }

    /// Removes a subscription that a job added and whose first fetch failed; a former one becomes a former one again.
    mutating func drop(_ fetch: Fetch, _ id: PodcastID, _ failure: Failure, _ effects: inout [Effect]) {
        guard let known = library.current[id] else { return fail(fetch, failure, &effects) }
        fetches.remove(fetch.number)
        let results = fetch.waiters.map { ($0, failed($0.name, failure)) }
        guard known.podcast.isUnread, known.seen.count == 0 else {
            var podcast = known.podcast
            podcast.unsubscribe()
            commit(
                [Self.change(storing: podcast)], publications(podcast), for: Purpose(results: results), &effects
            ) { $0[id]?.podcast = podcast }
            return
        }
        commit(
            Self.deletion(of: id), [Publication(.delete, .podcast(id.text))],
            for: Purpose(results: results, forgotten: [id]), &effects
        ) { $0[id] = nil }
    }

    /// Replaces a subscription that was never read by the one that already has its feed, at the end of a redirect.
    mutating func replace(
        _ id: PodcastID, by other: PodcastID, _ fetch: Fetch, now: Moment, _ effects: inout [Effect]
    ) {
        guard let given = library.current[id]?.podcast, var podcast = library.current[other]?.podcast else {
            return fail(fetch, .unsubscribedMeanwhile, &effects)
        }
        fetches.remove(fetch.number)
        podcast.adopt(tags: given.tags, ownTitle: given.feedTitle.isEmpty ? "" : given.title)
        let isAdded = !podcast.subscribed
        if isAdded {
            podcast.subscribe(at: now.wall)
            podcast.nextRefresh = now.wall.milliseconds
        }
        remember(fetch.address, of: &podcast)
        unstored.remove(other)
        let stored = podcast
        let results = fetch.waiters.map { ($0, result(isAdded ? .added : .alreadyThere, $0.name, stored)) }
        commit(
            Self.deletion(of: id) + [Self.change(storing: stored)],
            [Publication(.delete, .podcast(id.text)), Self.publication(stored)],
            for: Purpose(results: results, podcast: other, forgotten: [id]), &effects
        ) { library in
            library[id] = nil
            library[other]?.podcast = stored
        }
    }

    /// The deletion of a podcast with everything that belongs to it.
    static func deletion(of id: PodcastID) -> [WireChange] {
        [
            .with { $0.deletePodcast = id.text }, .deleting("seen", id.text),
            .deletingDocuments("chapters/\(id.text)"),
        ]
    }
}

extension WirePodcast {
    /// Whether its feed was never read.
    var isUnread: Bool { lastRefresh == 0 }
}

/// The subscriptions that outlines add or change.
struct AddedFeeds {
    private var library: FeedsLibrary
    private(set) var secrets: FeedSecrets
    private let now: Timestamp
    /// The outcome of each outline; `unknown` for those whose feed must be fetched.
    private(set) var lines: [FeedsJob.Line] = []
    /// The podcasts to store.
    private(set) var changed: [PodcastID: WirePodcast] = [:]

    init(_ library: FeedsLibrary, _ secrets: FeedSecrets, now: Timestamp) {
        (self.library, self.secrets, self.now) = (library, secrets, now)
    }

    mutating func add(_ outline: WireAddFeeds.Outline) {
        var line = FeedsJob.Line(url: WebAddress.redacted(outline.url))
        do throws(Failure) {
            try add(outline, &line)
        } catch {
            (line.kind, line.failure) = (.failed, error)
        }
        lines.append(line)
    }

    private mutating func add(_ outline: WireAddFeeds.Outline, _ line: inout FeedsJob.Line) throws(Failure) {
        guard let named = WebAddress(outline.url) else { throw .unusableAddress(outline.url) }
        var tags: [String] = []
        for tag in outline.tags { tags.append(try PodcastTag.checked(tag)) }
        let ownTitle = outline.ownTitle.isEmpty ? "" : try PodcastTitle.checked(outline.ownTitle)
        let address = named.withoutCredentials
        let known = library.podcast(at: address)
        let id = known?.0 ?? .feed(at: address)
        var podcast = known?.1.podcast ?? WirePodcast()
        line.podcast = id
        if known == nil {
            guard library.all.count < FeedsMachine.podcastLimit else {
                throw Failure(
                    .limitReached, "The library has \(FeedsMachine.podcastLimit) podcasts, which is the maximum.")
            }
            (podcast.id, podcast.url) = (id.text, address.text)
            let title = PodcastTitle.fitted(WebAddress.withoutCredentials(in: outline.title))
            podcast.title = title.isEmpty ? address.text : title
        }
        podcast.adopt(tags: tags, ownTitle: ownTitle)
        if podcast.subscribed {
            line.kind = .alreadyThere
        } else {
            podcast.subscribe(at: now)
            podcast.nextRefresh = now.milliseconds
            if !address.isFile, let given = named.webCredentials {
                for origin in FeedsMachine.origins(of: address) {
                    secrets.set(given, for: id.text, at: origin, isGiven: true)
                }
            }
        }
        guard podcast != known?.1.podcast else { return }
        library[id] = FeedsLibrary.Subscription(podcast: podcast, seen: known?.1.seen ?? SeenEpisodes())
        changed[id] = podcast
    }
}
