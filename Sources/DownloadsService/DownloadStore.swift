import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import WireMessages

/// The stored state of the service.
struct DownloadStore: Sendable {
    /// The download folder, absolute.
    let root: String
    /// The downloads that are wanted or complete, by episode.
    fileprivate(set) var downloads = KeyedRecords<WireDownload>("download", about: \.subject)
    /// The reasons why files were removed, by episode. A record whose file is still to be deleted isn’t evicted.
    fileprivate(set) var past = KeyedRecords<WirePastDownload>("past", limit: 1_000) { $0.path.isEmpty ? $0.at : nil }
    var settings = OwnerSettings(.downloads)
    /// The marker by which the folder is recognised, and the folders in it that are mounts.
    var folder = WireDownloadsFolder()
    var alerts = OwnerAlerts(.downloads)

    init(root: String) { self.root = root }

    mutating func restore(_ record: StoredRecord) throws {
        if record.collection == "folder" { folder = try WireDownloadsFolder(wireBytes: record.value) }
        _ = try downloads.restore(record) || past.restore(record) || alerts.restore(record) || settings.restore(record)
    }

    /// All records, to restore a database that has lost them.
    var everything: [WireChange] {
        downloads.everything + past.everything + settings.everything
            + (folder == WireDownloadsFolder() ? [] : [.putting("folder", "downloads", folder)])
            + alerts.everything
    }

    /// All values that are retained on the stream.
    var retained: [Publication] { ordered.map(Self.publication) + settings.retained + alerts.retained }

    var ordered: [WireDownload] { downloads.sorted.map(\.value) }

    var knownPodcasts: Set<PodcastID> {
        Set((all.map(\.podcastID) + settings.podcasts).compactMap { PodcastID($0) })
    }

    var all: Dictionary<String, WireDownload>.Values { downloads.values.values }

    /// The number of downloads of the same podcast that `keepDownloads` ranks before this one, without failed ones.
    func newerDownloads(than download: WireDownload) -> Int {
        all.count {
            $0.podcastID == download.podcastID && $0.episode != download.episode && $0.state != .failed
                && $0.retentionOrder > download.retentionOrder
        }
    }

    /// Converts an absolute path to one relative to the folder; nil if it is outside the folder.
    func relative(_ path: String) -> String? {
        path.hasPrefix(root + "/") ? String(path.dropFirst(root.count + 1)) : nil
    }

    static func publication(_ download: WireDownload) -> Publication {
        download.state == .notDownloaded
            ? Publication(.delete, .download(download.episode))
            : Publication(.put, .download(download.episode), download.wireBytes)
    }
}

/// A change of the store, with the records to write and the values to publish.
struct DownloadStoreChange: Sendable {
    /// The store after the change.
    private(set) var store: DownloadStore
    let now: Moment
    private(set) var written = OwnerChange()
    /// The actions that are performed once the change is durable.
    var actions: [DownloadsAction] = []
    /// The effects that don’t wait for durability.
    var effects: Effects = []

    init(_ store: DownloadStore, now: Moment) { (self.store, self.now) = (store, now) }

    /// Stores a download, or removes one that is no longer downloaded.
    mutating func put(_ download: WireDownload) {
        let before = store.downloads[download.episode]
        guard before != download else { return }
        if let before, before.isQuarantined, !download.isQuarantined {
            actions.append(.release(episode: download.episode))
        }
        if download.state == .notDownloaded {
            store.downloads.remove(download.episode, &written.changes)
        } else {
            store.downloads.put(download.episode, download, &written.changes)
        }
        written.publications.append(DownloadStore.publication(download))
    }

    /// Stores a download, and ends its alerts.
    mutating func putResolved(_ download: WireDownload) {
        put(download)
        endAlerts { $0.episode == download.episode }
    }

    /// Ends a download; its file, or its partial file, is deleted once the change is durable.
    mutating func remove(_ download: WireDownload, _ reason: String) {
        let isWhole = download.state == .downloaded
        let path = isWhole ? store.relative(download.path) ?? "" : ""
        recordPast(download.episode, reason, path: path, isUnfinished: !isWhole)
        removeKeepingFile(download)
        endAlerts { $0.episode == download.episode }
        actions.append(
            path.isEmpty
                ? .discard(episode: download.episode)
                : .delete(episode: download.episode, path: path, folder: store.folder.marker))
    }

    /// Ends a download that has only a partial file, which is deleted once the change is durable.
    mutating func drop(_ download: WireDownload) {
        removeKeepingFile(download)
        actions.append(.discard(episode: download.episode))
    }

    /// Ends a download whose file is missing or was replaced; the replacement isn’t deleted.
    mutating func removeMissing(_ download: WireDownload, fileExists: Bool) {
        let reason = fileExists ? "its file was replaced by another one" : "its file was missing"
        recordPast(download.episode, reason)
        removeKeepingFile(download)
    }

    private mutating func removeKeepingFile(_ download: WireDownload) {
        var gone = download
        gone.state = .notDownloaded
        put(gone)
    }

    /// Records why a file was removed or never completed. A file with a path is still to be deleted.
    mutating func recordPast(_ episode: String, _ reason: String, path: String = "", isUnfinished: Bool = false) {
        let past = WirePastDownload.with {
            $0.episode = episode
            $0.reason = reason
            $0.at = now.wall.milliseconds
            $0.path = path
            $0.unfinished = isUnfinished
        }
        store.past.put(episode, past, &written.changes)
    }

    mutating func recordDeletion(_ episode: String) {
        guard var past = store.past[episode], !past.path.isEmpty else { return }
        past.path = ""
        store.past.put(episode, past, &written.changes)
    }

    mutating func forgetPast(_ episode: String) { store.past.remove(episode, &written.changes) }

    mutating func put(_ folder: WireDownloadsFolder) {
        guard folder != store.folder else { return }
        store.folder = folder
        written.changes.append(
            folder == WireDownloadsFolder()
                ? .deleting("folder", "downloads") : .putting("folder", "downloads", folder))
    }

    /// Sets a setting; returns false if it already had this value.
    mutating func set(_ setting: WireSetSetting) throws(Failure) -> Bool { append(try store.settings.set(setting)) }

    mutating func forgetSettings(of podcast: String) { _ = append(store.settings.forget(podcast: podcast)) }

    mutating func raise(_ alert: WireAlert) { written.append(store.alerts.raise(alert)) }

    mutating func endAlerts(_ isOver: (WireAlert) -> Bool) { written.append(store.alerts.end(where: isOver)) }

    /// Answers an alert; returns false if it already had the same answer.
    mutating func answer(_ answer: WireAnswerAlert) throws(Failure) -> Bool {
        append(try store.alerts.answer(answer, at: now.wall))
    }

    private mutating func append(_ change: OwnerChange?) -> Bool {
        guard let change else { return false }
        written.append(change)
        return true
    }
}
