import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// What is said of transfers.

extension DownloadsMachine {
    /// An attempt that fetched more makes the attempts count anew even if the next one starts over.
    private static let progressThatCounts: UInt64 = 256 << 10

    mutating func take(_ input: DownloadsInput, now: Moment) -> [Effect] {
        switch input {
        case .began(let number, let start): return began(number, start)
        case .progressed(let number, let received, let speed): return progressed(number, received, speed)
        case .saved(let number, let received): return saved(number, received)
        case .stopped(let episode, let version, let received): return stopped(episode, version, received)
        case .completed(let number, let bytes): return completed(number, bytes, now: now)
        case .failed(let number, let failure): return failed(number, failure, now: now)
        case .ended(let number):
            ended[number] = nil
            if isStopping { transfers[number] = nil }
            return []
        case .surveyed(let files, let sight): return surveyed(files, sight, now: now)
        case .looked(let number, let found, let sight): return looked(number, found, sight, now: now)
        case .marked(let marker): return marked(marker)
        case .markFailed(let failure): return [.log(.info, "\(failure)")]
        case .surveyFailed(let failure):
            isFolderSeen = true
            return [.log(.warning, "the folder of downloads cannot be read: \(failure)")]
        case .deleted(let episode, let failure): return deleted(episode, failure)
        case .surroundings(let interfaces, let hour): return lookedAround(interfaces, hour, now: now)
        }
    }

    private mutating func began(_ number: UInt64, _ start: TransferStart) -> [Effect] {
        guard var download = download(of: number) else { return [] }
        transfers[number]?.offset = start.offset
        transfers[number]?.received = start.offset
        // What a later life finds where nothing was is this file, whole.
        download.path = start.isPlaceFree ? transfers[number].map { root + "/" + $0.path } ?? "" : ""
        download.receivedBytes = start.offset
        download.totalBytes = start.total
        download.etag = start.version.etag
        download.lastModified = start.version.lastModified
        download.noteVersion(isPartRefused: start.isPartRefused)
        if !start.contentType.isEmpty { download.contentType = start.contentType }
        var change = change
        if probing == download.episode {
            // The network is back, for the others too.
            probing = ""
            download.attempt = 0
            change.endAlerts { $0.episode == download.episode }
            queueUnreachable(&change)
        }
        change.put(download)
        return commit(change)
    }

    private mutating func progressed(_ number: UInt64, _ received: UInt64, _ speed: Double) -> [Effect] {
        guard let download = download(of: number) else { return [] }
        transfers[number]?.received = received
        var progress = WireDownloadProgress()
        progress.episode = download.episode
        progress.receivedBytes = received
        progress.totalBytes = download.totalBytes
        progress.bytesPerSecond = speed
        return [.publish([Publication(.live, .downloadProgress(download.episode), progress.wireBytes)])]
    }

    private mutating func saved(_ number: UInt64, _ received: UInt64) -> [Effect] {
        guard var download = download(of: number) else { return [] }
        transfers[number]?.received = received
        download.receivedBytes = received
        var change = change
        change.put(download)
        return commit(change)
    }

    /// What came until it was paused, or the service stopped, is kept.
    private mutating func stopped(_ episode: String, _ version: FileVersion, _ received: UInt64) -> [Effect] {
        guard var download = book.current.downloads[episode], download.version == version,
            download.state == .paused || isStopping && download.state == .downloading
        else { return [] }
        download.receivedBytes = received
        var change = change
        change.put(download)
        return commit(change)
    }

    private mutating func completed(_ number: UInt64, _ bytes: UInt64, now: Moment) -> [Effect] {
        if let transfer = ended.removeValue(forKey: number) { return completed(late: transfer, bytes, now: now) }
        guard var download = download(of: number), let transfer = transfers[number] else { return [] }
        transfers[number]?.completed = bytes
        download.complete(bytes, at: root + "/" + transfer.path, now.wall)
        var change = change
        change.put(download)
        change.endAlerts { $0.episode == download.episode }
        return commit(change) + retainSoon(now: now)
    }

    /// A file was whole before its transfer could be ended.
    private mutating func completed(late transfer: Transfer, _ bytes: UInt64, now: Moment) -> [Effect] {
        guard var download = book.current.downloads[transfer.episode] else {
            return [
                .perform(
                    .delete(episode: transfer.episode, path: transfer.path, folder: book.current.folder.marker))
            ]
        }
        guard download.state != .downloaded else { return [] }
        download.complete(bytes, at: root + "/" + transfer.path, now.wall)
        var change = change
        change.put(download)
        change.endAlerts { $0.episode == download.episode }
        return commit(change) + retainSoon(now: now)
    }

    private mutating func failed(_ number: UInt64, _ failed: TransferFailure, now: Moment) -> [Effect] {
        guard var download = download(of: number), let transfer = transfers.removeValue(forKey: number) else {
            return []
        }
        let failure = failed.failure
        if failure.code == DownloadFolder.awayCode {
            return found(another: download, now: now) + [.log(.warning, "download of \(download.episode): \(failure)")]
        }
        let isKept = !download.version.condition.isEmpty
        if transfer.received > transfer.offset + (isKept ? 0 : Self.progressThatCounts) { download.attempt = 0 }
        download.attempt += 1
        download.path = ""
        var change = change
        let tries = Int(download.attempt)
        if failure.retry, failure.known != .insufficientStorage, Self.retry.allowsRetry(after: tries) {
            // A server that asks for more time gets it, within reason.
            let wait = max(Self.retry.wait(after: tries) / .seconds(1), min(failed.retryAfter ?? 0, 3_600))
            download.state = .queued
            download.nextAttempt = now.wall.milliseconds + Int64(wait * 1_000)
            download.waitsFor = "try \(tries + 1) of \(Self.retry.retryLimit + 1): \(failure.message)"
        } else {
            download.state = .failed
            download.error = WireFailure(failure)
            // That it cannot be reached still is no news.
            if probing != download.episode || failure.known != .unreachable {
                change.endAlerts { $0.episode == download.episode }
                change.raise(Self.alert(of: download, now: now))
            }
        }
        if probing == download.episode { probing = "" }
        change.put(download)
        // Its feed may have moved it while it came.
        return commit(change) + askAgain([download.episode])
            + [.log(.warning, "download of \(download.episode): \(failure)")]
    }

    private static func alert(of download: WireDownload, now: Moment) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "downloadFailed/\(download.episode)/\(now.wall.milliseconds)").text
        alert.code = "downloadFailed"
        alert.title = "A download has failed"
        alert.message = "“\(download.title)” could not be downloaded: \(download.error.message)"
        alert.severity = .warning
        alert.actions = ["retry", "dismiss"]
        alert.raisedAt = now.wall.milliseconds
        alert.owner = owner.text
        alert.episode = download.episode
        alert.podcast = download.podcastID
        return alert
    }

    /// The download of a transfer that is still wanted.
    private func download(of number: UInt64) -> WireDownload? {
        guard let episode = transfers[number]?.episode, let download = book.current.downloads[episode],
            download.state == .downloading
        else { return nil }
        return download
    }
}
