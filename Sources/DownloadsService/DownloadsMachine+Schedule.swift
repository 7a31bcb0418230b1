import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Which transfers are begun, and when: what waits for its turn, its hour, or a network.

extension DownloadsMachine {
    /// How often the network and the hour are looked at while something waits for them.
    private static let lookInterval = Duration.seconds(10)
    /// How often one of those that could not be reached is tried again.
    private static let probeRetry = Backoff.constant(.seconds(120))

    /// Begins what may begin, ends what is not wanted any more, and sets the timers.
    mutating func schedule(now: Moment) -> [Effect] {
        guard !isStopping, schedulesAt == nil else { return [] }
        var effects = endUnwanted()
        var change = change
        sayWhole(&change, now: now)
        let next = beginWaiting(&change, now: now)
        effects = commit(change) + effects
        effects += set(
            Self.scheduleTimer, to: next.map { now.monotonic.advanced(by: .milliseconds($0 - now.wall.milliseconds)) })
        effects += scheduleReview(now: now)
        guard isWatching else { return effects + set(Self.lookTimer, to: nil) }
        return isSet(Self.lookTimer)
            ? effects : effects + set(Self.lookTimer, to: now.monotonic.advanced(by: Self.lookInterval))
    }

    /// Ends the transfers that nobody waits for any more.
    private mutating func endUnwanted() -> [Effect] {
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
        return effects
    }

    /// What is whole and could not be said to be, because that was not saved, is said to be again.
    private func sayWhole(_ change: inout BookChange, now: Moment) {
        for transfer in transfers.values.sorted(by: { $0.episode < $1.episode }) {
            guard let bytes = transfer.completed, var download = book.current.downloads[transfer.episode],
                download.state == .downloading
            else { continue }
            download.complete(bytes, at: root + "/" + transfer.path, now.wall)
            change.put(download)
        }
    }

    /// Begins, of what waits, what may begin, the oldest wish first; and when the next of the others is due, in ms since 1970.
    private mutating func beginWaiting(_ change: inout BookChange, now: Moment) -> Int64? {
        let settings = book.current.settings
        let perHost = Int(settings.number(.downloadsPerHost))
        let running = Set(transfers.values.map(\.episode))
        let active = transfers.values.filter { $0.completed == nil }
        var free = Int(settings.number(.downloadsAtOnce)) - active.count
        var busy = Dictionary(grouping: active, by: \.host).mapValues(\.count)
        let waiting = book.current.downloads.values
            .filter { $0.state == .queued || $0.state == .downloading && !running.contains($0.episode) }
            .sorted { $0.startOrder < $1.startOrder }
        var next: Int64?
        for download in waiting {
            if download.nextAttempt > now.wall.milliseconds {
                next = min(next ?? .max, download.nextAttempt)
                continue
            }
            let obstacle = absence(of: download) ?? obstacle(to: download)
            let host = WebAddress(download.url)?.host ?? ""
            guard obstacle == nil, isFolderKnown, free > 0, busy[host, default: 0] < perHost else {
                var waits = download
                waits.state = .queued
                waits.waitsFor = obstacle ?? ""
                change.put(waits)
                continue
            }
            free -= 1
            busy[host, default: 0] += 1
            start(download, host: host, &change)
        }
        return next
    }

    /// Begins a transfer once it is durable that it is one.
    private mutating func start(_ download: WireDownload, host: String, _ change: inout BookChange) {
        var begun = download
        begun.state = .downloading
        begun.waitsFor = ""
        begun.nextAttempt = 0
        let path = path(of: download)
        change.put(begun)
        let number = nextNumber()
        transfers[number] = Transfer(episode: download.episode, host: host, path: path)
        change.actions.append(
            .start(
                TransferOrder(
                    number: number, episode: download.episode, url: download.url, path: path,
                    received: download.resumableBytes, version: download.version,
                    announced: download.announcedBytes, folder: change.book.folder.marker,
                    podcast: download.podcastID)))
    }

    /// Where its file goes.
    func path(of download: WireDownload) -> String {
        DownloadName.path(
            podcast: download.podcastTitle, title: download.title, episode: download.episode,
            type: download.contentType, url: download.url)
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

    // MARK: The network

    /// What failed for want of a network is tried again when there is another one; and, as not every way out that is there
    /// leads somewhere, one of it from time to time.
    mutating func lookedAround(_ interfaces: [String], _ hour: Int, now: Moment) -> [Effect] {
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
        guard let last = probedAt, now.monotonic.since(last) >= Self.probeRetry.wait() else {
            probedAt = probedAt ?? now.monotonic
            return
        }
        // One after the other: a single server may be gone for good.
        guard let episode = waiting.first(where: { $0 > lastProbed }) ?? waiting.first,
            var download = book.current.downloads[episode]
        else { return }
        (probing, lastProbed, probedAt) = (episode, episode, now.monotonic)
        download.begin()
        download.attempt = UInt32(Self.retry.retryLimit)
        change.put(download)
    }

    func queueUnreachable(_ change: inout BookChange) {
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
    /// By so many times a file must be smaller than its feed announces to be remarked: sizes in feeds are often old, or
    /// without the advertisements.
    private static let smallness: UInt64 = 10
    /// What a feed announces that is less than this, in bytes, is no size (many put the seconds there, or 1).
    private static let leastSize: UInt64 = 1_000_000

    /// The version of the bytes that are there.
    var version: FileVersion { FileVersion(etag: etag, lastModified: lastModified) }

    /// It is coming, from a server that may not say which version of the file it sends, or has not sent the part of it
    /// that it was asked for.
    mutating func noteVersion(isPartRefused: Bool) {
        let host = WebAddress(url)?.host ?? "its server"
        let reason: String? =
            if version.condition.isEmpty {
                "does not say which version of the file it sends"
            } else if isPartRefused {
                "sends no parts of files"
            } else {
                nil
            }
        note = reason.map { "It begins anew after each interruption: \(host) \($0)." } ?? ""
    }

    /// It is whole, but perhaps not what was announced.
    private mutating func noteSize() {
        guard announcedBytes >= Self.leastSize, totalBytes < announcedBytes / Self.smallness else {
            note = ""
            return
        }
        let (whole, tenth) = (announcedBytes / 1_000_000, announcedBytes / 100_000 % 10)
        note = "Its feed announces \(whole).\(tenth) MB; perhaps something else was sent in place of the episode."
    }

    /// The most bytes of its partial file that can be continued. The last one is fetched again, so that the server confirms
    /// the version also of a file that came whole.
    var resumableBytes: UInt64 {
        guard !version.condition.isEmpty else { return 0 }
        return totalBytes > 0 ? totalBytes - 1 : .max
    }

    /// Transfers begin in this order: older requests first, and of one rule’s episodes the newest first.
    var startOrder: (Int64, Int64, String) { (requestedAt, automatic ? -published : 0, episode) }

    /// It has failed for want of a network, or of a server.
    var isUnreachable: Bool { state == .failed && error.code == FailureCode.unreachable.rawValue }

    /// It was set aside because it crashed the service repeatedly.
    var isQuarantined: Bool { state == .failed && error.code == FailureCode.quarantined.rawValue }

    /// The file is whole and at its place.
    mutating func complete(_ bytes: UInt64, at place: String, _ time: Timestamp) {
        state = .downloaded
        path = place
        receivedBytes = bytes
        totalBytes = bytes
        noteSize()
        finishedAt = time.milliseconds
        attempt = 0
        waitsFor = ""
        clearError()
    }
}
