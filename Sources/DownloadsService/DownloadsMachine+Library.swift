package import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    /// The purpose of a query to the persistence service.
    package enum Query: Sendable {
        case add(Command, [String])
        /// The titles of episodes without a download, for the refusal of a command about them.
        case titles(Command, [String])
        /// The explanation of an episode that was never downloaded.
        case why(Command)
        case newest(podcast: String)
        case podcasts
        /// The states and addresses of episodes that have a download.
        case refresh
    }

    func lookUpPodcasts(after cursor: String = "", _ effects: inout Effects) {
        let question = Effect.ask(.podcasts) {
            $0.podcasts.limit = UInt32(RequestSizes.episodes)
            $0.podcasts.after = cursor
        }
        effects.append(question)
    }

    /// Queries the newest episodes of a podcast if its rule downloads any.
    func lookUpNewest(of podcast: String, _ effects: inout Effects) {
        let count = autoDownload.wantedCount(of: podcast, store.current.settings)
        guard count > 0 else { return }
        let question = Effect.ask(.newest(podcast: podcast)) {
            $0.episodes.podcast = podcast
            $0.episodes.limit = min(count, UInt32(RequestSizes.episodes))
        }
        effects.append(question)
    }

    func refresh(_ effects: inout Effects) { refresh(store.current.downloads.keys.sorted(), &effects) }

    /// Queries whether episodes have been played, and the current addresses of their audio.
    func refresh(_ episodes: [String], _ effects: inout Effects) {
        for part in episodes.parts(of: RequestSizes.episodes) { lookUp(part, .refresh, &effects) }
    }

    /// - Parameter episodes: at most `RequestSizes.episodes`.
    func lookUp(_ episodes: [String], _ query: Query, _ effects: inout Effects) {
        let question = Effect.ask(query) {
            $0.episodesByID.ids = episodes
            $0.episodesByID.brief = true
        }
        effects.append(question)
    }

    // MARK: Answers

    mutating func answered(
        _ query: Query, _ result: Result<WirePersistenceReply, Failure>, now: Moment, _ effects: inout Effects
    ) {
        switch result {
        case .success(let reply): answered(query, reply, now: now, &effects)
        case .failure(let failure): failed(query, failure, &effects)
        }
    }

    private mutating func answered(
        _ query: Query, _ reply: WirePersistenceReply, now: Moment, _ effects: inout Effects
    ) {
        let episodes = reply.episodes.episodes
        switch query {
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
            var change = change(now)
            autoDownload.add(episodes, of: podcast, &change)
            commit(change, &effects)
        case .podcasts: found(reply.podcasts.podcasts, next: reply.podcasts.next, &effects)
        case .refresh: refreshed(episodes, now: now, &effects)
        }
    }

    private func failed(_ query: Query, _ failure: Failure, _ effects: inout Effects) {
        switch query {
        case .add(let command, _), .titles(let command, _): effects.append(.reply(command.id, .failure(failure)))
        case .why(let command): Self.explain([Self.neverRequested(nil)], to: command, &effects)
        case .newest, .podcasts, .refresh:
            effects.append(.log(.warning, "Episodes couldn’t be looked up: \(failure)"))
        }
    }

    /// The failure of a command about episodes of which the first has no download.
    private static func notDownloaded(_ episodes: [String], _ found: [WireEpisode]) -> Failure {
        let first = episodes.first ?? ""
        guard let episode = found.first(where: { $0.id == first }) else {
            return Failure(.notFound, "There is no episode “\(first)”; nothing was done.")
        }
        return Failure(.notFound, "“\(episode.title)” isn’t downloaded and isn’t waiting to be; nothing was done.")
    }

    private mutating func found(_ podcasts: [WirePodcast], next: String, _ effects: inout Effects) {
        autoDownload.update(from: podcasts)
        for podcast in podcasts { lookUpNewest(of: podcast.id, &effects) }
        if !next.isEmpty { lookUpPodcasts(after: next, &effects) }
    }

    /// Records whether episodes have been played, completes older records without the date, and moves downloads to the
    /// current addresses: a feed may have corrected an address that failed.
    private mutating func refreshed(_ episodes: [WireEpisode], now: Moment, _ effects: inout Effects) {
        rules.update(from: episodes)
        var change = change(now)
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
            // The event that the previous episode was played to its end may have been missed.
            if store.current.downloads[before] != nil { refresh([before], &effects) }
            rules.applySoon(now: now, &effects)
        case ("playback"?, "states"?):
            guard let news = try? WireEpisodeStatesChanged(wireBytes: event.payload) else { return }
            refresh(news.episodes.filter { store.current.downloads[$0] != nil }, &effects)
        case ("playback"?, "episode"?):
            guard let state = try? WireEpisodeState(wireBytes: event.payload) else { return }
            if rules.episodeChanged(state) { rules.applySoon(now: now, &effects) }
        case ("playback"?, "alert"?):
            // The player couldn’t use a file, which may be missing.
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
        case .delete: autoDownload.podcastRemoved(id)
        default: return
        }
    }
}
