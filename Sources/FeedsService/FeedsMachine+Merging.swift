import BusKit
import FeedParsing
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// A fetched feed that is being merged into the library.
struct Merge: Sendable {
    var feed: FetchedFeed
    /// The stored episodes by the queried aliases.
    var found: [String: EpisodeID] = [:]
    /// The IDs of its episodes that belong to other podcasts.
    var taken: Set<String> = []
    /// The number of queries without a reply.
    var openQuestions = 0
}

extension FeedsMachine {
    /// Queries persistence whether episodes that look new are known under another name, and whether another podcast has
    /// one with the ID of an episode to be stored; then stores.
    mutating func beginMerge(_ fetch: Fetch, _ feed: FetchedFeed, now: Moment, _ effects: inout [Effect]) {
        let known = library.current[feed.podcast]?.seen.entries ?? [:]
        if known.isEmpty, fetch.seenCount > 0 {
            return fail(fetch, Failure(.notFound, "The podcast was forgotten in the meantime."), &effects)
        }
        let unknown = known.isEmpty ? [] : feed.changed.filter { SeenEpisodes.Key($0.id).flatMap { known[$0] } == nil }
        var queries: [WireAliasQuery] = [WireAliasQuery()]
        var size = 0
        for id in feed.changed.map(\.id.text) {
            if queries[queries.count - 1].ids.count == 5_000 { queries.append(WireAliasQuery()) }
            queries[queries.count - 1].ids.append(id)
        }
        for alias in unknown.flatMap(\.aliases) {
            if size > 128 << 10 || queries[queries.count - 1].aliases.count == RequestSizes.episodes {
                queries.append(WireAliasQuery())
                size = 0
            }
            queries[queries.count - 1].aliases.append(alias)
            size += alias.utf8.count + 8
        }
        queries.removeAll { $0.ids.isEmpty && $0.aliases.isEmpty }
        merges[fetch.number] = Merge(feed: feed, openQuestions: queries.count)
        for var query in queries {
            query.podcast = feed.podcast.text
            effects.append(Self.ask(query, for: fetch.number))
        }
        if queries.isEmpty { finishMerge(fetch.number, now: now, &effects) }
    }

    private static func ask(_ query: WireAliasQuery, for fetch: UInt64) -> Effect {
        .ask(.aliases(fetch: fetch, query), limit: .seconds(30)) { $0.aliases = query }
    }

    mutating func aliasesAnswered(
        _ number: UInt64, _ query: WireAliasQuery, _ result: Result<WirePersistenceReply, Failure>, now: Moment,
        _ effects: inout [Effect]
    ) {
        guard var merge = merges[number] else { return }
        let matches: WireAliasMatches
        switch result {
        case .success(let reply): matches = reply.aliases
        case .failure(let failure): return cancelMerge(number, failure, now: now, &effects)
        }
        for match in matches.aliases { merge.found[match.alias] = EpisodeID(match.episode) }
        merge.taken.formUnion(matches.taken)
        if matches.next.isEmpty || matches.next == query.after {
            merge.openQuestions -= 1
        } else {
            var query = query
            query.after = matches.next
            effects.append(Self.ask(query, for: number))
        }
        merges[number] = merge
        if merge.openQuestions == 0 { finishMerge(number, now: now, &effects) }
    }

    private mutating func cancelMerge(_ number: UInt64, _ failure: Failure, now: Moment, _ effects: inout [Effect]) {
        guard let merge = merges.removeValue(forKey: number), let fetch = fetches[number] else { return }
        notBefore[merge.feed.podcast] = now.monotonic.advanced(by: Self.saveBackoff.wait())
        fail(fetch, failure, &effects)
        scheduleNext(now: now, &effects)
    }

    /// Stores the podcast and its new and changed episodes in one transaction: completely or not at all.
    private mutating func finishMerge(_ number: UInt64, now: Moment, _ effects: inout [Effect]) {
        guard let merge = merges.removeValue(forKey: number), let fetch = fetches[number] else { return }
        fetches.remove(number)
        let feed = merge.feed
        let isSubscribing = fetch.waiters.contains(where: \.isSubscribing)
        let old = library.current[feed.podcast]
        guard isSubscribing || old?.podcast.subscribed == true else {
            return fail(fetch, .unsubscribedMeanwhile, &effects)
        }
        guard !isOutdated(fetch) else {
            fetchAgain(fetch, feed.podcast, &effects)
            return startFetches(now: now, &effects)
        }
        let isMoving = fetch.waiters.contains { $0.operation == .move }
        var subscription = old ?? Subscription(podcast: WirePodcast())
        subscription.podcast.id = feed.podcast.text
        subscription.podcast.describe(feed.channel, at: feed.address)
        if isSubscribing, !subscription.podcast.subscribed { subscription.podcast.subscribe(at: now.wall) }
        var episodes = EpisodeChanges(merge, old: subscription.seen, now: now.wall)
        episodes.addAll()
        // The episodes of the first successful fetch, and of another feed, are a back catalogue.
        if let old, old.podcast.subscribed, !old.podcast.isUnread, !isMoving { episodes.addToInbox() }
        effects += episodes.refused.map { id in
            .log(
                .warning, "the feed \(feed.address.text) has an episode with the ID \(id) of another podcast’s episode")
        }
        subscription.seen = SeenEpisodes(episodes.seen)
        subscription.podcast.episodeCount = UInt32(clamping: subscription.seen.count)
        subscription.podcast.succeed(at: now.wall)
        subscription.podcast.etag = feed.etag
        subscription.podcast.lastModified = feed.lastModified
        move(feed.podcast, &subscription.podcast, to: feed.address)
        if isSubscribing || isMoving { remember(fetch.address, of: &subscription.podcast) }
        subscription.podcast.nextRefresh = schedule.next(after: now.wall, failures: 0).milliseconds
        if let old, fetch.isInBackground, episodes.changes.isEmpty, subscription.seen == old.seen,
            subscription.podcast.differsInTimesOnly(from: old.podcast)
        {
            let results = lines(fetch, feed, subscription.podcast, episodes)
            storeLater(feed.podcast, subscription, now: now, &effects)
            for (waiter, result) in results { answer(waiter, result, &effects) }
        } else {
            unstored.remove(feed.podcast)
            commit(episodes, subscription, fetch, feed, &effects)
        }
        scheduleNext(now: now, &effects)
    }

    private mutating func commit(
        _ episodes: EpisodeChanges, _ subscription: Subscription, _ fetch: Fetch, _ feed: FetchedFeed,
        _ effects: inout [Effect]
    ) {
        let id = feed.podcast
        let isSeenSame = library.current[id]?.seen == subscription.seen
        let podcast = isSeenSame ? [Self.change(storing: subscription.podcast)] : Self.changes(storing: subscription)
        let results = lines(fetch, feed, subscription.podcast, episodes)
        commit(
            podcast + episodes.changes, publications(subscription.podcast) + episodes.publications,
            for: Purpose(results: results, podcast: id), &effects
        ) { $0[id] = subscription }
    }

    private func lines(
        _ fetch: Fetch, _ feed: FetchedFeed, _ podcast: WirePodcast, _ episodes: EpisodeChanges
    ) -> [(waiter: Waiter, result: WireFeedResult)] {
        var isAdded = false
        return fetch.waiters.map { waiter in
            var kind = WireFeedResult.Kind.unchanged
            if waiter.isSubscribing {
                kind = isAdded ? .alreadyThere : .added
                isAdded = true
            } else if waiter.isAdding {
                kind = .added
            } else if episodes.hasChanges || waiter.operation == .move {
                kind = .updated
            }
            var line = result(kind, waiter.name, podcast)
            line.newEpisodes = UInt32(clamping: episodes.added.count)
            line.warnings = feed.report.warnings.prefix(20).map { String($0.description.prefix(300)) }
            line.warnings += Self.warnings(about: fetch)
            if !episodes.refused.isEmpty {
                let warning = FeedWarning(
                    code: "foreignEpisode", message: "An episode was left out: another podcast has one with its ID",
                    count: episodes.refused.count)
                line.warnings.append(warning.description)
            }
            return (waiter, line)
        }
    }
}

/// The changes of a podcast’s episodes by a merge.
struct EpisodeChanges {
    private let merge: Merge
    private let now: Timestamp
    private(set) var changes: [WireChange] = []
    /// The known episodes of the podcast after the merge.
    private(set) var seen: [SeenEpisodes.Key: SeenEpisodes.Entry]
    private(set) var added: [String] = []
    private(set) var updated: [String] = []
    /// The keys of the feed’s episodes that are new, changed, or known under another ID.
    private var stored: Set<SeenEpisodes.Key> = []
    /// The IDs of episodes that have vanished from the feed, and of those that have returned.
    private var gone: [String] = []
    private var returned: [String] = []
    /// The IDs of episodes that are omitted because other podcasts’ episodes have them.
    private(set) var refused: [String] = []

    var hasChanges: Bool { !added.isEmpty || !updated.isEmpty }

    init(_ merge: Merge, old: SeenEpisodes, now: Timestamp) {
        self.merge = merge
        self.now = now
        seen = old.entries
    }

    mutating func addAll() {
        var taken: Set<EpisodeID> = []
        for episode in merge.feed.changed {
            let id = identify(episode, taken)
            guard !merge.taken.contains(id.text) else {
                refused.append(id.text)
                if let key = SeenEpisodes.Key(id) { seen[key] = nil }
                continue
            }
            guard let key = SeenEpisodes.Key(id), taken.insert(id).inserted else { continue }
            stored.insert(key)
            if seen[key]?.fingerprint == SeenEpisodes.goneFingerprint { returned.append(id.text) }
            add(episode, id, key)
        }
        markGone()
        // Episodes that have vanished from the feed are kept; if there are too many, their fingerprints are dropped.
        if seen.count > 25_000 { seen = seen.filter { merge.feed.present.contains($0.key) } }
    }

    /// Marks the episodes that the feed no longer contains, and those that have returned.
    private mutating func markGone() {
        // An empty feed is an error of its server.
        if merge.feed.isComplete, !merge.feed.present.isEmpty {
            for (key, entry) in seen
            where entry.fingerprint != SeenEpisodes.goneFingerprint && !merge.feed.present.contains(key)
                && !stored.contains(key)
            {
                seen[key]?.fingerprint = SeenEpisodes.goneFingerprint
                if let id = key.id { gone.append(id.text) }
            }
        }
        gone.sort()
        flag(gone) { $0.set = WireEpisode.goneFlag }
        flag(returned) { $0.clear = WireEpisode.goneFlag }
        updated += gone
    }

    /// Changes flags of episodes.
    private mutating func flag(_ episodes: [String], _ fill: (inout WireSetFlags) -> Void) {
        guard !episodes.isEmpty else { return }
        changes.append(
            .with {
                $0.setFlags.episodes = episodes
                fill(&$0.setFlags)
            })
    }

    /// Marks the added episodes as new.
    mutating func addToInbox() { flag(added) { $0.set = WireEpisode.newFlag } }

    /// Returns the stored ID of an episode that is known under one of its aliases, if no other episode of the feed has
    /// that ID; otherwise its own ID.
    private func identify(_ episode: FetchedEpisode, _ taken: Set<EpisodeID>) -> EpisodeID {
        if let key = SeenEpisodes.Key(episode.id), seen[key] != nil { return episode.id }
        for alias in episode.aliases {
            guard let id = merge.found[alias], !taken.contains(id), let key = SeenEpisodes.Key(id),
                !merge.feed.present.contains(key)
            else { continue }
            return id
        }
        return episode.id
    }

    private mutating func add(_ episode: FetchedEpisode, _ id: EpisodeID, _ key: SeenEpisodes.Key) {
        let old = seen[key]
        let isSame = old?.fingerprint == episode.fingerprint
        let aliases = episode.aliases.filter { !(isSame && merge.found[$0] == id) }
        guard !isSame || !aliases.isEmpty else { return }
        let firstSeen = old?.firstSeen ?? UInt32(clamping: now.milliseconds / 1_000)
        if !isSame {
            var stored = episode.episode
            stored.id = id.text
            stored.podcastID = merge.feed.podcast.text
            stored.firstSeen = Int64(firstSeen) * 1_000
            changes.append(.with { $0.putEpisode = stored })
        }
        for alias in aliases {
            changes.append(
                .with {
                    $0.putAlias.podcast = merge.feed.podcast.text
                    $0.putAlias.alias = alias
                    $0.putAlias.episode = id.text
                })
        }
        seen[key] = SeenEpisodes.Entry(fingerprint: episode.fingerprint, firstSeen: firstSeen)
        guard !isSame else { return }
        if old == nil, !merge.found.values.contains(id) {
            added.append(id.text)
        } else {
            updated.append(id.text)
        }
    }

    var publications: [Publication] {
        WireEpisodesChanged.events(of: merge.feed.podcast, max(added.count, updated.count)) { event, range in
            event.added = Array(added[range.clamped(to: added.indices)])
            event.updated = Array(updated[range.clamped(to: updated.indices)])
        }
    }
}

extension WireEpisodesChanged {
    /// The maximum number of IDs of a kind in one event, which must fit into a message.
    private static let idLimit = 10_000

    /// Creates as many events as are needed for `count` episodes; `fill` gets the range of an event.
    static func events(
        of podcast: PodcastID, _ count: Int, _ fill: (inout WireEpisodesChanged, Range<Int>) -> Void
    ) -> [Publication] {
        stride(from: 0, to: count, by: idLimit).map { start in
            var event = WireEpisodesChanged.with { $0.podcast = podcast.text }
            fill(&event, start..<min(count, start + idLimit))
            return Publication(.event, .episodes(of: podcast.text), event.wireBytes)
        }
    }
}
