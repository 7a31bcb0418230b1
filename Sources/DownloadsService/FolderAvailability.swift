import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Detects whether the download folder and the mounts in it are available. Files in an unavailable folder keep
/// their recorded state, and nothing is fetched into an empty mount point.
struct FolderAvailability: Sendable {
    private static let alertCode = "downloadsAway"

    /// Whether the folder is missing or has another marker.
    private(set) var isUnavailable = false
    /// Whether the folder must be scanned when it is available again.
    private var isScanDue = false
    /// Whether this process has scanned or checked the folder.
    private(set) var isChecked = false
    /// Podcasts’ folders whose disk isn’t mounted.
    private var absentMounts: Set<String> = []
    /// The folders that the newest alert is about.
    private var reportedFolders: [String] = []
    /// Whether the marker is being written or couldn’t be written.
    private var isMarking = false

    /// Records that a transfer found a folder without the expected marker.
    mutating func folderReplaced() {
        isUnavailable = true
        isScanDue = true
    }

    /// Returns true once when the folder is available again and must be scanned.
    mutating func takeDueScan() -> Bool {
        defer { if !isUnavailable { isScanDue = false } }
        return isScanDue && !isUnavailable
    }

    /// Records that the folder couldn’t be scanned; it is used nevertheless.
    mutating func scanFailed() { isChecked = true }

    /// Describes the missing folder that contains a path (relative to the download folder); nil if none is missing.
    func missingFolder(of path: String) -> String? {
        if isUnavailable { return "the download folder, which is unavailable" }
        let name = Self.folder(of: path)
        return absentMounts.contains(name) ? "the disk of its folder, “\(name)”" : nil
    }

    /// Compares a snapshot of the folder with the stored marker and mounts.
    ///
    /// A folder with all files but without the stored marker is accepted: it was copied, or its marker was deleted.
    /// - Parameter checked: the checked files that are still downloads.
    /// - Returns: the results for files whose folder is available.
    mutating func reconcile(
        _ found: [String: FoundFile], _ snapshot: FolderSnapshot, _ checked: [String: FileReconciler.DownloadedFile],
        _ change: inout DownloadStoreChange
    ) -> [String: FoundFile] {
        isChecked = true
        let root = change.store.root
        let intact = Set(
            checked.keys.filter { id in change.store.downloads[id].map { found[id] == .file($0.totalBytes) } ?? false })
        var folder = change.store.folder
        let isComplete = !checked.isEmpty && intact.count == checked.count
        isUnavailable = !folder.marker.isEmpty && folder.marker != snapshot.marker && !isComplete
        guard !isUnavailable else {
            isScanDue = true
            report([root], &change)
            return [:]
        }
        folder.marker = snapshot.marker
        if folder.marker.isEmpty, !intact.isEmpty, !isMarking {
            isMarking = true
            let name = "folder/\(root)/\(change.now.wall.milliseconds)/\(change.now.monotonic)"
            change.effects.append(.perform(.mark(AlertID.derived(from: name).text)))
        }
        let files = Dictionary(grouping: checked.keys) { Self.folder(of: checked[$0]?.path ?? "") }
        var mounts = Set(folder.mounts)
        absentMounts = []
        for (name, episodes) in files where mounts.contains(name) != snapshot.mounts.contains(name) {
            if snapshot.mounts.contains(name) {
                if episodes.contains(where: intact.contains) { mounts.insert(name) }
            } else if intact.isSuperset(of: episodes) {
                mounts.remove(name)
            } else {
                absentMounts.insert(name)
            }
        }
        folder.mounts = mounts.filter { files[$0] != nil }.sorted()
        change.put(folder)
        report(absentMounts.sorted().map { "\(root)/\($0)" }, &change)
        return found.filter { id, _ in checked[id].map { !absentMounts.contains(Self.folder(of: $0.path)) } ?? false }
    }

    mutating func marked(_ marker: String, _ change: inout DownloadStoreChange) {
        isMarking = false
        guard change.store.folder.marker.isEmpty else { return }
        var folder = change.store.folder
        folder.marker = marker
        change.put(folder)
    }

    /// Accepts the folder in its present state.
    mutating func accept(_ change: inout DownloadStoreChange) {
        change.put(WireDownloadsFolder())
        isUnavailable = false
        isMarking = false
        absentMounts = []
    }

    private static func folder(of path: String) -> String { String(path.prefix { $0 != "/" }) }

    /// Keeps one alert while these folders are unavailable; this process doesn’t raise a dismissed alert again.
    private mutating func report(_ folders: [String], _ change: inout DownloadStoreChange) {
        guard folders != reportedFolders || folders.isEmpty else { return }
        reportedFolders = folders
        let alert = Self.alert(folders, now: change.now)
        change.endAlerts { $0.code == Self.alertCode && (folders.isEmpty || $0.message != alert.message) }
        let isRaised = change.store.alerts.active.values.contains { $0.code == Self.alertCode }
        if !folders.isEmpty, !isRaised { change.raise(alert) }
    }

    private static func alert(_ folders: [String], now: Moment) -> WireAlert {
        let names = folders.prefix(3).joined(separator: ", ")
        let more = folders.count > 3 ? " and \(folders.count - 3) more" : ""
        let verb = folders.count == 1 ? "isn’t the folder" : "aren’t the folders"
        return WireAlert(
            alertCode, of: .downloads, named: "\(alertCode)/\(folders)/\(now.wall.milliseconds)",
            title: "Downloaded files can’t be reached",
            message:
                "\(names)\(more) \(verb) that contains downloads; check that its disk is mounted. Downloads to it continue "
                + "when it is available again. If its files are permanently lost, answer with accept.",
            actions: ["accept", "dismiss"], at: now.wall)
    }
}
