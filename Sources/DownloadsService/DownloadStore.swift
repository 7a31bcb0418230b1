import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Everything that the service stores.
struct DownloadStore: Sendable {
    /// The folder of downloads, absolute.
    let root: String
    /// The downloads that are wanted or complete, by episode.
    var downloads: [String: WireDownload] = [:]
    /// What became of files that are gone, by episode.
    var past: [String: WirePastDownload] = [:]
    var settings = OwnerSettings(.downloads)
    /// How the folder is recognised: its marker, and the folders in it that are mounts.
    var folder = WireDownloadsFolder()
    var alerts = OwnerAlerts(.downloads)

    init(root: String) { self.root = root }

    /// Restores one stored record.
    mutating func restore(_ record: StoredRecord) throws {
        switch record.collection {
        case "download": downloads[record.key] = try WireDownload(wireBytes: record.value)
        case "past": past[record.key] = try WirePastDownload(wireBytes: record.value)
        case "alert", "answer": _ = try alerts.restore(record)
        case "folder": folder = try WireDownloadsFolder(wireBytes: record.value)
        default: _ = settings.restore(record)
        }
    }

    /// Everything, for a database that has lost it.
    var everything: [WireChange] {
        ordered.map { .putting("download", $0.episode, $0) }
            + orderedPast.map { .putting("past", $0.episode, $0) }
            + settings.everything
            + (folder == WireDownloadsFolder() ? [] : [.putting("folder", "downloads", folder)])
            + alerts.everything
    }

    /// Everything, for the stream.
    var retained: [Publication] { ordered.map(Self.publication) + settings.retained + alerts.retained }

    /// The downloads, in order of their episodes.
    var ordered: [WireDownload] { downloads.values.sorted { $0.episode < $1.episode } }

    /// What became of files that are gone, in order of their episodes.
    var orderedPast: [WirePastDownload] { past.values.sorted { $0.episode < $1.episode } }

    /// The number of other downloads of its podcast that `keepDownloads` prefers to this one; failed ones don’t count.
    func newerDownloads(than download: WireDownload) -> Int {
        downloads.values.count {
            $0.podcastID == download.podcastID && $0.episode != download.episode && $0.state != .failed
                && $0.retentionOrder > download.retentionOrder
        }
    }

    /// The path of a download relative to the folder; nil: the file is elsewhere, and is not touched.
    func relative(_ path: String) -> String? {
        path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : nil
    }

    static func publication(_ download: WireDownload) -> Publication {
        download.state == .notDownloaded
            ? Publication(.delete, .download(download.episode))
            : Publication(.put, .download(download.episode), download.wireBytes)
    }
}

/// A change of the store, with the records that it writes and what it publishes.
struct DownloadStoreChange: Sendable {
    /// The store as it is after the change.
    private(set) var store: DownloadStore
    private(set) var written = OwnerChange()
    /// What is done once the change is durable.
    var actions: [DownloadsAction] = []

    /// The maximum number of files that are gone and are remembered.
    private static let pastLimit = 1_000

    init(_ store: DownloadStore) { self.store = store }

    // MARK: Downloads

    /// Writes a download as it is from now on; one that is not downloaded any more is removed.
    mutating func put(_ download: WireDownload) {
        let before = store.downloads[download.episode]
        guard before != download else { return }
        if let before, before.isQuarantined, !download.isQuarantined {
            actions.append(.release(episode: download.episode))
        }
        let isGone = download.state == .notDownloaded
        store.downloads[download.episode] = isGone ? nil : download
        write(isGone ? .deleting("download", download.episode) : .putting("download", download.episode, download))
        written.publications.append(DownloadStore.publication(download))
    }

    /// Writes a download whose alerts are out of date with this change.
    mutating func putResolved(_ download: WireDownload) {
        put(download)
        endAlerts { $0.episode == download.episode }
    }

    /// Ends a download; its file, or its partial file, is deleted once that is durable.
    mutating func remove(_ download: WireDownload, _ reason: String, at time: Timestamp) {
        let isWhole = download.state == .downloaded
        let path = isWhole ? store.relative(download.path) ?? "" : ""
        recordPast(download.episode, reason, path: path, isUnfinished: !isWhole, at: time)
        removeKeepingFile(download)
        endAlerts { $0.episode == download.episode }
        actions.append(
            path.isEmpty
                ? .discard(episode: download.episode)
                : .delete(episode: download.episode, path: path, folder: store.folder.marker))
    }

    /// Ends a download of which only a partial file can exist, which is deleted once that is durable.
    mutating func drop(_ download: WireDownload) {
        removeKeepingFile(download)
        actions.append(.discard(episode: download.episode))
    }

    /// Ends a download whose file is missing or is another one, which isn’t deleted.
    mutating func removeMissing(_ download: WireDownload, isThere: Bool, at time: Timestamp) {
        let reason = isThere ? "its file was not the one that was downloaded" : "its file was not there any more"
        recordPast(download.episode, reason, at: time)
        removeKeepingFile(download)
    }

    private mutating func removeKeepingFile(_ download: WireDownload) {
        var gone = download
        gone.state = .notDownloaded
        put(gone)
    }

    // MARK: Files that are gone

    /// Records why a file is gone, or did not come; one with a path has yet to be deleted.
    mutating func recordPast(
        _ episode: String, _ reason: String, path: String = "", isUnfinished: Bool = false, at time: Timestamp
    ) {
        var past = WirePastDownload()
        past.episode = episode
        past.reason = reason
        past.at = time.milliseconds
        past.path = path
        past.unfinished = isUnfinished
        store.past[episode] = past
        write(.putting("past", episode, past))
        let deleted = store.past.values.lazy.filter(\.path.isEmpty)
        if store.past.count > Self.pastLimit, let oldest = deleted.min(by: { $0.at < $1.at }) {
            forgetPast(oldest.episode)
        }
    }

    /// Records that the file of an episode has been deleted.
    mutating func recordDeletion(_ episode: String) {
        guard var past = store.past[episode], !past.path.isEmpty else { return }
        past.path = ""
        store.past[episode] = past
        write(.putting("past", episode, past))
    }

    /// Forgets what became of an episode’s earlier file.
    mutating func forgetPast(_ episode: String) {
        guard store.past.removeValue(forKey: episode) != nil else { return }
        write(.deleting("past", episode))
    }

    // MARK: The rest

    /// Records how the folder is recognised.
    mutating func put(_ folder: WireDownloadsFolder) {
        guard folder != store.folder else { return }
        store.folder = folder
        write(
            folder == WireDownloadsFolder()
                ? .deleting("folder", "downloads") : .putting("folder", "downloads", folder))
    }

    /// Sets a setting; false if it was set so already.
    mutating func set(_ setting: WireSetSetting) throws(Failure) -> Bool { append(try store.settings.set(setting)) }

    /// Removes the settings of a podcast that was forgotten.
    mutating func forgetSettings(of podcast: String) { _ = append(store.settings.forget(podcast: podcast)) }

    mutating func raise(_ alert: WireAlert) { written.append(store.alerts.raise(alert)) }

    /// Ends the alerts whose causes are gone.
    mutating func endAlerts(_ isOver: (WireAlert) -> Bool) { written.append(store.alerts.end(where: isOver)) }

    /// Answers an alert; false: the same answer was given before.
    mutating func answer(_ answer: WireAnswerAlert, at time: Timestamp) throws(Failure) -> Bool {
        append(try store.alerts.answer(answer, at: time))
    }

    private mutating func write(_ change: WireChange) { written.changes.append(change) }

    private mutating func append(_ change: OwnerChange?) -> Bool {
        guard let change else { return false }
        written.append(change)
        return true
    }
}
