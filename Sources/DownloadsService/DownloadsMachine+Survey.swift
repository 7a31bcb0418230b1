import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// The folder, compared with the book.

extension DownloadsMachine {
    /// Has the folder surveyed.
    mutating func survey() -> Effect {
        surveying = downloaded
        return .perform(.survey)
    }

    /// The folder is compared with the book, if it is the one that is meant. Files that nobody knows are left alone.
    mutating func surveyed(_ files: [String: UInt64], _ sight: FolderSight, now: Moment) -> [Effect] {
        var change = change
        var known: Set<String> = Set(book.current.past.values.map(\.path))
        var whole: [String] = []
        let asked = surveying.mapValues { files[$0.path].map(FoundFile.file) ?? .nothing }
        let (found, effects) = believe(asked, sight, asked: surveying, &change, now: now)
        guard !isAway else { return commit(change) + effects }
        surveysWhenBack = false
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode }) {
            guard let path = relative(download.path) else { continue }
            known.insert(path)
            let size = files[path]
            switch download.state {
            case .downloaded:
                guard let found = found[download.episode], found != .file(download.totalBytes) else { continue }
                leaveWithoutFile(download, isThere: found != .nothing, &change, now: now)
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
        if !unknown.isEmpty, book.current.alerts.standing[alert.id] == nil,
            !book.current.alerts.isAnswered(alert.id)
        {
            change.raise(alert)
        }
        return commit(change) + effects + deletePast() + whole.map { .perform(.discard(episode: $0)) }
            + unknown.prefix(20).map { .log(.info, "unknown file in the folder of downloads: \($0)") }
    }

    /// Nothing is deleted: what is there now is not as we left it.
    func leaveWithoutFile(
        _ download: WireDownload, isThere: Bool, _ change: inout BookChange, now: Moment
    ) {
        let reason = isThere ? "its file was not the one that was downloaded" : "its file was not there any more"
        change.note(download.episode, reason, at: now.wall)
        var gone = download
        gone.state = .notDownloaded
        change.put(gone)
    }

    // MARK: Other files

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

    /// What was to be deleted, and was not yet.
    private func deletePast() -> [Effect] {
        book.current.past.values.sorted { $0.episode < $1.episode }.filter { !$0.path.isEmpty }.map {
            .perform(.delete(episode: $0.episode, path: $0.path, folder: book.current.folder.marker))
        }
    }

    mutating func deleted(_ episode: String, _ failure: Failure?) -> [Effect] {
        var change = change
        // What could not be deleted is deleted after the next start; what is not ours never.
        if failure?.retry != true { change.settle(episode) }
        let log = failure.map { Effect.log(.warning, "the file of \(episode) was not deleted: \($0)") }
        return commit(change) + (log.map { [$0] } ?? [])
    }
}
