import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// Whether the folder is the one that files were put into. While it, or the disk of a podcast's folder, is out, nothing is
// said of files and nothing is fetched into the place where it should be.

extension DownloadsMachine {
    private static let awayCode = "downloadsAway"

    /// What of the files that were found can be believed, as the folder is the one that is meant; and what is to be done.
    ///
    /// A folder that does not bear its marker, but has all the files, is it nevertheless: somebody copied it, or cleaned up.
    mutating func believe(
        _ found: [String: FoundFile], _ sight: FolderSight, asked: [String: DownloadedFile],
        _ change: inout BookChange, now: Moment
    ) -> (found: [String: FoundFile], effects: [Effect]) {
        isFolderSeen = true
        let asked = asked.filter { downloaded[$0.key] == $0.value }
        let intact = Set(
            asked.keys.filter { id in book.current.downloads[id].map { found[id] == .file($0.totalBytes) } ?? false })
        var folder = change.book.folder
        let isAll = !asked.isEmpty && intact.count == asked.count
        guard folder.marker.isEmpty || folder.marker == sight.marker || isAll else {
            isAway = true
            surveysWhenBack = true
            tellAway([root], &change, now: now)
            return ([:], [])
        }
        isAway = false
        var effects: [Effect] = []
        if folder.marker != sight.marker { folder.marker = sight.marker }
        if folder.marker.isEmpty, !intact.isEmpty, !isMarking {
            isMarking = true
            effects.append(.perform(.mark(Self.newMarker(root, now: now))))
        }
        let files = Dictionary(grouping: asked.keys) { id in Self.folder(of: asked[id]?.path ?? "") }
        var mounts = Set(folder.mounts)
        absentMounts = []
        for (name, episodes) in files where mounts.contains(name) != sight.mounts.contains(name) {
            if sight.mounts.contains(name) {
                if episodes.contains(where: intact.contains) { mounts.insert(name) }
            } else if intact.isSuperset(of: episodes) {
                mounts.remove(name)
            } else {
                absentMounts.insert(name)
            }
        }
        folder.mounts = mounts.filter { files[$0] != nil }.sorted()
        change.know(folder)
        tellAway(absentMounts.sorted().map { "\(root)/\($0)" }, &change, now: now)
        let believed = found.filter { id, _ in
            asked[id].map { !absentMounts.contains(Self.folder(of: $0.path)) } ?? false
        }
        return (believed, effects)
    }

    private static func folder(of path: String) -> String { String(path.prefix { $0 != "/" }) }

    private static func newMarker(_ root: String, now: Moment) -> String {
        AlertID.derived(from: "folder/\(root)/\(now.wall.milliseconds)/\(now.monotonic)").text
    }

    /// A transfer has found another folder than was meant: it waits, and that was no try.
    mutating func found(another download: WireDownload, now: Moment) -> [Effect] {
        var waits = download
        waits.state = .queued
        var change = change
        change.put(waits)
        isAway = true
        surveysWhenBack = true
        return commit(change) + review(now: now)
    }

    /// Whether it is known which folder is there; before there was one, any will do.
    var isFolderKnown: Bool { isFolderSeen || book.current.folder.marker.isEmpty }

    /// The folder bears a marker.
    mutating func marked(_ marker: String) -> [Effect] {
        isMarking = false
        guard book.current.folder.marker.isEmpty else { return [] }
        var change = change
        var folder = change.book.folder
        folder.marker = marker
        change.know(folder)
        return commit(change)
    }

    /// What the place of a file waits for; nil: it is there.
    func absence(of download: WireDownload) -> String? {
        if isAway { return "the folder of downloads, which is not there" }
        guard !absentMounts.isEmpty else { return nil }
        let name = Self.folder(of: relative(download.path) ?? path(of: download))
        return absentMounts.contains(name) ? "the disk of its folder, “\(name)”" : nil
    }

    /// Whoever answers so has no other disk: what is not in the folder is not downloaded.
    mutating func acceptFolder(_ change: inout BookChange) {
        change.know(WireDownloadsFolder())
        isAway = false
        isMarking = false
        absentMounts = []
    }

    /// One alert for as long as these folders are away; one that was dismissed is not raised again in this life.
    private mutating func tellAway(_ places: [String], _ change: inout BookChange, now: Moment) {
        guard places != awayPlaces || places.isEmpty else { return }
        awayPlaces = places
        let alert = awayAlert(places, now: now)
        change.endAlerts { $0.code == Self.awayCode && (places.isEmpty || $0.message != alert.message) }
        guard !places.isEmpty, !change.book.alerts.standing.values.contains(where: { $0.code == Self.awayCode }) else {
            return
        }
        change.raise(alert)
    }

    private func awayAlert(_ places: [String], now: Moment) -> WireAlert {
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(Self.awayCode)/\(places)/\(now.wall.milliseconds)").text
        alert.code = Self.awayCode
        alert.title = "Downloaded files are out of reach"
        let names = places.prefix(3).joined(separator: ", ")
        let more = places.count > 3 ? " and \(places.count - 3) more" : ""
        let verb = places.count == 1 ? "is not the folder" : "are not the folders"
        alert.message =
            "\(names)\(more) \(verb) that downloads were put into; perhaps a disk is not there. Nothing is downloaded "
            + "into it until it is back. If its files are gone for good, answer with accept."
        alert.severity = .warning
        alert.actions = ["accept", "dismiss"]
        alert.raisedAt = now.wall.milliseconds
        alert.owner = Self.owner.text
        return alert
    }
}
