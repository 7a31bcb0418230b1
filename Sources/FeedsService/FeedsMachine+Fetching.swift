import FeedFetching
import FeedParsing
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

extension FeedsMachine {
    /// The time after which a fetch no longer counts against the limit.
    private static let slowAfter = Duration.seconds(3)
    /// The maximum time between two checks of the schedule, because the wall clock may be adjusted.
    private static let longestSleep = Duration.seconds(900)
    /// The number of waiting fetches from which the schedule isn’t computed after each fetch, and the time between two
    /// computations.
    private static let longQueue = 200
    private static let longQueueCheck = Duration.seconds(10)
    /// The maximum number of fetched feeds that are being stored, from which only commands start fetches.
    private static let storingLimit = 16
    /// The time between an unchanged refresh and its storage.
    private static let storingInterval = Duration.seconds(3_600)

    // MARK: - Schedule

    /// Sets the timer for the podcast that is due first.
    func scheduleNext(now: Moment, notBefore earliest: Duration = .zero, _ effects: inout [Effect]) {
        guard schedule.isAutomatic else { return }
        // While many fetches wait, others can’t start: the search among all podcasts is left to a later time.
        guard fetches.queuedCount <= Self.longQueue else {
            return effects.append(.timer(.schedule, at: now.monotonic.advanced(by: Self.longQueueCheck)))
        }
        let due = library.current.all.compactMap { id, subscription -> MonotonicTime? in
            guard subscription.podcast.subscribed, !fetches.contains(.podcast(id)) else { return nil }
            let wait = max(0, subscription.podcast.nextRefresh - now.wall.milliseconds)
            let time = now.monotonic.advanced(by: min(.milliseconds(wait), Self.longestSleep))
            return max(time, notBefore[id] ?? time)
        }
        let first = due.min().map { max($0, now.monotonic.advanced(by: earliest)) }
        effects.append(.timer(.schedule, at: first))
    }

    mutating func startDue(now: Moment, _ effects: inout [Effect]) {
        notBefore = notBefore.filter { $0.value > now.monotonic }
        let due = library.current.all.filter { id, subscription in
            subscription.podcast.subscribed && notBefore[id] == nil && !fetches.contains(.podcast(id))
                && subscription.podcast.nextRefresh <= now.wall.milliseconds
        }
        let order = due.sorted { ($0.value.podcast.nextRefresh, $0.key) < ($1.value.podcast.nextRefresh, $1.key) }
        for (id, subscription) in order {
            guard let address = WebAddress(subscription.podcast.url) else {
                notBefore[id] = now.monotonic.advanced(by: .seconds(86_400))
                refuseAddress(of: id, subscription.podcast, &effects)
                continue
            }
            fetches.add(.podcast(id), address, nil)
        }
        startFetches(now: now, &effects)
        scheduleNext(now: now, &effects)
    }

    /// Stores the failure of a podcast with an unusable address: an older version accepted more addresses than this
    /// one.
    private mutating func refuseAddress(of id: PodcastID, _ podcast: WirePodcast, _ effects: inout [Effect]) {
        let failure = Failure.unusableAddress(podcast.url)
        guard podcast.errorMessage != failure.message else { return }
        var podcast = podcast
        podcast.fail(failure)
        update(id, podcast, &effects)
    }

    // MARK: - Fetches

    mutating func startFetches(now: Moment, _ effects: inout [Effect]) {
        // A slow database delays fetches, so that their results don’t fill the memory, and commands their replies.
        while let fetch = fetches.start(commandsOnly: storing >= Self.storingLimit) {
            var order = FetchOrder(number: fetch.number, request: FeedRequest(fetch.address))
            order.isRequested = fetch.isUrgent
            order.request.credentials = credentials(of: fetch, fetch.podcast)
            if case .move(let id, _) = fetch.key, let known = library.current[id] {
                (order.podcast, order.seen) = (id, known.seen)
            }
            if case .podcast(let id) = fetch.key, let known = library.current[id] {
                order.podcast = id
                order.seen = known.seen
                // The feed of a podcast that was unsubscribed, or has never been read, is read completely.
                if known.podcast.subscribed, known.podcast.lastRefresh > 0 {
                    order.request.etag = known.podcast.etag
                    order.request.lastModified = known.podcast.lastModified
                }
            }
            fetches.setSeenCount(fetch.number, order.seen.count)
            effects.append(.perform(.fetch(order)))
            effects.append(.timer(.slow(fetch.number), at: now.monotonic.advanced(by: Self.slowAfter)))
            limitFetch(fetch.number, since: now, &effects)
        }
    }

    /// Limits the time of a fetch that began at `start`. If `start` is nil, the fetch was postponed, and its limit is
    /// removed.
    func limitFetch(_ number: UInt64, since start: Moment?, _ effects: inout [Effect]) {
        guard let fetch = fetches[number], fetch.stage == .running else { return }
        // A client waits for 60 s at most.
        let end = start?.monotonic.advanced(by: .seconds(fetch.isUrgent ? 45 : 60))
        effects.append(.timer(.limit(number), at: end))
    }

    mutating func fetchTimedOut(_ number: UInt64, now: Moment, _ effects: inout [Effect]) {
        guard let fetch = fetches[number], fetch.stage == .running else { return }
        let failure = Failure(.fetchFailed, "\(fetch.address.host) didn’t send the feed in time.")
        effects.append(.perform(.cancel(number)))
        fetched(number, .failed(failure, retryAfter: nil), now: now, &effects)
    }

    /// Handles the end of a fetch. One that isn’t running any more is ignored.
    mutating func fetched(_ number: UInt64, _ outcome: FetchOutcome, now: Moment, _ effects: inout [Effect]) {
        guard let fetch = fetches.stopped(number) else { return }
        effects.append(.timer(.slow(number), at: nil))
        effects.append(.timer(.limit(number), at: nil))
        if let next = secretsToSave(fetch, outcome) {
            save(next, &effects)
            fetchesAwaitingSave[lastSave] = (number, outcome)
        } else {
            conclude(fetch, outcome, now: now, &effects)
        }
        startFetches(now: now, &effects)
        scheduleNext(now: now, &effects)
    }

    /// Handles the outcome of a fetch after its user and password are durable.
    mutating func conclude(_ fetch: Fetch, _ outcome: FetchOutcome, now: Moment, _ effects: inout [Effect]) {
        switch fetch.key {
        case .check: checked(fetch, outcome, &effects)
        case .new: fetchedNew(fetch, outcome, now: now, &effects)
        case .podcast(let id): fetchedKnown(fetch, id, outcome, now: now, &effects)
        case .signIn(let id, _): signedIn(fetch, id, outcome, &effects)
        case .move(let id, _): fetchedMoved(fetch, id, outcome, now: now, &effects)
        }
    }

    private mutating func checked(_ fetch: Fetch, _ outcome: FetchOutcome, _ effects: inout [Effect]) {
        fetches.remove(fetch.number)
        var result = WireFeedResult()
        switch outcome {
        case .failed(let failure, _): result = failed("", failure)
        case .unchanged: result = failed("", Failure(.fetchFailed, "The server didn’t send a feed."))
        case .feed(let feed):
            var podcast = WirePodcast.with { $0.id = feed.podcast.text }
            podcast.describe(feed.channel, at: feed.address)
            result = self.result(.checked, "", podcast)
            result.report = WireFeedReport(feed.report)
            result.newEpisodes = result.report.episodes
            result.warnings = feed.report.warnings.map(\.description) + Self.warnings(about: fetch)
        }
        for waiter in fetch.waiters {
            result.url = waiter.name
            answer(waiter, result, &effects)
        }
    }

    private mutating func fetchedNew(
        _ fetch: Fetch, _ outcome: FetchOutcome, now: Moment, _ effects: inout [Effect]
    ) {
        switch outcome {
        case .unchanged:
            fail(fetch, Failure(.fetchFailed, "\(fetch.address.host) didn’t send a feed."), &effects)
        case .failed(let failure, let retryAfter):
            fetches.remove(fetch.number)
            // A fetch with another password may have succeeded in the meantime.
            guard !isSubscribed(fetch.address) else { return fail(fetch, failure, &effects) }
            keep(fetch, failure, retryAfter: retryAfter, now: now, &effects)
        case .feed(let feed):
            // The podcast at the target of a redirect may be known.
            guard
                let (id, there) = library.current.podcast(at: feed.address)
                    ?? library.current[feed.podcast].map({ (feed.podcast, $0) })
            else { return beginMerge(fetch, feed, now: now, &effects) }
            fetches.remove(fetch.number)
            for waiter in fetch.waiters {
                if there.podcast.subscribed {
                    answer(waiter, result(.alreadyThere, waiter.name, there.podcast), &effects)
                } else {
                    fetches.add(.podcast(id), feed.address, waiter)
                }
            }
        }
    }

    /// Whether a podcast whose feed is, or was, at an address is subscribed.
    func isSubscribed(_ address: WebAddress) -> Bool {
        library.current.podcast(at: address)?.1.podcast.subscribed == true
    }

    private mutating func fetchedKnown(
        _ fetch: Fetch, _ id: PodcastID, _ outcome: FetchOutcome, now: Moment, _ effects: inout [Effect]
    ) {
        guard let known = library.current[id],
            known.podcast.subscribed || fetch.waiters.contains(where: \.isSubscribing)
        else { return fail(fetch, .unsubscribedMeanwhile, &effects) }
        guard !isOutdated(fetch) else { return fetchAgain(fetch, id, &effects) }
        var podcast = known.podcast
        switch outcome {
        case .feed(let feed):
            if known.podcast.isUnread, known.seen.count == 0,
                let (other, _) = library.current.podcast(at: feed.address), other != id
            {
                return replace(id, by: other, fetch, now: now, &effects)
            }
            beginMerge(fetch, feed, now: now, &effects)
        case .failed(let failure, _) where fetch.waiters.contains { $0.operation == .add(dropsFailing: true) }:
            drop(fetch, id, failure, &effects)
        case .failed(let failure, let retryAfter):
            fetches.remove(fetch.number)
            guard known.podcast.subscribed else {
                return keep(fetch, failure, retryAfter: retryAfter, now: now, &effects)
            }
            podcast.fail(failure)
            podcast.nextRefresh = next(podcast, retryAfter, now)
            let results = fetch.waiters.map { ($0, failed($0.name, failure, podcast)) }
            update(id, podcast, results: results, &effects)
        case .unchanged(let movedTo):
            fetches.remove(fetch.number)
            podcast.succeed(at: now.wall)
            if let movedTo { move(id, &podcast, to: movedTo.withoutCredentials) }
            podcast.nextRefresh = next(podcast, nil, now)
            if fetch.isInBackground, podcast.differsInTimesOnly(from: known.podcast) {
                storeLater(id, Subscription(podcast: podcast, seen: known.seen), now: now, &effects)
                for waiter in fetch.waiters {
                    answer(waiter, result(waiter.isAdding ? .added : .unchanged, waiter.name, podcast), &effects)
                }
                return
            }
            let results = fetch.waiters.map { ($0, result($0.isAdding ? .added : .unchanged, $0.name, podcast)) }
            update(id, podcast, results: results, &effects)
        }
    }

    /// Whether the address of a podcast was changed while its feed was fetched from the old one.
    func isOutdated(_ fetch: Fetch) -> Bool {
        guard case .podcast(let id) = fetch.key, !fetch.waiters.contains(where: \.isSubscribing),
            let address = library.current[id].flatMap({ WebAddress($0.podcast.url) })
        else { return false }
        return address.text != fetch.address.text
    }

    /// Replaces an outdated fetch by one from the present address.
    mutating func fetchAgain(_ fetch: Fetch, _ id: PodcastID, _ effects: inout [Effect]) {
        fetches.remove(fetch.number)
        guard let address = library.current[id].flatMap({ WebAddress($0.podcast.url) }) else { return }
        for waiter in fetch.waiters { fetches.add(.podcast(id), address, waiter) }
        if fetch.waiters.isEmpty { fetches.add(.podcast(id), address, nil) }
    }

    private mutating func next(_ podcast: WirePodcast, _ retryAfter: Duration?, _ now: Moment) -> Int64 {
        schedule.next(after: now.wall, failures: podcast.failures, retryAfter: retryAfter).milliseconds
    }

    /// Stores a refresh without waiters that has changed only times and validators later, with those of other podcasts.
    mutating func storeLater(
        _ id: PodcastID, _ subscription: Subscription, now: Moment, _ effects: inout [Effect]
    ) {
        library.amend { $0[id] = subscription }
        guard unstored.insert(id).inserted, unstored.count == 1 else { return }
        effects.append(.timer(.storeUnchanged, at: now.monotonic.advanced(by: Self.storingInterval)))
    }

    /// Stores the outcomes of unchanged refreshes in one commit.
    mutating func storeUnchanged(_ effects: inout [Effect]) {
        let changed = unstored.sorted().compactMap { library.current[$0]?.podcast }
        unstored = []
        guard !changed.isEmpty else { return }
        commit(changed.map(Self.change(storing:)), changed.map(Self.publication), &effects)
    }

    /// Commits a podcast without its episodes, and answers waiters when it is durable.
    private mutating func update(
        _ id: PodcastID, _ podcast: WirePodcast, results: [(waiter: Waiter, result: WireFeedResult)] = [],
        _ effects: inout [Effect]
    ) {
        unstored.remove(id)
        commit(
            [Self.change(storing: podcast)], publications(podcast), for: Purpose(results: results, podcast: id),
            &effects
        ) { $0[id]?.podcast = podcast }
    }

    /// Subscribes to a feed whose fetch failed, if a client requested that; otherwise fails the fetch.
    private mutating func keep(
        _ fetch: Fetch, _ failure: Failure, retryAfter: Duration?, now: Moment, _ effects: inout [Effect]
    ) {
        guard fetch.waiters.contains(where: \.keepsFailing) else { return fail(fetch, failure, &effects) }
        let id = library.current.podcast(at: fetch.address)?.0 ?? .feed(at: fetch.address)
        var subscription = library.current[id] ?? Subscription(podcast: WirePodcast())
        var podcast = subscription.podcast
        podcast.id = id.text
        if podcast.url.isEmpty { podcast.url = fetch.address.text }
        if podcast.title.isEmpty { podcast.title = fetch.address.text }
        podcast.subscribe(at: now.wall)
        podcast.fail(failure)
        podcast.nextRefresh = next(podcast, retryAfter, now)
        subscription.podcast = podcast
        let stored = subscription
        let results = fetch.waiters.map { ($0, failed($0.name, failure, podcast, isKept: $0.keepsFailing)) }
        commit(
            [Self.change(storing: podcast)], [Self.publication(podcast)],
            for: Purpose(results: results, podcast: id), &effects
        ) { $0[id] = stored }
    }

    /// Ends a fetch that has failed.
    mutating func fail(_ fetch: Fetch, _ failure: Failure, _ effects: inout [Effect]) {
        fetches.remove(fetch.number)
        for waiter in fetch.waiters { answer(waiter, failed(waiter.name, failure), &effects) }
    }

    /// Changes the address of a feed that has moved permanently, unless another podcast has the new one.
    func move(_ id: PodcastID, _ podcast: inout WirePodcast, to address: WebAddress) {
        guard address.text != podcast.url else { return }
        if let (other, _) = library.current.podcast(at: address), other != id { return }
        let old = podcast.url
        podcast.url = address.text
        if let old = WebAddress(old) { remember(old, of: &podcast) }
    }

    /// Stores another address of a podcast’s feed: an earlier one, or one that was used to subscribe and
    /// redirects.
    func remember(_ address: WebAddress, of podcast: inout WirePodcast) {
        let url = podcast.url
        guard let present = WebAddress(url), present.identity != address.identity else { return }
        let text = address.textWithoutCredentials
        podcast.previousUrls.removeAll { $0 == text || $0 == url }
        podcast.previousUrls.append(text)
        if podcast.previousUrls.count > 20 { podcast.previousUrls.removeFirst() }
    }
}

extension Failure {
    static let unsubscribedMeanwhile = Failure(.notFound, "The podcast was unsubscribed in the meantime.")
    /// The failure of a feed that a job removed again before the service restarted.
    static let unreadFeedRemoved = Failure(.fetchFailed, "The feed couldn’t be read, and wasn’t subscribed to.")
}

extension WireFeedReport {
    fileprivate init(_ report: FeedReport) {
        self.init()
        episodes = UInt32(clamping: report.episodes)
        oldest = report.oldest?.milliseconds ?? 0
        newest = report.newest?.milliseconds ?? 0
        withGuid = UInt32(clamping: report.withGUID)
        withDuration = UInt32(clamping: report.withDuration)
        withChapters = UInt32(clamping: report.withChapters)
    }
}

extension WirePodcast {
    /// Copies the feed’s description of the podcast.
    mutating func describe(_ channel: FeedChannel, at address: WebAddress) {
        if !channel.title.isEmpty { setFeedTitle(channel.title) } else if title.isEmpty { title = address.text }
        author = channel.author
        description_p = Self.beginning(of: channel.description, bytes: 4_000)
        imageURL = channel.imageURL
        link = channel.link
        language = channel.language
        if url.isEmpty { url = address.text }
    }

    /// Returns the longest prefix of a text within `limit` bytes, ending between two characters.
    private static func beginning(of text: String, bytes limit: Int) -> String {
        guard text.utf8.count > limit else { return text }
        var end = text.utf8.index(text.startIndex, offsetBy: limit)
        while String.Index(end, within: text) == nil { end = text.utf8.index(before: end) }
        return String(text[..<end])
    }

    /// The short form that is retained on the stream for every podcast.
    var summary: WirePodcast {
        var summary = self
        summary.description_p = Self.beginning(of: description_p, bytes: 300)
        summary.etag = ""
        summary.lastModified = ""
        summary.previousUrls = []
        return summary
    }

    /// Whether only times and validators differ.
    func differsInTimesOnly(from other: WirePodcast) -> Bool {
        var same = self
        (same.lastRefresh, same.nextRefresh) = (other.lastRefresh, other.nextRefresh)
        (same.etag, same.lastModified) = (other.etag, other.lastModified)
        return same == other
    }

    mutating func succeed(at now: Timestamp) {
        lastRefresh = now.milliseconds
        errorCode = ""
        errorMessage = ""
        failures = 0
    }

    mutating func fail(_ failure: Failure) {
        errorCode = failure.code
        errorMessage = failure.message
        failures += failures < .max ? 1 : 0
    }
}
