import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension WireDownload {
    /// The factor by which a file must be smaller than announced before the download’s note mentions it: sizes in feeds
    /// are often outdated or don’t include the advertisements.
    private static let smallness: UInt64 = 10
    /// Announced sizes under this, in bytes, are ignored: many feeds announce the duration in seconds, or 1.
    private static let minimumSize: UInt64 = 1_000_000

    /// Creates a download of an episode of the library, not requested yet.
    ///
    /// - Throws: `notFound`, `episodeUnavailable`, `badURL`.
    init(of episode: WireEpisode?, _ id: String) throws(Failure) {
        guard let episode else { throw Failure(.notFound, "There is no episode “\(id)”; nothing was added.") }
        guard !episode.enclosureURL.isEmpty else {
            throw Failure(.episodeUnavailable, "“\(episode.title)” has no audio to download.")
        }
        guard let address = WebAddress(episode.enclosureURL) else { throw .unusableAddress(episode.enclosureURL) }
        guard !address.isFile else {
            throw Failure(.badURL, "“\(episode.title)” is a file on this machine; there is nothing to download.")
        }
        self.init()
        self.episode = id
        title = episode.title
        podcastID = episode.podcastID
        podcastTitle = episode.podcastTitle
        url = episode.enclosureURL
        contentType = episode.enclosureType
        announcedBytes = episode.enclosureLength
        setDate(of: episode)
    }

    mutating func setDate(of episode: WireEpisode) {
        published = episode.published == 0 ? episode.firstSeen : episode.published
    }

    /// Records a client’s request; the rules for automatic downloads no longer apply.
    mutating func request(by origin: String, at time: Timestamp) {
        requestedAt = time.milliseconds
        automatic = false
        reason = "requested \(CommandOrigin(origin).phrase)"
    }

    mutating func begin(requestedBy origin: String, at time: Timestamp) {
        request(by: origin, at: time)
        begin()
    }

    /// Begins the download at once for a client, without waiting for its rule’s hours or its next attempt.
    /// - Returns: whether that changes anything.
    mutating func beginNow(for origin: String, at time: Timestamp) -> Bool {
        let waits = state == .queued && (!waitsFor.isEmpty || nextAttempt > 0)
        let isActive = state == .queued || state == .downloading
        guard waits || isActive && automatic else { return false }
        if waits { begin() }
        request(by: origin, at: time)
        return true
    }

    /// Queues the download and resets its attempts.
    mutating func begin() {
        state = .queued
        attempt = 0
        nextAttempt = 0
        waitsFor = ""
        clearError()
    }

    /// Replaces the download’s address with the current address of the episode’s audio.
    mutating func move(to other: WireDownload) {
        // URLs that differ only in the query usually refer to the same file; if not, the server reports another
        // version. Any other address counts as another file.
        if url.prefix(while: { $0 != "?" }) != other.url.prefix(while: { $0 != "?" }) {
            (etag, lastModified, receivedBytes) = ("", "", 0)
            (totalBytes, path, note) = (0, "", "")
        }
        url = other.url
        contentType = other.contentType
        announcedBytes = other.announcedBytes
    }

    /// The order of `keepDownloads`, which keeps the greatest values: the publication date, or the date of a client’s
    /// request, so that requesting an old episode doesn’t delete it at once.
    var retentionOrder: (Int64, String) {
        (automatic ? published : max(published, requestedAt), episode)
    }

    /// The order in which transfers begin: older requests first; of one rule’s episodes, the newest first.
    var startOrder: (Int64, Int64, String) { (requestedAt, automatic ? -published : 0, episode) }

    /// Whether the download failed because the network or the server could not be reached.
    var isUnreachable: Bool { state == .failed && error.code == FailureCode.unreachable.rawValue }

    /// Whether the download was quarantined because it crashed the service repeatedly.
    var isQuarantined: Bool { state == .failed && error.code == FailureCode.quarantined.rawValue }

    func failureAlert(now: Moment) -> WireAlert {
        WireAlert(
            "downloadFailed", of: .downloads, named: "downloadFailed/\(episode)/\(now.wall.milliseconds)",
            title: "A download has failed", message: "“\(title)” couldn’t be downloaded: \(error.message)",
            actions: ["retry", "dismiss"], episode: episode, podcast: podcastID, at: now.wall)
    }

    /// The path of its file, relative to the download folder.
    var targetPath: String {
        DownloadName.path(podcast: podcastTitle, title: title, episode: episode, type: contentType, url: url)
    }

    var version: FileVersion { FileVersion(etag: etag, lastModified: lastModified) }

    /// The maximum number of bytes of its partial file that are kept. The last byte of a complete file is fetched
    /// again, so that the server confirms its version.
    var resumableBytes: UInt64 {
        guard !version.condition.isEmpty else { return 0 }
        return totalBytes > 0 ? totalBytes - 1 : .max
    }

    /// Explains in the note why the download can’t be continued after an interruption: its server doesn’t identify the
    /// version of the file, or doesn’t send parts of it.
    mutating func explainRestarts(isPartRefused: Bool) {
        let host = WebAddress(url)?.host ?? "its server"
        let hasVersion = !version.condition.isEmpty
        let reason = hasVersion ? "doesn’t support partial requests" : "doesn’t identify the version of the file"
        note =
            hasVersion && !isPartRefused ? "" : "If it is interrupted, it starts from the beginning: \(host) \(reason)."
    }

    /// Records that the file is complete and at its path.
    mutating func complete(_ bytes: UInt64, at path: String, _ time: Timestamp) {
        state = .downloaded
        self.path = path
        receivedBytes = bytes
        totalBytes = bytes
        finishedAt = time.milliseconds
        attempt = 0
        waitsFor = ""
        clearError()
        note = ""
        guard announcedBytes >= Self.minimumSize, totalBytes < announcedBytes / Self.smallness else { return }
        let (whole, tenth) = (announcedBytes / 1_000_000, announcedBytes / 100_000 % 10)
        note = "Its feed announces \(whole).\(tenth) MB; the server may have sent something else."
    }
}

extension WireDownload.State {
    /// The state as text for messages.
    var word: String {
        switch self {
        case .queued: "waiting"
        case .downloading: "being downloaded"
        case .paused: "paused"
        case .downloaded: "downloaded"
        case .failed: "failed"
        case .notDownloaded, .UNRECOGNIZED: "not downloaded"
        }
    }
}
