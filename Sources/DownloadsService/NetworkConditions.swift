import OwnerKit
import PodcastModel
import WireMessages

/// The network and the hour at the last check, and the download that probes an unreachable network.
struct NetworkConditions: Sendable {
    /// The interval between checks while a download waits for the network or the hour.
    private static let checkInterval = Duration.seconds(10)
    /// The interval between retries of one of the downloads that failed without a network.
    private static let probeBackoff = Backoff.constant(.seconds(120))

    /// The interfaces of the default routes; nil if not checked yet.
    private var interfaces: [String]?
    /// The hour of the day, local time.
    private var hour: Int?
    /// The single download that is retried to test the network; empty if there is none.
    private var probe = ""
    private var lastProbe = ""
    private var lastProbeTime: MonotonicTime?
    /// The time of the next check; nil if no download waits for the network or the hour.
    private var nextCheck: MonotonicTime?

    /// Records the conditions. Downloads that failed without a network are retried when the network has changed. If it
    /// hasn’t, one of them is retried at intervals, because the network behind a default route may be down.
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

    /// Retries one of the unreachable downloads in rotation, because a single server may be down permanently.
    private mutating func probeOne(_ change: inout DownloadStoreChange) {
        let now = change.now.monotonic
        let waiting = change.store.ordered.filter(\.isUnreachable)
        guard var download = waiting.first(where: { $0.episode > lastProbe }) ?? waiting.first else {
            lastProbeTime = nil
            return
        }
        guard let time = lastProbeTime, now.since(time) >= Self.probeBackoff.wait() else {
            lastProbeTime = lastProbeTime ?? now
            return
        }
        (probe, lastProbe, lastProbeTime) = (download.episode, download.episode, now)
        download.begin()
        download.attempt = UInt32(TransferSchedule.retryBackoff.retryLimit)
        change.put(download)
    }

    /// Ends the probe; returns false if this download isn’t the probe.
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

    /// The condition that a download by a rule waits for; nil if it may begin now.
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
