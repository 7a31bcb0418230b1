import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension WireDownload {
    /// The note mentions a file that is smaller than its feed announces by this factor: sizes in feeds are often old
    /// or don’t include the advertisements.
    private static let smallness: UInt64 = 10
    /// Announced sizes under this, in bytes, are ignored: many feeds give the seconds, or 1.
    private static let minimumSize: UInt64 = 1_000_000

    /// Creates a download of an episode of the library, not requested yet.
    ///
    /// - Throws: `notFound`, `episodeUnavailable`, `badURL`.
    init(of episode: WireEpisode?, _ id: String) throws(Failure) {
        guard let episode else { throw Failure(.notFound, "There is no episode “\(id)”; nothing was added.") }
        guard !episode.enclosureURL.isEmpty else {
            throw Failure(.episodeUnavailable, "“\(episode.title)” has no audio that could be downloaded.")
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

    /// Records that a client has requested it, perhaps again; rules no longer apply to it.
    mutating func request(by origin: String, at time: Timestamp) {
        requestedAt = time.milliseconds
        automatic = false
        reason = "requested \(CommandOrigin(origin).phrase)"
    }

    mutating func begin(requestedBy origin: String, at time: Timestamp) {
        request(by: origin, at: time)
        begin()
    }

    /// Begins it at once for a client, instead of at the hour of its rule or its next attempt.
    /// - Returns: whether that changes anything.
    mutating func hasten(for origin: String, at time: Timestamp) -> Bool {
        let waits = state == .queued && (!waitsFor.isEmpty || nextAttempt > 0)
        let isActive = state == .queued || state == .downloading
        guard waits || isActive && automatic else { return false }
        if waits { begin() }
        request(by: origin, at: time)
        return true
    }

    /// Queues it with all attempts left.
    mutating func begin() {
        state = .queued
        attempt = 0
        nextAttempt = 0
        waitsFor = ""
        clearError()
    }

    /// Changes it to the present address of the episode’s audio.
    mutating func move(to other: WireDownload) {
        // Many URLs are signed anew each time and refer to the same file, or the server reports otherwise. Data from
        // another address is of another version.
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

    /// The order in which transfers begin: older requests first, and the newest first of one rule’s episodes.
    var startOrder: (Int64, Int64, String) { (requestedAt, automatic ? -published : 0, episode) }

    /// Whether it has failed because the network, or the server, could not be reached.
    var isUnreachable: Bool { state == .failed && error.code == FailureCode.unreachable.rawValue }

    /// Whether it was set aside because it crashed the service repeatedly.
    var isQuarantined: Bool { state == .failed && error.code == FailureCode.quarantined.rawValue }

    func failureAlert(now: Moment) -> WireAlert {
        WireAlert(
            "downloadFailed", of: .downloads, named: "downloadFailed/\(episode)/\(now.wall.milliseconds)",
            title: "A download has failed", message: "“\(title)” couldn’t be downloaded: \(error.message)",
            actions: ["retry", "dismiss"], episode: episode, podcast: podcastID, at: now.wall)
    }

    /// The path of its file, relative to the folder of downloads.
    var targetPath: String {
        DownloadName.path(podcast: podcastTitle, title: title, episode: episode, type: contentType, url: url)
    }

    var version: FileVersion { FileVersion(etag: etag, lastModified: lastModified) }

    /// The most bytes of its partial file that can be continued. The last one is fetched again, so that the server
    /// confirms the version of a complete file too.
    var resumableBytes: UInt64 {
        guard !version.condition.isEmpty else { return 0 }
        return totalBytes > 0 ? totalBytes - 1 : .max
    }

    /// Explains in its note why it can’t be continued after an interruption: its server doesn’t identify the version of
    /// the file, or doesn’t send parts of it.
    mutating func explainRestarts(isPartRefused: Bool) {
        let host = WebAddress(url)?.host ?? "its server"
        let hasVersion = !version.condition.isEmpty
        let reason = hasVersion ? "sends no parts of files" : "doesn’t say which version of the file it sends"
        note = hasVersion && !isPartRefused ? "" : "It starts over after each interruption: \(host) \(reason)."
    }

    /// Records that the file is complete and at its path.
    mutating func complete(_ bytes: UInt64, at place: String, _ time: Timestamp) {
        state = .downloaded
        path = place
        receivedBytes = bytes
        totalBytes = bytes
        finishedAt = time.milliseconds
        attempt = 0
        waitsFor = ""
        clearError()
        note = ""
        guard announcedBytes >= Self.minimumSize, totalBytes < announcedBytes / Self.smallness else { return }
        let (whole, tenth) = (announcedBytes / 1_000_000, announcedBytes / 100_000 % 10)
        note = "Its feed announces \(whole).\(tenth) MB; perhaps the server sent something else."
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
