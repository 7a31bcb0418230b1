import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What the library has, and what it has no more.

extension DownloadsMachine {
    /// Asks which podcasts there are: for what the rules want of them, and for those that are there no more.
    mutating func askPodcasts() -> Effect { askPodcasts(after: "", beside: []) }

    private mutating func askPodcasts(after cursor: String, beside counted: Set<String>) -> Effect {
        call(.podcasts(counted)) {
            // What is merely not subscribed to any more keeps what it has.
            $0.podcasts.includeUnsubscribed = true
            $0.podcasts.limit = UInt32(RequestSizes.episodes)
            $0.podcasts.after = cursor
        }
    }

    /// Follows the rules of podcasts that are subscribed to; once all were counted, what belongs to others is given up.
    private mutating func counted(
        _ podcasts: [WirePodcast], beside counted: Set<String>, next: String, now: Moment
    ) -> [Effect] {
        // What the stream has shown is newer.
        let seen = Set(episodeCounts.keys)
        episodeCounts.merge(podcasts.map { ($0.id, $0.episodeCount) }) { seen, _ in seen }
        subscribed.formUnion(podcasts.filter { $0.subscribed && !seen.contains($0.id) }.map(\.id))
        let effects = podcasts.filter(\.subscribed).flatMap { askNewest(of: $0.id) }
        let there = counted.union(podcasts.map(\.id))
        guard next.isEmpty else { return effects + [askPodcasts(after: next, beside: there)] }
        let named = Set(book.current.downloads.values.map(\.podcastID)).union(book.current.settings.podcasts)
        let others = named.subtracting(there).subtracting(seen).subtracting([""])
        return effects + askWhetherGone(others.sorted()[...])
    }

    /// Asks for podcasts one by one: pages miss one that changes its place between them, and the stream loses one that
    /// feeds could not read.
    private mutating func askWhetherGone(_ podcasts: ArraySlice<String>) -> [Effect] {
        guard let podcast = podcasts.first else { return [] }
        return [
            call(.whetherGone(podcast, others: Array(podcasts.dropFirst()))) { $0.findPodcast.text = podcast }
        ]
    }

    /// Only what the library does not have is gone.
    private mutating func foundOut(
        _ podcast: String, _ failure: Failure?, others: [String], now: Moment
    ) -> [Effect] {
        let isGone = failure?.known == .notFound && episodeCounts[podcast] == nil
        return (isGone ? forget(podcast, now: now) : []) + askWhetherGone(others[...])
    }

    /// Asks for the newest episodes of a podcast, if it is subscribed to and has a rule.
    mutating func askNewest(of podcast: String) -> [Effect] {
        let count = UInt32(book.current.settings.number(.autoDownload, podcast: podcast))
        guard count > 0, subscribed.contains(podcast) else { return [] }
        return [
            call(.newest(podcast: podcast)) {
                $0.episodes.podcast = podcast
                $0.episodes.limit = min(count, UInt32(RequestSizes.episodes))
            }
        ]
    }

    /// Asks what has become of all episodes here, as while this service was not there.
    mutating func askAgain() -> [Effect] { askAgain(book.current.downloads.keys.sorted()) }

    /// Asks whether episodes have been played, and where they are now.
    mutating func askAgain(_ ids: [String]) -> [Effect] {
        ids.parts(of: RequestSizes.episodes).map { call(.again, episodes: $0) }
    }

    mutating func answered(_ call: CallID, _ result: Result<[UInt8], Failure>, now: Moment) -> [Effect] {
        guard let purpose = lookups.removeValue(forKey: call) else { return [] }
        let reply: WirePersistenceReply
        do {
            reply = try WirePersistenceReply(wireBytes: result.get())
        } catch {
            let failure = error as? Failure ?? Failure(.internalError, "The database’s answer cannot be read: \(error)")
            switch purpose {
            case .add(let command, _), .titles(let command, _): return [.reply(command.id, .failure(failure))]
            case .why(let command): return Self.explain([Self.neverWanted(nil)], to: command)
            case .whetherGone(let podcast, let others):
                return foundOut(podcast, failure, others: others, now: now)
            case .newest, .podcasts, .again:
                return [.log(.warning, "episodes could not be looked up: \(failure)")]
            }
        }
        let page = reply.episodes
        switch purpose {
        case .podcasts(let counted):
            return self.counted(reply.podcasts.podcasts, beside: counted, next: reply.podcasts.next, now: now)
        case .whetherGone(let podcast, let others): return foundOut(podcast, nil, others: others, now: now)
        case .add(let command, let episodes):
            do throws(Failure) {
                let found = Dictionary(page.episodes.map { ($0.id, $0) }) { first, _ in first }
                return try add(episodes, knowing: found, command, now: now)
            } catch {
                return [.reply(command.id, .failure(error))]
            }
        case .why(let command): return Self.explain([Self.neverWanted(page.episodes.first)], to: command)
        case .titles(let command, let episodes):
            return [.reply(command.id, .failure(Self.notWanted(episodes, page.episodes)))]
        case .newest(let podcast):
            return subscribed.contains(podcast) ? follow(podcast, page.episodes, now: now) : []
        case .again:
            for episode in page.episodes where episode.state.played {
                played[episode.id] = max(episode.state.completedAt, played[episode.id] ?? 0)
            }
            for episode in page.episodes where !episode.state.played {
                // What was heard of it meanwhile is newer than the answer.
                if let at = played[episode.id], at <= episode.state.updatedAt { played[episode.id] = nil }
            }
            return noteDates(of: page.episodes) + renew(page.episodes) + retainSoon(now: now)
        }
    }

    /// Completes downloads whose records were written before they held the date.
    private mutating func noteDates(of episodes: [WireEpisode]) -> [Effect] {
        var change = change
        for episode in episodes {
            guard var download = book.current.downloads[episode.id] else { continue }
            download.published = episode.published == 0 ? episode.firstSeen : episode.published
            change.put(download)
        }
        return commit(change)
    }

    /// What has not come yet is fetched from where it is now: its feed may have mended an address that failed.
    private mutating func renew(_ episodes: [WireEpisode]) -> [Effect] {
        var change = change
        for episode in episodes {
            guard var download = book.current.downloads[episode.id], download.url != episode.enclosureURL,
                [.queued, .paused, .failed].contains(download.state),
                let now = try? Self.download(of: episode, episode.id)
            else { continue }
            // Many an address is signed anew each time; behind it is the same file, or the server says otherwise. What came
            // from elsewhere is of another version.
            if download.url.prefix(while: { $0 != "?" }) != now.url.prefix(while: { $0 != "?" }) {
                (download.etag, download.lastModified, download.receivedBytes) = ("", "", 0)
                (download.totalBytes, download.path, download.note) = (0, "", "")
            }
            download.url = now.url
            download.contentType = now.contentType
            download.announcedBytes = now.announcedBytes
            change.put(download)
        }
        return commit(change)
    }

    // MARK: News

    /// New episodes, and others that may be elsewhere now.
    mutating func observeEpisodes(_ event: StreamEvent) -> [Effect] {
        guard let news = try? WireEpisodesChanged(wireBytes: event.payload) else { return [] }
        let waiting = news.updated.filter { ![nil, .downloaded].contains(book.current.downloads[$0]?.state) }
        return (news.added.isEmpty ? [] : askNewest(of: news.podcast)) + askAgain(waiting)
    }

    /// News of episodes can be missed, their number not.
    mutating func observePodcast(_ event: StreamEvent, now: Moment) -> [Effect] {
        let id = String(event.topic.parts.last ?? "")
        switch event.header.kind {
        case .put:
            guard let podcast = try? WirePodcast(wireBytes: event.payload) else { return [] }
            forgotten.remove(id)
            let before = episodeCounts.updateValue(podcast.episodeCount, forKey: id)
            guard podcast.subscribed else {
                subscribed.remove(id)
                return []
            }
            let isNew = subscribed.insert(id).inserted
            return isNew || before != podcast.episodeCount ? askNewest(of: id) : []
        case .delete:
            episodeCounts[id] = nil
            subscribed.remove(id)
            return askWhetherGone([id])
        default: return []
        }
    }

    // MARK: Podcasts that were forgotten

    /// What is on its way for it ends at once; whole files go as by rule.
    private mutating func forget(_ podcast: String, now: Moment) -> [Effect] {
        forgotten.insert(podcast)
        var change = change
        change.forgetSettings(of: podcast)
        for download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode })
        where podcast == download.podcastID && download.state != .downloaded {
            leave(download, "given up, as its podcast was forgotten", &change, now: now)
        }
        return commit(change) + retainSoon(now: now)
    }
}
