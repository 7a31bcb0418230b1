import OwnerKit
import PodcastModel
import WireMessages

/// The network and the hour, as they were checked last, and the downloads that wait for them.
struct NetworkConditions: Sendable {
    /// How often they are checked while something waits for them.
    private static let checkInterval = Duration.seconds(10)
    /// How often one of the downloads that failed without a network is tried again.
    private static let probeRetry = Backoff.constant(.seconds(120))

    /// The interfaces of the default routes; nil: not checked yet.
    private var interfaces: [String]?
    /// Local time.
    private var hour: Int?
    /// The download that is tried, alone, to notice that the network is back; empty: none.
    private var probe = ""
    private var lastProbe = ""
    private var lastProbeTime: MonotonicTime?
    /// When they are checked next; nil: no download waits for them.
    private var nextCheck: MonotonicTime?

    /// Records the conditions. What failed without a network is retried when that has changed; and, as not every default
    /// route leads somewhere, one of the downloads at intervals.
    mutating func checked(_ interfaces: [String], _ hour: Int, _ change: inout DownloadStoreChange) {
        let hasChanged = self.interfaces != interfaces
        self.interfaces = interfaces
        self.hour = hour
        guard !interfaces.isEmpty else { return }
        if hasChanged { queueUnreachable(&change) } else { probeOne(&change) }
    }

    func queueUnreachable(_ change: inout DownloadStoreChange) {
        for var download in change.store.ordered where download.isUnreachable {
            download.begin()
            change.putResolved(download)
        }
    }

    /// Retries one failed download, once: each in turn, as a single server may be gone for good.
    private mutating func probeOne(_ change: inout DownloadStoreChange) {
        let now = change.now.monotonic
        let waiting = change.store.ordered.filter(\.isUnreachable)
        guard var download = waiting.first(where: { $0.episode > lastProbe }) ?? waiting.first else {
            lastProbeTime = nil
            return
        }
        guard let time = lastProbeTime, now.since(time) >= Self.probeRetry.wait() else {
            lastProbeTime = lastProbeTime ?? now
            return
        }
        (probe, lastProbe, lastProbeTime) = (download.episode, download.episode, now)
        download.begin()
        download.attempt = UInt32(TransferSchedule.retry.retryLimit)
        change.put(download)
    }

    /// Ends the probe; false if this download isn’t the one that is tried.
    mutating func endProbe(of episode: String) -> Bool {
        guard probe == episode else { return false }
        probe = ""
        return true
    }

    /// Sets the timer of the next check while a download waits for the network or the hour.
    mutating func scheduleCheck(_ store: DownloadStore, now: Moment, _ effects: inout Effects) {
        let isNeeded = store.all.contains {
            $0.state == .queued && !$0.waitsFor.isEmpty && $0.nextAttempt == 0 || $0.isUnreachable
        }
        nextCheck = isNeeded ? nextCheck ?? now.monotonic.advanced(by: Self.checkInterval) : nil
        effects.append(.timer(.networkCheck, at: nextCheck))
    }

    mutating func timerFired(_ effects: inout Effects) {
        nextCheck = nil
        effects.append(.perform(.checkNetwork))
    }

    /// What a download that a rule requested waits for; nil: it may begin now.
    func obstacle(to download: WireDownload, _ settings: OwnerSettings) -> String? {
        guard download.automatic else { return nil }
        let hours = settings.value(.autoDownloadHours, podcast: download.podcastID)
        if let allowed = HoursOfDay(hours), !(hour.map(allowed.contains) ?? false) { return "the hours \(hours)" }
        let networks = settings.value(.autoDownloadNetworks, podcast: download.podcastID)
        guard networks != "any" else { return nil }
        let names = networks.split(separator: ",").map(String.init)
        return (interfaces ?? []).contains(where: names.contains) ? nil : "the network \(networks)"
    }
}
