import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Compares the store with the files on disk: checks the files of downloads at intervals and before a command about
/// them is answered, and scans the whole folder. One check runs at a time.
struct FileReconciler: Sendable {
    private struct FileCheck: Sendable {
        var number: UInt64
        var since: MonotonicTime
        /// The checked files by episode.
        var files: [String: DownloadedFile]
        /// The commands that are handled when the check is finished.
        var waiters: [Command]
    }

    /// The record of a downloaded file.
    struct DownloadedFile: Sendable, Equatable {
        /// The path, relative to the download folder.
        var path: String
        /// The time at which the download was completed, in ms since 1970.
        var finishedAt: Int64
    }

    private static let checkInterval = Duration.seconds(15)
    /// The time that a command waits for a check: a disk that hangs may never respond.
    private static let checkTimeout = Duration.seconds(5)

    var folder = FolderAvailability()
    private var fileCheck: FileCheck?
    private var lastCheck: UInt64 = 0
    private var nextWaiters: [Command] = []
    private var isRecheckDue = false
    /// The files when the scan began; its result doesn’t cover files that were completed later.
    private var filesAtScan: [String: DownloadedFile] = [:]
    /// The time of the next check of all files.
    private var nextCheck: MonotonicTime?

    // MARK: Availability

    /// Whether the folder has been identified; without a stored marker any folder is accepted.
    func isFolderKnown(_ store: DownloadStore) -> Bool { folder.isChecked || store.folder.marker.isEmpty }

    /// Describes the missing folder or disk that a file waits for; nil if its folder is available.
    func missingFolder(of download: WireDownload, in store: DownloadStore) -> String? {
        folder.missingFolder(of: store.relative(download.path) ?? download.targetPath)
    }

    /// Corrects the paths of downloads whose folder was moved with all its files.
    static func rebasePaths(_ change: inout DownloadStoreChange) {
        for var download in change.store.ordered
        where !download.path.isEmpty && change.store.relative(download.path) == nil {
            let path = download.path.split(separator: "/").suffix(2).joined(separator: "/")
            download.path = change.store.root + "/" + path
            change.put(download)
        }
    }

    // MARK: Checking files

    /// Checks the files before a command about these episodes is answered; returns false if none of them is downloaded
    /// or the disk doesn’t respond.
    mutating func check(
        _ episodes: [String], for command: Command, _ store: DownloadStore, now: Moment, _ effects: inout Effects
    ) -> Bool {
        guard episodes.contains(where: { store.downloads[$0]?.state == .downloaded }) else { return false }
        guard let since = fileCheck?.since else { return check([command], store, now: now, &effects) }
        guard now.monotonic.since(since) < Self.checkTimeout else { return false }
        // The check in progress may have an outdated result for these episodes.
        nextWaiters.append(command)
        effects.append(.timer(.fileCheckTimeout, at: since.advanced(by: Self.checkTimeout)))
        return true
    }

    /// Checks all files, once the check in progress is finished.
    mutating func recheck(_ store: DownloadStore, now: Moment, _ effects: inout Effects) {
        isRecheckDue = fileCheck != nil
        if !isRecheckDue { _ = check([], store, now: now, &effects) }
    }

    private mutating func check(
        _ waiters: [Command], _ store: DownloadStore, now: Moment, _ effects: inout Effects
    ) -> Bool {
        isRecheckDue = false
        let files = store.downloadedFiles
        guard !files.isEmpty || !store.folder.marker.isEmpty else { return false }
        lastCheck += 1
        fileCheck = FileCheck(number: lastCheck, since: now.monotonic, files: files, waiters: waiters)
        effects.append(.perform(.checkFiles(lastCheck, files.mapValues(\.path))))
        let timeout = waiters.isEmpty ? nil : now.monotonic.advanced(by: Self.checkTimeout)
        effects.append(.timer(.fileCheckTimeout, at: timeout))
        return true
    }

    /// Records the result of a check, except for files that were completed after it began.
    /// - Returns: the commands to handle now; nil for a check that isn’t the one in progress.
    mutating func checkFinished(
        _ number: UInt64, _ found: [String: FoundFile], _ snapshot: FolderSnapshot?,
        _ change: inout DownloadStoreChange
    ) -> [Command]? {
        guard let finished = fileCheck, finished.number == number else { return nil }
        fileCheck = nil
        change.effects.append(.timer(.fileCheckTimeout, at: nil))
        if let snapshot {
            let found = reconcile(found, snapshot, finished.files, &change)
            for (episode, found) in found.sorted(by: { $0.key < $1.key }) { removeIfMissing(episode, found, &change) }
        }
        return finished.waiters
    }

    /// Begins the work that waits for a check: a scan of a folder that is available again, and the next check.
    /// - Returns: the commands to handle now, if nothing remains to be checked.
    mutating func continueAfterCheck(_ store: DownloadStore, now: Moment, _ effects: inout Effects) -> [Command] {
        if folder.takeDueScan() { scanFolder(store, &effects) }
        let next = nextWaiters
        nextWaiters = []
        guard !next.isEmpty || isRecheckDue else { return [] }
        return check(next, store, now: now, &effects) ? [] : next
    }

    /// Returns the commands whose wait for a check timed out; they are answered from the store.
    mutating func checkTimedOut() -> [Command] {
        defer {
            fileCheck?.waiters = []
            nextWaiters = []
        }
        return (fileCheck?.waiters ?? []) + nextWaiters
    }

    /// Sets the timer of the next check, as long as there are files or the folder is unavailable.
    mutating func scheduleCheck(_ store: DownloadStore, now: Moment, _ effects: inout Effects) {
        let hasFiles = store.all.contains { $0.state == .downloaded }
        let isNeeded = fileCheck == nil && (folder.isUnavailable || hasFiles)
        nextCheck = isNeeded ? nextCheck ?? now.monotonic.advanced(by: Self.checkInterval) : nil
        effects.append(.timer(.fileCheck, at: nextCheck))
    }

    mutating func timerFired(_ store: DownloadStore, now: Moment, _ effects: inout Effects) {
        nextCheck = nil
        recheck(store, now: now, &effects)
    }

    // MARK: Scanning the folder

    mutating func scanFolder(_ store: DownloadStore, _ effects: inout Effects) {
        filesAtScan = store.downloadedFiles
        effects.append(.perform(.scanFolder))
    }

    /// Reconciles the store with all files in the folder, if the folder is recognised. Unknown files are left alone.
    mutating func folderScanned(
        _ files: [String: UInt64], _ snapshot: FolderSnapshot, _ change: inout DownloadStoreChange
    ) {
        let checked = filesAtScan.mapValues { files[$0.path].map(FoundFile.file) ?? .nothing }
        let found = reconcile(checked, snapshot, filesAtScan, &change)
        guard !folder.isUnavailable else { return }
        _ = folder.takeDueScan()
        var known = Set(change.store.past.values.values.map(\.path))
        for download in change.store.ordered {
            guard let path = change.store.relative(download.path) else { continue }
            known.insert(path)
            if let found = found[download.episode] {
                removeIfMissing(download.episode, found, &change)
            } else if let size = files[path] {
                completeIfWhole(download, size, &change)
            }
        }
        let unknown = files.keys.filter { !known.contains($0) }.sorted()
        reportUnknown(unknown, &change)
        for (_, past) in change.store.past.sorted where !past.path.isEmpty {
            let marker = change.store.folder.marker
            change.effects.append(.perform(.delete(episode: past.episode, path: past.path, folder: marker)))
        }
        change.effects += unknown.prefix(20).map { .log(.info, "Unknown file in the download folder: \($0)") }
    }

    /// Completes an unfinished download whose file an earlier process moved to its path without recording it.
    private func completeIfWhole(_ download: WireDownload, _ size: UInt64, _ change: inout DownloadStoreChange) {
        guard [.queued, .paused, .downloading].contains(download.state),
            size > 0, download.totalBytes == 0 || size == download.totalBytes
        else { return }
        var whole = download
        whole.complete(size, at: download.path, change.now.wall)
        change.put(whole)
        change.effects.append(.perform(.discard(episode: download.episode)))
    }

    private func removeIfMissing(_ episode: String, _ found: FoundFile, _ change: inout DownloadStoreChange) {
        guard let download = change.store.downloads[episode], found != .file(download.totalBytes) else { return }
        change.removeMissing(download, fileExists: found != .nothing)
    }

    private mutating func reconcile(
        _ found: [String: FoundFile], _ snapshot: FolderSnapshot, _ checked: [String: DownloadedFile],
        _ change: inout DownloadStoreChange
    ) -> [String: FoundFile] {
        let current = change.store.downloadedFiles
        let unchanged = checked.filter { current[$0.key] == $0.value }
        return folder.reconcile(found, snapshot, unchanged, &change)
    }

    /// Raises an alert about unknown files, unless an earlier alert was about the same files.
    private func reportUnknown(_ files: [String], _ change: inout DownloadStoreChange) {
        let names = files.prefix(3).joined(separator: ", ")
        let more = files.count > 3 ? " and \(files.count - 3) more" : ""
        let alert = WireAlert(
            "unknownFiles", of: .downloads, named: "unknownFiles/\(files.joined(separator: "/"))",
            title: "Unknown files among the downloads",
            message:
                "\(change.store.root) contains files that Lockstep didn’t download: \(names)\(more). They are left alone.",
            severity: .info, at: change.now.wall)
        change.endAlerts { $0.code == alert.code && (files.isEmpty || $0.id != alert.id) }
        let alerts = change.store.alerts
        if !files.isEmpty, alerts.active[alert.id] == nil, !alerts.isAnswered(alert.id) { change.raise(alert) }
    }
}

extension DownloadStore {
    /// The files of complete downloads, by episode.
    var downloadedFiles: [String: FileReconciler.DownloadedFile] {
        downloads.values.filter { $0.value.state == .downloaded }.compactMapValues { download in
            relative(download.path).map { .init(path: $0, finishedAt: download.finishedAt) }
        }
    }
}
