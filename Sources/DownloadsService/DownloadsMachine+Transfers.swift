import BusKit
import PodcastModel
import WireMessages

extension DownloadsMachine {
    /// How often the network and the hour are looked at while something waits for them.
    private static let lookInterval = Duration.seconds(10)
    /// How often one of those that could not be reached is tried again.
    private static let probesAfter = Duration.seconds(120)
    /// So many bytes make a try one that got on, after which counting begins anew.
    private static let progressThatCounts: UInt64 = 256 << 10

    // MARK: Scheduling

    /// Begins what may begin, ends what is not wanted any more, and sets the timers.
    mutating func schedule(now: Moment) -> [Effect] {
        guard !isStopping else { return [] }
        var effects: [Effect] = []
        for (number, transfer) in transfers.sorted(by: { $0.key < $1.key }) {
            let state = book.current.downloads[transfer.episode]?.state
            if transfer.completed != nil {
                if state != .downloading, state != .downloaded || book.isSettled { transfers[number] = nil }
                continue
            }
            guard state != .downloading else { continue }
            transfers[number] = nil
            ended[number] = transfer
            effects.append(.perform(.cancel(number)))
        }
        let settings = book.current.settings
        let atOnce = Int(settings.number(.downloadsAtOnce))
        let perHost = Int(settings.number(.downloadsPerHost))
        var change = change
        var next: Int64?
        // What could not be said to have ended is fetched on; what is whole is said to be again.
        let running = Set(transfers.values.map(\.episode))
        for transfer in transfers.values.sorted(by: { $0.episode < $1.episode }) {
            guard let bytes = transfer.completed, var download = book.current.downloads[transfer.episode],
                download.state == .downloading
            else { continue }
            download.complete(bytes, at: root + "/" + transfer.path, now.wall)
            change.put(download)
        }
        let active = transfers.values.filter { $0.completed == nil }
        var free = atOnce - active.count
        var busy = Dictionary(grouping: active, by: \.host).mapValues(\.count)
        let waiting = book.current.downloads.values
            .filter { $0.state == .queued || $0.state == .downloading && !running.contains($0.episode) }
            .sorted { ($0.requestedAt, $0.episode) < ($1.requestedAt, $1.episode) }
        for download in waiting {
            if download.nextAttempt > now.wall.milliseconds {
                next = min(next ?? .max, download.nextAttempt)
                continue
            }
            let obstacle = obstacle(to: download)
            let host = WebAddress(download.url)?.host ?? ""
            guard obstacle == nil, free > 0, busy[host, default: 0] < perHost else {
                var waits = download
                waits.state = .queued
                waits.waitsFor = obstacle ?? ""
                change.put(waits)
                continue
            }
            free -= 1
            busy[host, default: 0] += 1
            effects += start(download, host: host, &change)
        }
        effects = commit(change) + effects
        effects += set(
            Self.scheduleTimer, to: next.map { now.monotonic.advanced(by: .milliseconds($0 - now.wall.milliseconds)) })
        guard isWatching else { return effects + set(Self.lookTimer, to: nil) }
        return isSet(Self.lookTimer)
            ? effects : effects + set(Self.lookTimer, to: now.monotonic.advanced(by: Self.lookInterval))
    }

    private mutating func start(_ download: WireDownload, host: String, _ change: inout BookChange) -> [Effect] {
        var begun = download
        begun.state = .downloading
        begun.waitsFor = ""
        begun.nextAttempt = 0
        let path = DownloadName.path(
            podcast: download.podcastTitle, title: download.title, episode: download.episode,
            type: download.contentType, url: download.url)
        change.put(begun)
        let number = nextNumber()
        transfers[number] = Transfer(episode: download.episode, host: host, path: path)
        return [
            .perform(
                .start(
                    TransferOrder(
                        number: number, episode: download.episode, url: download.url, path: path,
                        received: download.receivedBytes, etag: download.etag, lastModified: download.lastModified,
                        announced: download.announcedBytes)))
        ]
    }

    /// Whether something that waits depends on the network or the hour.
    private var isWatching: Bool {
        book.current.downloads.values.contains {
            $0.state == .queued && !$0.waitsFor.isEmpty && $0.nextAttempt == 0
                || $0.isUnreachable
        }
    }

    /// Why a download that a rule asked for may not begin now.
    private func obstacle(to download: WireDownload) -> String? {
        guard download.automatic else { return nil }
        let settings = book.current.settings
        let hours = settings.value(.autoDownloadHours, podcast: download.podcastID)
        if let allowed = HoursOfDay(hours), !(hour.map(allowed.contains) ?? false) { return "the hours \(hours)" }
        let networks = settings.value(.autoDownloadNetworks, podcast: download.podcastID)
        guard networks != "any" else { return nil }
        let names = networks.split(separator: ",").map(String.init)
        return (interfaces ?? []).contains(where: names.contains) ? nil : "the network \(networks)"
    }

    // MARK: Reports

    mutating func take(_ input: DownloadsInput, now: Moment) -> [Effect] {
        switch input {
        case .began(let number, let start): return began(number, start)
        case .progressed(let number, let received, let speed): return progressed(number, received, speed)
        case .saved(let number, let received): return saved(number, received)
        case .stopped(let episode, let etag, let received): return stopped(episode, etag, received)
        case .completed(let number, let bytes): return completed(number, bytes, now: now)
        case .failed(let number, let failure): return failed(number, failure, now: now)
        case .ended(let number):
            ended[number] = nil
            return []
        case .surveyed(let files): return surveyed(files, now: now)
        case .surveyFailed(let failure): return [.log(.warning, "the folder of downloads cannot be read: \(failure)")]
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
        download.etag = start.etag
        download.lastModified = start.lastModified
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
        download.receivedBytes = received
        var change = change
        change.put(download)
        return commit(change)
    }

    /// What came until it was paused is worth keeping.
    private mutating func stopped(_ episode: String, _ etag: String, _ received: UInt64) -> [Effect] {
        guard var download = book.current.downloads[episode], download.state == .paused, download.etag == etag else {
            return []
        }
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
            return [.perform(.delete(episode: transfer.episode, path: transfer.path))]
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
        if transfer.received > transfer.offset + Self.progressThatCounts { download.attempt = 0 }
        download.attempt += 1
        download.path = ""
        var change = change
        let tries = Int(download.attempt)
        if failure.retry, failure.known != .insufficientStorage, tries <= Self.retries.count {
            // A server that asks for more time gets it, within reason.
            let wait = max(Self.retries[tries - 1], min(failed.retryAfter ?? 0, 3_600))
            download.state = .queued
            download.nextAttempt = now.wall.milliseconds + Int64(wait * 1_000)
            download.waitsFor = "try \(tries + 1) of \(Self.retries.count + 1): \(failure.message)"
        } else {
            download.state = .failed
            download.error = WireFailure()
            download.error.code = failure.code
            download.error.message = failure.message
            download.error.retry = failure.retry
            // That it cannot be reached still is no news.
            if probing != download.episode || failure.known != .unreachable {
                change.endAlerts { $0.episode == download.episode }
                change.raise(Self.alert(of: download, now: now))
            }
        }
        if probing == download.episode { probing = "" }
        change.put(download)
        return commit(change) + [.log(.warning, "download of \(download.episode): \(failure)")]
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

    // MARK: The folder and the network

    /// The folder is compared with the book. Files that nobody knows are left alone.
    private mutating func surveyed(_ files: [String: UInt64], now: Moment) -> [Effect] {
        var change = change
        var known: Set<String> = Set(book.current.past.values.map(\.path))
        var whole: [String] = []
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode }) {
            guard let path = relative(download.path) else { continue }
            known.insert(path)
            let size = files[path]
            switch download.state {
            case .downloaded where size == nil:
                leaveWithoutFile(download, "its file was not there any more", &change, now: now)
            case .downloaded where size != download.totalBytes:
                // Not ours as we left it: nothing of it is deleted.
                leaveWithoutFile(download, "its file was not the one that was downloaded", &change, now: now)
            case .queued, .paused, .downloading:
                // It was whole, and there was no time to say so.
                guard let size, size > 0, download.totalBytes == 0 || size == download.totalBytes else { continue }
                download.complete(size, at: download.path, now.wall)
                change.put(download)
                whole.append(download.episode)
            default: break
            }
        }
        let unknown = files.keys.filter { !known.contains($0) }.sorted()
        let alert = unknownFiles(unknown, now: now)
        change.endAlerts { $0.code == "unknownFiles" && (unknown.isEmpty || $0.id != alert.id) }
        // Of the same files nobody is told twice.
        if !unknown.isEmpty, book.current.alerts[alert.id] == nil, book.current.answers[alert.id] == nil {
            change.raise(alert)
        }
        return commit(change) + whole.map { .perform(.discard(episode: $0)) }
            + unknown.prefix(20).map { .log(.info, "unknown file in the folder of downloads: \($0)") }
    }

    private func leaveWithoutFile(
        _ download: WireDownload, _ reason: String, _ change: inout BookChange, now: Moment
    ) {
        change.note(download.episode, reason, at: now.wall)
        var gone = download
        gone.state = .notDownloaded
        change.put(gone)
    }

    private func unknownFiles(_ files: [String], now: Moment) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "unknownFiles/\(files.joined(separator: "/"))").text
        alert.code = "unknownFiles"
        alert.title = "Unknown files among the downloads"
        let names = files.prefix(3).joined(separator: ", ")
        let more = files.count > 3 ? " and \(files.count - 3) more" : ""
        alert.message = "\(root) holds what was not downloaded by Lockstep: \(names)\(more). It is left alone."
        alert.severity = .info
        alert.actions = ["dismiss"]
        alert.raisedAt = now.wall.milliseconds
        alert.owner = Self.owner.text
        return alert
    }

    private mutating func deleted(_ episode: String, _ failure: Failure?) -> [Effect] {
        var change = change
        // What could not be deleted is deleted after the next start; what is not ours never.
        if failure?.retry != true { change.settle(episode) }
        let log = failure.map { Effect.log(.warning, "the file of \(episode) was not deleted: \($0)") }
        return commit(change) + (log.map { [$0] } ?? [])
    }

    /// What failed for want of a network is tried again when there is another one; and, as not every way out that is there
    /// leads somewhere, one of it from time to time.
    private mutating func lookedAround(_ interfaces: [String], _ hour: Int, now: Moment) -> [Effect] {
        let isBack = self.interfaces.map { $0 != interfaces } ?? true
        self.interfaces = interfaces
        self.hour = hour
        guard !interfaces.isEmpty else { return [] }
        var change = change
        if isBack { queueUnreachable(&change) } else { probe(&change, now: now) }
        return commit(change)
    }

    /// Tries one of those that could not be reached, once.
    private mutating func probe(_ change: inout BookChange, now: Moment) {
        let waiting = book.current.downloads.values.filter(\.isUnreachable).map(\.episode).sorted()
        guard !waiting.isEmpty else {
            probedAt = nil
            return
        }
        guard let last = probedAt, now.monotonic.since(last) >= Self.probesAfter else {
            probedAt = probedAt ?? now.monotonic
            return
        }
        // One after the other: a single server may be gone for good.
        guard let episode = waiting.first(where: { $0 > lastProbed }) ?? waiting.first,
            var download = book.current.downloads[episode]
        else { return }
        (probing, lastProbed, probedAt) = (episode, episode, now.monotonic)
        download.begin()
        download.attempt = UInt32(Self.retries.count)
        change.put(download)
    }

    private func queueUnreachable(_ change: inout BookChange) {
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode })
        where download.isUnreachable {
            download.begin()
            change.put(download)
            change.endAlerts { $0.episode == download.episode }
        }
    }

    private mutating func nextNumber() -> UInt64 {
        lastTransfer += 1
        return lastTransfer
    }
}

extension WireDownload {
    /// It has failed for want of a network, or of a server.
    var isUnreachable: Bool { state == .failed && error.code == FailureCode.unreachable.rawValue }

    /// The file is whole and at its place.
    mutating func complete(_ bytes: UInt64, at place: String, _ time: Timestamp) {
        state = .downloaded
        path = place
        receivedBytes = bytes
        totalBytes = bytes
        finishedAt = time.milliseconds
        attempt = 0
        waitsFor = ""
        clearError()
    }
}
