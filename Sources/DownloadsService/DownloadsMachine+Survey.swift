import BusKit
import PodcastModel
import WireMessages

// The folder, compared with the book.

extension DownloadsMachine {
    /// The folder is compared with the book. Files that nobody knows are left alone.
    mutating func surveyed(_ files: [String: UInt64], now: Moment) -> [Effect] {
        var change = change
        var known: Set<String> = Set(book.current.past.values.map(\.path))
        var whole: [String] = []
        for var download in book.current.downloads.values.sorted(by: { $0.episode < $1.episode }) {
            guard let path = relative(download.path) else { continue }
            known.insert(path)
            let size = files[path]
            switch download.state {
            case .downloaded where size != download.totalBytes:
                leaveWithoutFile(download, Self.fault(size: size), &change, now: now)
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
        if !unknown.isEmpty, book.current.alerts[alert.id] == nil, book.current.answers[alert.id] == nil {
            change.raise(alert)
        }
        return commit(change) + whole.map { .perform(.discard(episode: $0)) }
            + unknown.prefix(20).map { .log(.info, "unknown file in the folder of downloads: \($0)") }
    }

    /// A file that the player could not use is looked at alone: where a whole disk was taken out, the others may be back
    /// before anybody asks for them.
    mutating func surveyed(_ files: [String: UInt64], about episode: String, now: Moment) -> [Effect] {
        guard let download = book.current.downloads[episode], download.state == .downloaded,
            let path = relative(download.path), files[path] != download.totalBytes
        else { return [] }
        var change = change
        leaveWithoutFile(download, Self.fault(size: files[path]), &change, now: now)
        return commit(change)
    }

    /// What is wrong with a file of this size, in bytes; nil: there is none.
    private static func fault(size: UInt64?) -> String {
        size == nil ? "its file was not there any more" : "its file was not the one that was downloaded"
    }

    /// Nothing is deleted: what is there now is not as we left it.
    private func leaveWithoutFile(
        _ download: WireDownload, _ reason: String, _ change: inout BookChange, now: Moment
    ) {
        change.note(download.episode, reason, at: now.wall)
        var gone = download
        gone.state = .notDownloaded
        change.put(gone)
    }

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

    mutating func deleted(_ episode: String, _ failure: Failure?) -> [Effect] {
        var change = change
        // What could not be deleted is deleted after the next start; what is not ours never.
        if failure?.retry != true { change.settle(episode) }
        let log = failure.map { Effect.log(.warning, "the file of \(episode) was not deleted: \($0)") }
        return commit(change) + (log.map { [$0] } ?? [])
    }
}
