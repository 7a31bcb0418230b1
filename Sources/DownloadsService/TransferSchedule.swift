import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Decides which transfers begin, and when, and records their reports.
struct TransferSchedule: Sendable {
    struct Transfer: Sendable {
        var episode: String
        var host: String
        /// The path, relative to the download folder.
        var path: String
        /// The size of the complete file in bytes, kept until its record is durable; nil while it is being fetched.
        var completed: UInt64?
        /// The number of bytes of the partial file when the transfer was begun.
        var offset: UInt64 = 0
        var received: UInt64 = 0
    }

    /// The wait before each retry.
    static let retryBackoff = Backoff.steps([.seconds(5), .seconds(15), .seconds(60)], repeatsLast: false)
    /// The duration for which no transfer is begun after a refused change.
    private static let refusalBackoff = Backoff.constant(.seconds(5))

    private(set) var transfers: [UInt64: Transfer] = [:]
    /// Cancelled transfers that haven’t ended yet and may still be completed.
    private(set) var cancelled: [UInt64: Transfer] = [:]
    /// The number of the newest transfer; numbers aren’t reused.
    private var lastTransfer: UInt64 = 0
    private var isStopping = false
    /// The time before which no transfer is begun, after a refused change.
    private var pausedUntil: MonotonicTime?

    var hasStopped: Bool { transfers.isEmpty && cancelled.isEmpty }

    /// Cancels all transfers and begins no more.
    mutating func stop(_ effects: inout Effects) {
        isStopping = true
        effects += transfers.keys.sorted().map { .perform(.cancel($0)) }
    }

    /// Ends the pause after a refused change: its time has passed, or another change has been saved.
    mutating func resume() { pausedUntil = nil }

    /// Pauses transfers that haven’t begun, because a change couldn’t be saved.
    mutating func changeRefused(now: Moment, _ effects: inout Effects) {
        pausedUntil = now.monotonic.advanced(by: Self.refusalBackoff.wait())
        effects.append(.timer(.schedule, at: pausedUntil))
    }

    /// Whether a durable order is still wanted.
    func isDue(_ order: TransferOrder, in store: DownloadStore) -> Bool {
        transfers[order.number] != nil && store.downloads[order.episode]?.state == .downloading
    }

    /// Whether scheduling is suspended, because the service stops or a change could not be saved.
    var isPaused: Bool { isStopping || pausedUntil != nil }

    /// Begins transfers, and cancels those that are no longer wanted.
    /// - Parameter obstacle: the condition that a download waits for, not to be shown if empty; nil if it may begin.
    mutating func update(
        _ store: SpeculativeState<DownloadStore>, _ change: inout DownloadStoreChange,
        obstacle: (WireDownload) -> String?
    ) {
        cancelUnwanted(store, &change.effects)
        completeAgain(&change)
        let now = change.now
        let time = begin(&change, obstacle).map { next in
            now.monotonic.advanced(by: .milliseconds(next - now.wall.milliseconds))
        }
        change.effects.append(.timer(.schedule, at: time))
    }

    private mutating func cancelUnwanted(_ store: SpeculativeState<DownloadStore>, _ effects: inout Effects) {
        for (number, transfer) in transfers.sorted(by: { $0.key < $1.key }) {
            let state = store.current.downloads[transfer.episode]?.state
            guard state != .downloading else { continue }
            if transfer.completed == nil {
                cancelled[number] = transfer
                effects.append(.perform(.cancel(number)))
            } else if state == .downloaded, !store.isSettled {
                continue
            }
            transfers[number] = nil
        }
    }

    /// Records complete transfers again if their record could not be saved.
    private func completeAgain(_ change: inout DownloadStoreChange) {
        for transfer in transfers.values.sorted(by: { $0.episode < $1.episode }) {
            guard let bytes = transfer.completed, let download = change.store.downloads[transfer.episode],
                download.state == .downloading
            else { continue }
            var whole = download
            whole.complete(bytes, at: change.store.root + "/" + transfer.path, change.now.wall)
            change.put(whole)
        }
    }

    /// Begins the downloads that may begin, the oldest request first.
    /// - Returns: the time at which the next waiting download is due, in ms since 1970.
    private mutating func begin(_ change: inout DownloadStoreChange, _ obstacle: (WireDownload) -> String?) -> Int64? {
        let settings = change.store.settings
        let perHost = Int(settings.number(.downloadsPerHost))
        let running = Set(transfers.values.map(\.episode))
        let active = transfers.values.filter { $0.completed == nil }
        var free = Int(settings.number(.downloadsAtOnce)) - active.count
        var busy = Dictionary(grouping: active, by: \.host).mapValues(\.count)
        let waiting = change.store.all
            .filter { $0.state == .queued || $0.state == .downloading && !running.contains($0.episode) }
            .sorted { $0.startOrder < $1.startOrder }
        var next: Int64?
        for var download in waiting {
            if download.nextAttempt > change.now.wall.milliseconds {
                next = min(next ?? .max, download.nextAttempt)
                continue
            }
            let obstacle = obstacle(download)
            let host = WebAddress(download.url)?.host ?? ""
            if obstacle == nil, free > 0, busy[host, default: 0] < perHost {
                free -= 1
                busy[host, default: 0] += 1
                start(download, host: host, &change)
            } else {
                download.state = .queued
                download.waitsFor = obstacle ?? ""
                change.put(download)
            }
        }
        return next
    }

    /// Begins a transfer once its record is durable.
    private mutating func start(_ waiting: WireDownload, host: String, _ change: inout DownloadStoreChange) {
        var download = waiting
        download.state = .downloading
        download.waitsFor = ""
        download.nextAttempt = 0
        change.put(download)
        lastTransfer += 1
        transfers[lastTransfer] = Transfer(episode: download.episode, host: host, path: download.targetPath)
        let marker = change.store.folder.marker
        change.actions.append(.start(TransferOrder(number: lastTransfer, download: download, folder: marker)))
    }

    // MARK: Transfers

    mutating func began(
        _ number: UInt64, _ start: TransferStart, _ change: inout DownloadStoreChange,
        _ network: inout NetworkConditions
    ) {
        guard let path = transfers[number]?.path, var download = download(of: number, in: change.store) else { return }
        transfers[number]?.offset = start.offset
        transfers[number]?.received = start.offset
        // If the path is free, a file that a later process finds there is the complete download.
        download.path = start.isPathFree ? change.store.root + "/" + path : ""
        download.receivedBytes = start.offset
        download.totalBytes = start.total
        download.etag = start.version.etag
        download.lastModified = start.version.lastModified
        download.explainRestarts(isPartRefused: start.isPartRefused)
        if !start.contentType.isEmpty { download.contentType = start.contentType }
        if network.endProbe(of: download.episode) {
            download.attempt = 0
            change.endAlerts { $0.episode == download.episode }
            network.queueUnreachable(&change)
        }
        change.put(download)
    }

    mutating func progressed(_ number: UInt64, _ received: UInt64, _ speed: Double, _ change: inout DownloadStoreChange)
    {
        guard let download = download(of: number, in: change.store) else { return }
        transfers[number]?.received = received
        let progress = WireDownloadProgress.with {
            $0.episode = download.episode
            $0.receivedBytes = received
            $0.totalBytes = download.totalBytes
            $0.bytesPerSecond = speed
        }
        change.effects.append(.publish([Publication(.live, .downloadProgress(download.episode), progress.wireBytes)]))
    }

    mutating func saved(_ number: UInt64, _ received: UInt64, _ change: inout DownloadStoreChange) {
        guard var download = download(of: number, in: change.store) else { return }
        transfers[number]?.received = received
        download.receivedBytes = received
        change.put(download)
    }

    /// Records the fetched part of a download that was paused or that the end of the service interrupted.
    func stopped(_ episode: String, _ version: FileVersion, _ received: UInt64, _ change: inout DownloadStoreChange) {
        guard var download = change.store.downloads[episode], download.version == version,
            download.state == .paused || isStopping && download.state == .downloading
        else { return }
        download.receivedBytes = received
        change.put(download)
    }

    /// Records that a cancelled transfer has ended.
    mutating func ended(_ number: UInt64) {
        cancelled[number] = nil
        if isStopping { transfers[number] = nil }
    }

    /// Records that the file is complete and at its path, even if its transfer was being cancelled.
    /// - Returns: whether its download is complete.
    mutating func completed(_ number: UInt64, _ bytes: UInt64, _ change: inout DownloadStoreChange) -> Bool {
        let late = cancelled.removeValue(forKey: number)
        guard let transfer = late ?? transfers[number] else { return false }
        guard var download = change.store.downloads[transfer.episode] else {
            if late != nil {
                let marker = change.store.folder.marker
                change.effects.append(.perform(.delete(episode: transfer.episode, path: transfer.path, folder: marker)))
            }
            return false
        }
        guard late == nil ? download.state == .downloading : download.state != .downloaded else { return false }
        transfers[number]?.completed = bytes
        download.complete(bytes, at: change.store.root + "/" + transfer.path, change.now.wall)
        change.putResolved(download)
        return true
    }

    /// Records a failed attempt: the download is retried later or fails.
    /// - Returns: the download; nil if it is no longer wanted.
    mutating func failed(
        _ number: UInt64, _ failed: TransferFailure, _ change: inout DownloadStoreChange,
        _ network: inout NetworkConditions
    ) -> WireDownload? {
        guard var download = download(of: number, in: change.store) else { return nil }
        let hasProgressed = transfers.removeValue(forKey: number)?.hasProgressed(download) ?? false
        let failure = failed.failure
        if failure.code == DownloadFolder.wrongFolderCode {
            // This failure doesn’t count as an attempt.
            download.state = .queued
            change.put(download)
            return download
        }
        if hasProgressed { download.attempt = 0 }
        download.attempt += 1
        download.path = ""
        let tries = Int(download.attempt)
        let isProbe = network.endProbe(of: download.episode)
        if failure.retry, failure.known != .insufficientStorage, Self.retryBackoff.allowsRetry(after: tries) {
            // A server may request a longer wait, up to an hour.
            let wait = max(Self.retryBackoff.wait(after: tries) / .seconds(1), min(failed.retryAfter ?? 0, 3_600))
            download.state = .queued
            download.nextAttempt = change.now.wall.milliseconds + Int64(wait * 1_000)
            download.waitsFor = "attempt \(tries + 1) of \(Self.retryBackoff.retryLimit + 1): \(failure.message)"
        } else {
            download.state = .failed
            download.error = WireFailure(failure)
            // An alert about an unreachable server is already raised.
            if !isProbe || failure.known != .unreachable {
                change.endAlerts { $0.episode == download.episode }
                change.raise(download.failureAlert(now: change.now))
            }
        }
        change.put(download)
        return download
    }

    /// The download of a transfer, if it is still wanted.
    private func download(of number: UInt64, in store: DownloadStore) -> WireDownload? {
        guard let episode = transfers[number]?.episode, let download = store.downloads[episode],
            download.state == .downloading
        else { return nil }
        return download
    }
}

extension TransferSchedule.Transfer {
    /// The number of bytes above which an attempt counts as progress even if the next attempt starts over.
    private static let progress: UInt64 = 256 << 10

    /// Whether this attempt resets the number of attempts.
    fileprivate func hasProgressed(_ download: WireDownload) -> Bool {
        received > offset + (download.version.condition.isEmpty ? Self.progress : 0)
    }
}
