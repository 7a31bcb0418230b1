import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What the library has, and what others publish.

extension DownloadsMachine {
    /// The purpose of a question to persistence.
    enum Lookup: Sendable {
        case add(Command, [String])
        /// The titles of episodes that a command named and that are not here, for the sentence that refuses it.
        case titles(Command, [String])
        /// An episode that was never downloaded, for the sentence that explains it.
        case why(Command)
        /// The newest episodes of a podcast, for its rule.
        case newest(podcast: String)
        /// The podcasts, for the rules, and to find those that were forgotten.
        case podcasts
        /// Whether a podcast exists; others are verified after it.
        case existence(String, others: [String])
        /// The state of episodes that have a download.
        case refresh
    }

    // MARK: Asking

    /// Looks up all podcasts: for their rules, and to find those that were forgotten.
    mutating func lookUpPodcasts(after cursor: String = "", _ effects: inout Effects) {
        call(.podcasts, &effects) {
            // A podcast that is merely not subscribed to any more keeps its downloads.
            $0.podcasts.includeUnsubscribed = true
            $0.podcasts.limit = UInt32(RequestSizes.episodes)
            $0.podcasts.after = cursor
        }
    }

    /// Looks up the newest episodes of a podcast, if its rule wants any.
    mutating func lookUpNewest(of podcast: String, _ effects: inout Effects) {
        let count = autoDownload.wantedCount(of: podcast, store.current.settings)
        guard count > 0 else { return }
        call(.newest(podcast: podcast), &effects) {
            $0.episodes.podcast = podcast
            $0.episodes.limit = min(count, UInt32(RequestSizes.episodes))
        }
    }

    /// Looks up whether all episodes have been played, and where their audio is now.
    mutating func refresh(_ effects: inout Effects) { refresh(store.current.downloads.keys.sorted(), &effects) }

    /// Looks up whether episodes have been played, and where their audio is now.
    mutating func refresh(_ episodes: [String], _ effects: inout Effects) {
        for part in episodes.parts(of: RequestSizes.episodes) { lookUp(part, .refresh, &effects) }
    }

    /// Looks up at most `RequestSizes.episodes` episodes.
    mutating func lookUp(_ episodes: [String], _ purpose: Lookup, _ effects: inout Effects) {
        call(purpose, &effects) {
            $0.episodesByID.ids = episodes
            $0.episodesByID.brief = true
        }
    }

    /// Verifies podcasts one by one: pages miss one that moves between them, and the stream loses one that feeds could not
    /// read.
    private mutating func verifyPodcastsExist(_ podcasts: [String], _ effects: inout Effects) {
        guard let podcast = podcasts.first else { return }
        call(.existence(podcast, others: Array(podcasts.dropFirst())), &effects) { $0.findPodcast.text = podcast }
    }

    private mutating func call(
        _ purpose: Lookup, _ effects: inout Effects, _ fill: (inout WirePersistenceRequest) -> Void
    ) {
        lastLookup += 1
        let id = CallID("look up \(lastLookup)")
        lookups[id] = purpose
        var request = WirePersistenceRequest()
        fill(&request)
        effects.append(.call(Call(id: id, to: .persistence, payload: request.wireBytes)))
    }

    // MARK: Answers

    mutating func answered(_ call: CallID, _ result: Result<[UInt8], Failure>, now: Moment, _ effects: inout Effects) {
        guard let purpose = lookups.removeValue(forKey: call) else { return }
        do {
            answered(purpose, try WirePersistenceReply(wireBytes: result.get()), now: now, &effects)
        } catch {
            let failure = error as? Failure ?? Failure(.internalError, "The database’s answer cannot be read: \(error)")
            failed(purpose, failure, now: now, &effects)
        }
    }

    private mutating func answered(
        _ purpose: Lookup, _ reply: WirePersistenceReply, now: Moment, _ effects: inout Effects
    ) {
        let episodes = reply.episodes.episodes
        switch purpose {
        case .add(let command, let wanted):
            do throws(Failure) {
                let found = Dictionary(episodes.map { ($0.id, $0) }) { first, _ in first }
                try add(wanted, knowing: found, command, now: now, &effects)
            } catch {
                effects.append(.reply(command.id, .failure(error)))
            }
        case .titles(let command, let wanted):
            effects.append(.reply(command.id, .failure(Self.notDownloaded(wanted, episodes))))
        case .why(let command): Self.explain([Self.neverRequested(episodes.first)], to: command, &effects)
        case .newest(let podcast):
            var change = change
            autoDownload.add(episodes, of: podcast, &change, now: now)
            commit(change, &effects)
        case .podcasts: found(reply.podcasts.podcasts, next: reply.podcasts.next, &effects)
        case .existence(_, let others): verifyPodcastsExist(others, &effects)
        case .refresh: refreshed(episodes, now: now, &effects)
        }
    }

    private mutating func failed(_ purpose: Lookup, _ failure: Failure, now: Moment, _ effects: inout Effects) {
        switch purpose {
        case .add(let command, _), .titles(let command, _): effects.append(.reply(command.id, .failure(failure)))
        case .why(let command): Self.explain([Self.neverRequested(nil)], to: command, &effects)
        case .existence(let podcast, let others):
            if failure.known == .notFound, !autoDownload.isKnown(podcast) {
                var change = change
                rules.podcastForgotten(podcast, &change, now: now)
                commit(change, &effects)
                rules.applySoon(now: now, &effects)
            }
            verifyPodcastsExist(others, &effects)
        case .newest, .podcasts, .refresh:
            effects.append(.log(.warning, "episodes could not be looked up: \(failure)"))
        }
    }

    /// Why nothing can be done to the first of these episodes, which has no download.
    private static func notDownloaded(_ episodes: [String], _ found: [WireEpisode]) -> Failure {
        let first = episodes.first ?? ""
        guard let episode = found.first(where: { $0.id == first }) else {
            return Failure(.notFound, "There is no episode “\(first)”; nothing was done.")
        }
        return Failure(
            .notFound, "“\(episode.title)” is not downloaded, nor waits to be; nothing was done.")
    }

    /// Follows the rules of podcasts; once all pages have been read, verifies the others that downloads and settings name.
    private mutating func found(_ podcasts: [WirePodcast], next: String, _ effects: inout Effects) {
        autoDownload.update(from: podcasts)
        for podcast in podcasts where podcast.subscribed { lookUpNewest(of: podcast.id, &effects) }
        guard next.isEmpty else { return lookUpPodcasts(after: next, &effects) }
        let named = Set(store.current.downloads.values.map(\.podcastID)).union(store.current.settings.podcasts)
        let unknown = named.filter { !$0.isEmpty && !autoDownload.isKnown($0) }
        verifyPodcastsExist(unknown.sorted(), &effects)
    }

    /// Records whether episodes have been played, completes records that were written before they held the date, and
    /// fetches what has not been fetched yet from where it is now: its feed may have corrected a URL that failed.
    private mutating func refreshed(_ episodes: [WireEpisode], now: Moment, _ effects: inout Effects) {
        rules.update(from: episodes)
        var change = change
        for episode in episodes {
            guard var download = store.current.downloads[episode.id] else { continue }
            download.setDate(of: episode)
            if download.url != episode.enclosureURL, [.queued, .paused, .failed].contains(download.state),
                let moved = try? WireDownload(of: episode, episode.id)
            {
                download.move(to: moved)
            }
            change.put(download)
        }
        commit(change, &effects)
        rules.applySoon(now: now, &effects)
    }

    // MARK: Observing

    mutating func observe(_ event: StreamEvent, now: Moment, _ effects: inout Effects) {
        let parts = event.topic.parts.dropFirst()
        switch (parts.first, parts.dropFirst().first) {
        case ("feeds"?, "podcast"?): observePodcast(event, &effects)
        case ("feeds"?, _):
            guard let news = try? WireEpisodesChanged(wireBytes: event.payload) else { return }
            if !news.added.isEmpty { lookUpNewest(of: news.podcast, &effects) }
            let unfinished = news.updated.filter { ![nil, .downloaded].contains(store.current.downloads[$0]?.state) }
            refresh(unfinished, &effects)
        case ("playback"?, "state"?):
            guard event.header.kind == .put, let state = try? WirePlaybackState(wireBytes: event.payload),
                let before = rules.playerChanged(state)
            else { return }
            // The event that says that it was played to its end may have been missed.
            if store.current.downloads[before] != nil { refresh([before], &effects) }
            rules.applySoon(now: now, &effects)
        case ("playback"?, "states"?):
            guard let news = try? WireEpisodeStatesChanged(wireBytes: event.payload) else { return }
            refresh(news.episodes.filter { store.current.downloads[$0] != nil }, &effects)
        case ("playback"?, "episode"?):
            guard let state = try? WireEpisodeState(wireBytes: event.payload) else { return }
            if rules.episodeChanged(state) { rules.applySoon(now: now, &effects) }
        case ("playback"?, "alert"?):
            // The player couldn’t use a file: perhaps it is gone.
            guard event.header.kind == .put, let alert = try? WireAlert(wireBytes: event.payload),
                alert.code == "playsStream", store.current.downloads[alert.episode]?.state == .downloaded
            else { return }
            files.recheck(store.current, now: now, &effects)
        case ("queue"?, _):
            rules.queueChanged(event)
            rules.applySoon(now: now, &effects)
        default: return
        }
    }

    private mutating func observePodcast(_ event: StreamEvent, _ effects: inout Effects) {
        let id = String(event.topic.parts.last ?? "")
        switch event.header.kind {
        case .put:
            guard var podcast = try? WirePodcast(wireBytes: event.payload) else { return }
            podcast.id = id
            rules.podcastExists(id)
            if autoDownload.podcastChanged(podcast) { lookUpNewest(of: id, &effects) }
        case .delete:
            autoDownload.podcastRemoved(id)
            verifyPodcastsExist([id], &effects)
        default: return
        }
    }
}
