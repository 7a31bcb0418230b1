import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What the service stores.
struct DownloadsBook: Sendable {
    var downloads: [String: WireDownload] = [:]
    /// What became of files that are gone.
    var past: [String: WirePastDownload] = [:]
    var settings = OwnerSettings(.downloads)
    /// By what the folder is known again.
    var folder = WireDownloadsFolder()
    var alerts = OwnerAlerts(.downloads)

    /// Everything, for a database that has lost it.
    var everything: [WireChange] {
        downloads.keys.sorted().compactMap { id in downloads[id].map { .putting("download", id, $0) } }
            + past.keys.sorted().compactMap { id in past[id].map { .putting("past", id, $0) } }
            + settings.everything
            + (folder == WireDownloadsFolder() ? [] : [.putting("folder", "downloads", folder)])
            + alerts.everything
    }

    /// Everything, for the stream.
    var retained: [Publication] {
        downloads.keys.sorted().compactMap { downloads[$0].map(Self.publication) } + settings.retained
            + alerts.retained
    }

    /// How many other downloads of its podcast `keepDownloads` prefers to this one; failed ones don’t count.
    func newerDownloads(than download: WireDownload) -> Int {
        downloads.values.count {
            $0.podcastID == download.podcastID && $0.episode != download.episode && $0.state != .failed
                && $0.retentionOrder > download.retentionOrder
        }
    }

    static func publication(_ download: WireDownload) -> Publication {
        download.state == .notDownloaded
            ? Publication(.delete, .download(download.episode))
            : Publication(.put, .download(download.episode), download.wireBytes)
    }
}

/// A change of the book, with what it writes and publishes.
struct BookChange: Sendable {
    private(set) var book: DownloadsBook
    private(set) var changes: [WireChange] = []
    private(set) var publications: [Publication] = []
    /// What is done once it is durable.
    var actions: [DownloadsAction] = []

    /// The most files that are gone and are remembered.
    private static let pastLimit = 1_000

    init(_ book: DownloadsBook) { self.book = book }

    var isEmpty: Bool { changes.isEmpty }

    /// Writes a download as it is from now on; one that is not downloaded any more goes.
    mutating func put(_ download: WireDownload) {
        let before = book.downloads[download.episode]
        guard before != download else { return }
        if let before, before.isQuarantined, !download.isQuarantined {
            actions.append(.release(episode: download.episode))
        }
        if download.state == .notDownloaded {
            book.downloads[download.episode] = nil
            changes.append(.deleting("download", download.episode))
        } else {
            book.downloads[download.episode] = download
            changes.append(.putting("download", download.episode, download))
        }
        publications.append(DownloadsBook.publication(download))
    }

    /// Notes why a file is gone, or did not come; with a path the file is to be deleted yet.
    mutating func note(
        _ episode: String, _ reason: String, path: String = "", isUnfinished: Bool = false, at: Timestamp
    ) {
        var past = WirePastDownload()
        past.episode = episode
        past.reason = reason
        past.at = at.milliseconds
        past.path = path
        past.unfinished = isUnfinished
        book.past[episode] = past
        changes.append(.putting("past", episode, past))
        let settled = book.past.values.lazy.filter(\.path.isEmpty)
        guard book.past.count > Self.pastLimit, let oldest = settled.min(by: { $0.at < $1.at }) else { return }
        book.past[oldest.episode] = nil
        changes.append(.deleting("past", oldest.episode))
    }

    /// The file of a note is deleted.
    mutating func settle(_ episode: String) {
        guard var past = book.past[episode], !past.path.isEmpty else { return }
        past.path = ""
        book.past[episode] = past
        changes.append(.putting("past", episode, past))
    }

    /// What is downloaded again is not past.
    mutating func forgetPast(_ episode: String) {
        guard book.past.removeValue(forKey: episode) != nil else { return }
        changes.append(.deleting("past", episode))
    }

    /// Notes by what the folder is known again.
    mutating func know(_ folder: WireDownloadsFolder) {
        guard folder != book.folder else { return }
        book.folder = folder
        changes.append(
            folder == WireDownloadsFolder()
                ? .deleting("folder", "downloads") : .putting("folder", "downloads", folder))
    }

    mutating func set(_ setting: WireSetSetting) throws(Failure) -> Bool {
        guard let change = try book.settings.set(setting) else { return false }
        changes += change.changes
        publications += change.publications
        return true
    }

    /// What was set for a podcast that was forgotten.
    mutating func forgetSettings(of podcast: String) {
        guard let forgotten = book.settings.forget(podcast: podcast) else { return }
        changes += forgotten.changes
        publications += forgotten.publications
    }

    mutating func raise(_ alert: WireAlert) { append(book.alerts.raise(alert)) }

    /// The causes of these alerts are gone.
    mutating func endAlerts(_ isOver: (WireAlert) -> Bool) { append(book.alerts.end(where: isOver)) }

    /// Answers an alert; false: the same answer was given before.
    mutating func answer(_ answer: WireAnswerAlert, at time: Timestamp) throws(Failure) -> Bool {
        guard let change = try book.alerts.answer(answer, at: time) else { return false }
        append(change)
        return true
    }

    private mutating func append(_ change: OwnerChange) {
        changes += change.changes
        publications += change.publications
    }
}
