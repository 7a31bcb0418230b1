import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// Whether the folder is the one that files were put into, and which of its folders are missing mounts. While one is
/// unavailable, its files keep their recorded state, and nothing is fetched into the mount point’s directory.
struct FolderAvailability: Sendable {
    private static let alertCode = "downloadsAway"

    /// Another folder, or none, is at the path of the folder of downloads.
    private(set) var isUnavailable = false
    /// The folder is scanned once it is available again.
    private var isSurveyDue = false
    /// The folder has been scanned or checked since the process began.
    private(set) var isSeen = false
    /// Podcasts’ folders whose disk isn’t mounted.
    private var absentMounts: Set<String> = []
    /// The folders that the newest alert is about.
    private var reportedFolders: [String] = []
    /// The folder is being marked, or can’t be.
    private var isMarking = false

    /// A transfer has found another folder than the one that it was ordered for.
    mutating func foundOther() {
        isUnavailable = true
        isSurveyDue = true
    }

    /// Whether the folder is available again and must be scanned; true once.
    mutating func takeDueSurvey() -> Bool {
        defer { if !isUnavailable { isSurveyDue = false } }
        return isSurveyDue && !isUnavailable
    }

    /// The folder can’t be read, and is used as it is.
    mutating func surveyFailed() { isSeen = true }

    /// The missing folder that a path, relative to the folder of downloads, is in; nil: none is missing.
    func absence(of path: String) -> String? {
        if isUnavailable { return "the folder of downloads, which isn’t there" }
        let name = Self.folder(of: path)
        return absentMounts.contains(name) ? "the disk of its folder, “\(name)”" : nil
    }

    /// Compares the folder with the known one.
    ///
    /// A folder without the known marker but with all files is the right one: it was copied, or its marker was deleted.
    /// - Parameter checked: the checked files that are still downloads.
    /// - Returns: the results for files whose folder is available.
    mutating func reconcile(
        _ found: [String: FoundFile], _ snapshot: FolderSnapshot, _ checked: [String: FileReconciler.DownloadedFile],
        _ change: inout DownloadStoreChange
    ) -> [String: FoundFile] {
        isSeen = true
        let root = change.store.root
        let intact = Set(
            checked.keys.filter { id in change.store.downloads[id].map { found[id] == .file($0.totalBytes) } ?? false })
        var folder = change.store.folder
        let isComplete = !checked.isEmpty && intact.count == checked.count
        isUnavailable = !folder.marker.isEmpty && folder.marker != snapshot.marker && !isComplete
        guard !isUnavailable else {
            isSurveyDue = true
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

    /// Keeps one alert while these folders are unavailable; this process doesn’t raise a dismissed one again.
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
            title: "Downloaded files are out of reach",
            message:
                "\(names)\(more) \(verb) that downloads were put into; perhaps a disk isn’t mounted. Nothing is downloaded "
                + "into it until it is back. If its files are gone for good, answer with accept.",
            actions: ["accept", "dismiss"], at: now.wall)
    }
}
