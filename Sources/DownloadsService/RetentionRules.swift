import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Decides which files the rules delete: played ones, those beyond the newest of their podcast, and those of forgotten
/// podcasts; never the loaded episode or one in a queue.
struct RetentionRules: Sendable {
    /// The time from the last change of the player or a queue to the deletion: queues are received one by one.
    private static let delay = Duration.seconds(10)

    /// The loaded episode; empty if there is none.
    private var loaded = ""
    private var hasSeenPlayer = false
    private var queues: [String: ObservedQueue] = [:]
    /// The times at which episodes were played to their end or marked as played, in ms since 1970, if known.
    private var playedAt: [String: Int64] = [:]
    /// The episodes that were played in part.
    private var started: Set<String> = []
    /// The episodes whose files the storage limit doesn’t delete; nil until the rules were applied.
    private var protected: Set<String>?
    /// Podcasts that were deleted with everything that belonged to them.
    private var forgotten: Set<String> = []
    private var dueAt: MonotonicTime?
    private var isTimerSet = false

    /// Records the loaded episode; returns the previously loaded one, or nil if the episode hasn’t changed.
    mutating func playerChanged(_ state: WirePlaybackState) -> String? {
        hasSeenPlayer = true
        let before = loaded
        loaded = state.status == .idle ? "" : state.episode.id
        return loaded == before ? nil : before
    }

    /// Records whether an episode has been played; returns whether the rules must be applied.
    mutating func episodeChanged(_ state: WireEpisodeState) -> Bool {
        update(started: state)
        let played = state.played ? state.completedAt : nil
        guard played != playedAt[state.episode] else { return false }
        playedAt[state.episode] = played
        return state.played
    }

    /// Records the library’s answer whether episodes have been played; newer observed changes take precedence.
    mutating func update(from episodes: [WireEpisode]) {
        for episode in episodes {
            var state = episode.state
            state.episode = episode.id
            update(started: state)
            let known = playedAt[episode.id]
            if episode.state.played {
                playedAt[episode.id] = max(episode.state.completedAt, known ?? 0)
            } else if let known, known <= episode.state.updatedAt {
                playedAt[episode.id] = nil
            }
        }
    }

    private mutating func update(started state: WireEpisodeState) {
        if !state.played, state.position >= 1 {
            started.insert(state.episode)
        } else {
            started.remove(state.episode)
        }
    }

    mutating func queueChanged(_ event: StreamEvent) {
        let name = String(event.topic.parts.last ?? "")
        switch event.header.kind {
        case .put: queues[name] = ObservedQueue(put: event.payload)
        case .delta: queues[name]?.deltas.append(event.payload)
        case .delete: queues[name] = nil
        default: break
        }
    }

    mutating func podcastExists(_ podcast: String) { forgotten.remove(podcast) }

    /// Ends the unfinished downloads of a forgotten podcast at once; its complete files are deleted by the rules.
    mutating func podcastForgotten(_ podcast: String, _ change: inout DownloadStoreChange) {
        forgotten.insert(podcast)
        change.forgetSettings(of: podcast)
        for download in change.store.ordered where podcast == download.podcastID && download.state != .downloaded {
            change.remove(download, "cancelled, because its podcast was forgotten")
        }
    }

    /// Applies the rules once nothing has changed for a while.
    mutating func applySoon(now: Moment, _ effects: inout Effects) {
        dueAt = now.monotonic.advanced(by: Self.delay)
        // Queues change often, so the timer is moved only when it fires.
        if !isTimerSet { effects.append(.timer(.retention, at: dueAt)) }
        isTimerSet = true
    }

    /// Applies the rules if nothing has changed for a while.
    mutating func timerFired(_ change: inout DownloadStoreChange) {
        isTimerSet = dueAt.map { change.now.monotonic < $0 } ?? false
        if isTimerSet { change.effects.append(.timer(.retention, at: dueAt)) } else { apply(&change) }
    }

    /// Removes downloads by the rules, if the states of the player and all queues have been received.
    private mutating func apply(_ change: inout DownloadStoreChange) {
        // A queue that is incomplete or can’t be decoded may hold any episode.
        let known = queues.values.compactMap(\.state)
        guard hasSeenPlayer, !known.isEmpty, known.count == queues.count, !known.contains(where: \.more) else { return }
        let held = Set(known.flatMap { $0.entries.map(\.episode.id) } + [loaded])
        let settings = change.store.settings
        let files = change.store.all.filter { $0.state == .downloaded }
            .sorted { $0.retentionOrder > $1.retentionOrder }
        var kept: [String: Int] = [:]
        for download in files {
            let podcast = download.podcastID
            let limit = Int(settings.number(.keepDownloads, podcast: podcast))
            kept[podcast, default: 0] += 1
            guard !held.contains(download.episode) else { continue }
            if forgotten.contains(podcast) {
                change.remove(download, "deleted, because its podcast was forgotten")
            } else if settings.isOn(.deletePlayed, podcast: podcast), isPlayedSinceRequest(download) {
                change.remove(download, "deleted by a rule, because it has been played")
            } else if limit > 0, kept[podcast, default: 0] > limit {
                let rule = "deleted by the rule that keeps the newest \(limit) downloads of “\(download.podcastTitle)”"
                change.remove(download, rule)
            }
        }
        applyLimit(holding: held, &change)
    }

    // MARK: The storage limit

    /// The size of files together, and of another one; at most the largest number, because feeds announce any size.
    private static func size(of files: [WireDownload], and other: UInt64 = 0) -> UInt64 {
        files.reduce(other) { sum, file in
            let (total, isTooLarge) = sum.addingReportingOverflow(file.receivedBytes)
            return isTooLarge ? .max : total
        }
    }

    private static func limit(_ store: DownloadStore) -> ByteCount? { ByteCount(store.settings.value(.downloadLimit)) }

    /// Deletes automatic downloads until all files together are within the limit: played ones first, then the oldest;
    /// never one that is loaded, in a queue, played in part, or requested by a client.
    private mutating func applyLimit(holding held: Set<String>, _ change: inout DownloadStoreChange) {
        let files = change.store.all.filter { $0.state == .downloaded }
        protected = Set(
            files.filter { !$0.automatic || held.contains($0.episode) || started.contains($0.episode) }.map(\.episode))
        guard let limit = Self.limit(change.store) else { return }
        var total = Self.size(of: files)
        for download in files.sorted(by: isDeletedBefore)
        where total > limit.bytes && protected?.contains(download.episode) == false {
            total -= download.receivedBytes
            change.remove(download, "deleted, because all downloads together exceeded the limit of \(limit.text)")
        }
    }

    private func isDeletedBefore(_ left: WireDownload, _ right: WireDownload) -> Bool {
        let isPlayed = (playedAt[left.episode] != nil, playedAt[right.episode] != nil)
        return isPlayed.0 != isPlayed.1 ? isPlayed.0 : left.retentionOrder < right.retentionOrder
    }

    /// The condition that an automatic download waits for, because its file would exceed the limit and be deleted.
    func obstacle(to download: WireDownload, in store: DownloadStore) -> String? {
        guard download.automatic, let limit = Self.limit(store), let protected else { return nil }
        let kept = store.all.filter { other in
            other.state == .downloaded && other.episode != download.episode
                && (protected.contains(other.episode)
                    || playedAt[other.episode] == nil && other.retentionOrder > download.retentionOrder)
        }
        let size = max(download.totalBytes, download.announcedBytes)
        guard Self.size(of: kept, and: size) > limit.bytes else { return nil }
        return "room: the downloads that are kept have reached the limit of \(limit.text)"
    }

    private func limitReason(_ download: WireDownload, _ limit: ByteCount) -> String {
        if !download.automatic { return "The limit of \(limit.text) doesn’t delete it, because it was requested." }
        if started.contains(download.episode) {
            return "The limit of \(limit.text) doesn’t delete it, because it was played in part."
        }
        return "It may be deleted when all downloads together exceed the limit of \(limit.text)."
    }

    /// Whether an episode was played after its request; a request after it was played means to play it again.
    private func isPlayedSinceRequest(_ download: WireDownload) -> Bool {
        playedAt[download.episode].map { $0 > download.requestedAt } ?? false
    }

    /// Explains in sentences why a file is kept and when it is deleted.
    func reasons(for download: WireDownload, in store: DownloadStore) -> [String] {
        var sentences: [String] = []
        if loaded == download.episode { sentences.append("The file is kept while the episode is loaded.") }
        let names = queues.values.compactMap(\.state)
            .filter { $0.entries.contains { $0.episode.id == download.episode } }
            .map(\.name).sorted().map(QueueName.shown)
        if !names.isEmpty { sentences.append("It is kept while it waits in \(WordList.and(names)).") }
        if forgotten.contains(download.podcastID) {
            sentences.append(
                "The podcast was forgotten: the file is deleted when its episode is neither loaded nor in a queue.")
        }
        if store.settings.isOn(.deletePlayed, podcast: download.podcastID) {
            let isAgain = playedAt[download.episode] != nil && !isPlayedSinceRequest(download)
            sentences.append("It is deleted when it has been played\(isAgain ? " again" : "").")
        }
        let limit = Int(store.settings.number(.keepDownloads, podcast: download.podcastID))
        if let limit = Self.limit(store) { sentences.append(limitReason(download, limit)) }
        if limit > 0 { sentences.append(rank(of: download, in: store, limit: limit)) }
        return sentences
    }

    /// Explains whether a file is one of the newest of its podcast that are kept.
    private func rank(of download: WireDownload, in store: DownloadStore, limit: Int) -> String {
        let newer = store.all.count {
            $0.state == .downloaded && $0.podcastID == download.podcastID
                && $0.retentionOrder > download.retentionOrder
        }
        let (verb, files) = limit == 1 ? ("is", "newest file") : ("are", "newest \(limit) files")
        guard newer >= limit else {
            return "It is \(limit == 1 ? "the" : "one of the") \(files) of its podcast, which \(verb) kept."
        }
        return "It is deleted once it is neither loaded nor in a queue: only the \(files) of its podcast \(verb) kept."
    }
}

/// A queue as it is retained on the stream. It is decoded only where it is read: it may have thousands of entries and
/// changes with every added episode.
private struct ObservedQueue: Sendable {
    var put: [UInt8]
    var deltas: [[UInt8]] = []

    /// The queue; nil if it or a change of it can’t be decoded.
    var state: WireQueueState? {
        guard var state = try? WireQueueState(wireBytes: put) else { return nil }
        for bytes in deltas {
            guard let delta = try? WireQueueDelta(wireBytes: bytes) else { return nil }
            state.apply(delta)
        }
        return state
    }
}
