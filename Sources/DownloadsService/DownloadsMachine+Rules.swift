import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    // MARK: Fetching by rule

    /// Downloads the newest episodes that were neither played nor taken away before.
    mutating func follow(_ podcast: String, _ episodes: [WireEpisode], now: Moment) -> [Effect] {
        let count = Int(book.current.settings.number(.autoDownload, podcast: podcast))
        let limit = Int(book.current.settings.number(.keepDownloads, podcast: podcast))
        var change = change
        for episode in episodes.prefix(count)
        where !episode.state.played && book.current.downloads[episode.id] == nil && book.current.past[episode.id] == nil
        {
            guard var download = try? Self.download(of: episode, episode.id) else { continue }
            download.requestedAt = now.wall.milliseconds
            download.begin()
            download.automatic = true
            // What would not be kept isn’t fetched.
            guard limit == 0 || change.book.newerDownloads(than: download) < limit else { continue }
            let place = count == 1 ? "the newest" : "one of the newest \(count)"
            download.reason = "by a rule, as \(place) of “\(episode.podcastTitle)”"
            change.put(download)
        }
        return commit(change)
    }

    // MARK: Keeping by rule

    /// Files that a rule lets go, but never what is loaded or waits in a queue; nothing while one of those isn’t known.
    mutating func retain(now: Moment) -> [Effect] {
        // A put that goes on in deltas is not all that must be kept, and one that can’t be decoded may hold anything.
        let known = queues.values.compactMap(\.state)
        guard hasSeenPlayer, !known.isEmpty, known.count == queues.count, !known.contains(where: \.more) else {
            return []
        }
        let held = Set(known.flatMap { $0.entries.map(\.episode.id) } + [loaded])
        let settings = book.current.settings
        var change = change
        let files = book.current.downloads.values.filter { $0.state == .downloaded }
            .sorted { $0.retentionOrder > $1.retentionOrder }
        var kept: [String: Int] = [:]
        for download in files {
            let podcast = download.podcastID
            let limit = Int(settings.number(.keepDownloads, podcast: podcast))
            kept[podcast, default: 0] += 1
            guard !held.contains(download.episode) else { continue }
            if forgotten.contains(podcast) {
                leave(download, "deleted, as its podcast was forgotten", &change, now: now)
            } else if settings.isOn(.deletePlayed, podcast: podcast), isPlayedSinceItWasAskedFor(download) {
                leave(download, "deleted by a rule, as it has been played", &change, now: now)
            } else if limit > 0, kept[podcast, default: 0] > limit {
                leave(
                    download, "deleted by a rule, which keeps the newest \(limit) of “\(download.podcastTitle)”",
                    &change,
                    now: now)
            }
        }
        return commit(change)
    }

    /// Who asks for an episode that has been heard wants to hear it again.
    private func isPlayedSinceItWasAskedFor(_ download: WireDownload) -> Bool {
        played[download.episode].map { $0 > download.requestedAt } ?? false
    }

    // MARK: Observing

    mutating func observe(_ event: StreamEvent, now: Moment) -> [Effect] {
        switch (event.topic.parts.dropFirst().first, event.topic.parts.dropFirst(2).first) {
        case ("feeds"?, "podcast"?): return observePodcast(event, now: now)
        case ("feeds"?, _): return observeEpisodes(event)
        case ("playback"?, "state"?):
            guard event.header.kind == .put, let state = try? WirePlaybackState(wireBytes: event.payload) else {
                return []
            }
            hasSeenPlayer = true
            let before = loaded
            loaded = state.status == .idle ? "" : state.episode.id
            guard loaded != before else { return [] }
            // The news that it was played to its end may have been missed.
            let asked = book.current.downloads[before] == nil ? [] : askAgain([before])
            return asked + retainSoon(now: now)
        case ("playback"?, "states"?):
            guard let news = try? WireEpisodeStatesChanged(wireBytes: event.payload) else { return [] }
            return askAgain(news.episodes.filter { book.current.downloads[$0] != nil })
        case ("playback"?, "episode"?):
            guard let state = try? WireEpisodeState(wireBytes: event.payload) else { return [] }
            let playedAt = state.played ? state.completedAt : nil
            guard playedAt != played[state.episode] else { return [] }
            played[state.episode] = playedAt
            return state.played ? retainSoon(now: now) : []
        case ("playback"?, "alert"?): return observeAlert(event, now: now)
        case ("queue"?, _): return observeQueue(event, now: now)
        default: return []
        }
    }

    /// The player has met a file that it could not use: perhaps it is gone.
    private mutating func observeAlert(_ event: StreamEvent, now: Moment) -> [Effect] {
        guard event.header.kind == .put, let alert = try? WireAlert(wireBytes: event.payload),
            alert.code == "playsStream", book.current.downloads[alert.episode]?.state == .downloaded
        else { return [] }
        return review(now: now)
    }

    private mutating func observeQueue(_ event: StreamEvent, now: Moment) -> [Effect] {
        let name = String(event.topic.parts.last ?? "")
        switch event.header.kind {
        case .put: queues[name] = ObservedQueue(put: event.payload)
        case .delta: queues[name]?.deltas.append(event.payload)
        case .delete: queues[name] = nil
        default: return []
        }
        return retainSoon(now: now)
    }

    // MARK: Why

    /// Whether an episode is downloaded, wanted, or was so once.
    func isKnown(_ episode: String) -> Bool {
        book.current.downloads[episode] != nil || book.current.past[episode] != nil
    }

    /// Why an episode was never downloaded, as the library has it; nil: it does not have it.
    static func neverWanted(_ episode: WireEpisode?) -> String {
        if let episode {
            if episode.enclosureURL.isEmpty { return "It has no audio that could be downloaded." }
            if WebAddress(episode.enclosureURL)?.isFile ?? false {
                return "It is a file on this machine; there is nothing to download."
            }
        }
        return "It was never downloaded: nobody has asked for it, and no rule."
    }

    /// Whether a file is one of the newest so many of its podcast, in words.
    private func place(of download: WireDownload, among limit: Int) -> String {
        let newer = book.current.downloads.values.count {
            $0.state == .downloaded && $0.podcastID == download.podcastID
                && $0.retentionOrder > download.retentionOrder
        }
        guard newer >= limit else {
            return limit == 1
                ? "It is the newest file of its podcast, which is kept."
                : "It is one of the newest \(limit) files of its podcast, which are kept."
        }
        let kept = limit == 1 ? "newest file of its podcast is" : "newest \(limit) files of its podcast are"
        return "It goes when nothing needs it any more: only the \(kept) kept."
    }

    /// Why an episode's file is there, or is not, in sentences.
    func why(_ episode: String, now: Moment) -> [String] {
        guard let download = book.current.downloads[episode] else {
            guard let past = book.current.past[episode] else {
                return [Self.neverWanted(nil)]
            }
            let state = past.unfinished ? "It is not downloaded; its download was" : "It is not downloaded any more:"
            return ["\(state) \(past.reason)."]
        }
        let state = download.state == .queued ? "to be downloaded" : download.state.word
        var sentences = ["It is \(state): \(download.reason)."]
        if download.state == .failed {
            let wish = download.automatic ? "wanted \(download.reason)" : download.reason
            sentences = ["Its download failed: \(download.error.message)", "It was \(wish)."]
        }
        switch download.state {
        case .queued:
            let wait = max(0, (download.nextAttempt - now.wall.milliseconds) / 1_000)
            if !download.waitsFor.isEmpty {
                sentences.append("It waits for \(download.waitsFor)\(download.waitsFor.hasSuffix(".") ? "" : ".")")
            }
            if wait > 0 { sentences.append("The next attempt is in \(wait) s.") }
            if download.waitsFor.isEmpty, wait == 0 { sentences.append("It waits for its turn.") }
        case .downloaded:
            if absence(of: download) != nil {
                sentences.append("Its file is out of reach: perhaps a disk is not there.")
            }
            if loaded == episode { sentences.append("It is kept while it is loaded.") }
            let names = queues.values.compactMap(\.state).filter { $0.entries.contains { $0.episode.id == episode } }
                .map(\.name).sorted()
                .map(QueueName.shown)
            if !names.isEmpty { sentences.append("It is kept while it waits in \(names.joined(separator: ", ")).") }
            if forgotten.contains(download.podcastID) {
                sentences.append("Its podcast was forgotten: it goes when it is neither loaded nor in a queue.")
            }
            let settings = book.current.settings
            if settings.isOn(.deletePlayed, podcast: download.podcastID) {
                let isAgain = played[episode] != nil && !isPlayedSinceItWasAskedFor(download)
                sentences.append("It goes when it has been played\(isAgain ? " again" : "").")
            }
            let limit = Int(settings.number(.keepDownloads, podcast: download.podcastID))
            if limit > 0 { sentences.append(place(of: download, among: limit)) }
        default: break
        }
        if !download.note.isEmpty, download.state != .downloading { sentences.append(download.note) }
        return sentences
    }
}

/// A queue as it is retained on the stream. It is decoded only where it is read: thousands of entries change with every
/// episode that is added.
struct ObservedQueue: Sendable {
    var put: [UInt8]
    var deltas: [[UInt8]] = []

    /// Nil if it, or a change of it, can’t be decoded.
    var state: WireQueueState? {
        guard var state = try? WireQueueState(wireBytes: put) else { return nil }
        for bytes in deltas {
            guard let delta = try? WireQueueDelta(wireBytes: bytes) else { return nil }
            state.apply(delta)
        }
        return state
    }
}
