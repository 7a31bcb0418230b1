public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A podcast that is or was subscribed to.
public struct Podcast: Sendable, Hashable {
    package let wire: WirePodcast
    /// The podcast’s ID.
    public let id: PodcastID

    package init?(_ wire: WirePodcast) {
        guard let id = PodcastID(wire.id) else { return nil }
        (self.id, self.wire) = (id, wire)
    }

    /// The podcast’s title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The title in its feed, which differs from `title` if the user gave it another one.
    public var feedTitle: String { wire.feedTitle.isEmpty ? title : DisplayText.sanitised(wire.feedTitle) }
    /// The user’s tags, in the order in which they were added.
    public var tags: [String] { wire.tags.map { DisplayText.sanitised($0) } }
    /// The podcast’s author.
    public var author: String { DisplayText.sanitised(wire.author) }
    /// The address of its feed.
    public var url: String { DisplayText.sanitised(wire.url) }
    /// The number of its episodes.
    public var episodeCount: Int { Int(wire.episodeCount) }
    /// The number of its unplayed episodes; 0 if the podcast isn’t from a library query.
    public var unplayedCount: Int { Int(wire.unplayedCount) }
    /// Whether it is refreshed.
    public var isSubscribed: Bool { wire.subscribed }
    /// The time from which on it and everything about it is deleted; nil if it is kept.
    public var deletion: Timestamp? { wire.forgetAt == 0 ? nil : Timestamp(milliseconds: wire.forgetAt) }
    /// The time of the last refresh; nil if there was none.
    public var lastRefresh: Timestamp? { wire.lastRefresh == 0 ? nil : Timestamp(milliseconds: wire.lastRefresh) }
    /// The reason why the last refresh failed; nil if it succeeded.
    public var error: String? { wire.errorCode.isEmpty ? nil : DisplayText.sanitised(wire.errorMessage) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

/// An episode with the library’s values.
public struct Episode: Sendable, Hashable {
    package let wire: WireEpisode
    /// The episode’s ID.
    public let id: EpisodeID

    package init?(_ wire: WireEpisode) {
        guard let id = EpisodeID(wire.id) else { return nil }
        (self.id, self.wire) = (id, wire)
    }

    /// The episode’s title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The ID of its podcast; nil if not known.
    public var podcastID: PodcastID? { PodcastID(wire.podcastID) }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// The time of its publication; nil if unknown.
    public var published: Timestamp? { wire.published == 0 ? nil : Timestamp(milliseconds: wire.published) }
    /// The time at which a refresh first found it.
    public var seen: Timestamp { Timestamp(milliseconds: wire.firstSeen) }
    /// Its length in seconds, measured or else announced; nil if unknown.
    public var duration: Double? { wire.knownDuration > 0 ? wire.knownDuration : nil }
    /// Its measured length in seconds; nil if unknown.
    package var measuredDuration: Double? { wire.state.duration > 0 ? wire.state.duration : nil }
    /// The length after its position, in seconds; 0 if it counts as played; nil if its length is unknown.
    public var remaining: Double? { duration.map { isPlayed ? 0 : max(0, $0 - position) } }
    /// The position at which it resumes, in seconds.
    public var position: Double { wire.state.position }
    /// Whether it counts as played.
    public var isPlayed: Bool { wire.state.played }
    /// The reason for its played mark as text; empty if the mark never changed.
    public var playedReason: String { DisplayText.sanitised(wire.state.reason) }
    /// Whether a refresh found it and the inbox wasn’t cleared since then.
    public var isNew: Bool { wire.flags & WireEpisode.newFlag != 0 }
    /// Its show notes in the feed’s HTML; not safe for a terminal.
    public var notes: String { wire.description_p }
    /// The address of its page; empty if it has none.
    public var link: String { DisplayText.sanitised(wire.link) }
    /// The address of its audio.
    public var audio: String { DisplayText.sanitised(wire.enclosureURL) }
    /// The address of its transcript; empty if it has none.
    public var transcript: String { DisplayText.sanitised(wire.transcriptURL) }
    /// Its chapters in order, if it was queried by its ID.
    public var chapters: [ChapterState] { ChapterState.list(wire.chapters, duration: wire.knownDuration) }
    /// Whether the feed names its chapters; otherwise they are the audio file’s.
    package var hasChaptersOfFeed: Bool { !wire.chapters.isEmpty && !wire.chaptersOfFile }
    /// Its file, if it was queried by its ID; nil if it has none.
    public var download: DownloadState? { wire.hasDownload ? DownloadState(wire.download) : nil }
    /// The object that `lockstep episodes --json` documents.
    public var json: JSONValue { wire.json }
    /// The object that `lockstep show --json` documents, without the members from the player and the queues.
    package var detailJSON: JSONValue { wire.detailJSON }
}

/// The playback progress of an episode.
public struct EpisodeProgress: Sendable, Hashable {
    /// The episode’s ID.
    public let episode: EpisodeID
    /// The position at which it resumes, in seconds.
    public let position: Double
    /// Whether it counts as played.
    public let isPlayed: Bool
    /// The reason for its played mark as text; empty if the mark never changed.
    public let reason: String
    /// The JSON object that `protocols/cli.md` documents.
    public let json: JSONValue

    init?(_ wire: WireEpisodeState) {
        guard let id = EpisodeID(wire.episode) else { return nil }
        (episode, position, isPlayed) = (id, wire.position, wire.played)
        (reason, json) = (DisplayText.sanitised(wire.reason), wire.json)
    }
}

/// A bookmark in an episode.
public struct Bookmark: Sendable, Hashable {
    package let wire: WireBookmark
    /// The bookmark’s ID.
    public let id: BookmarkID
    /// The episode’s ID.
    public let episode: EpisodeID

    package init?(_ wire: WireBookmark) {
        guard let id = BookmarkID(wire.id), let episode = EpisodeID(wire.episode) else { return nil }
        (self.id, self.episode, self.wire) = (id, episode, wire)
    }

    /// Its position, in seconds.
    public var position: Double { wire.position }
    /// The episode’s title when the bookmark was added.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// Its note; empty if it has none.
    public var note: String { DisplayText.sanitised(wire.note) }
    /// The time at which it was added.
    public var createdAt: Timestamp { Timestamp(milliseconds: wire.createdAt) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}

/// The download of an episode: its file, progress or failure.
public struct DownloadState: Sendable, Hashable {
    /// The state of a download.
    public enum Status: Sendable, Hashable {
        /// It is queued, or waits for `waitsFor`.
        case queued
        /// It is being downloaded.
        case downloading
        /// It was paused; its partial file is kept.
        case paused
        /// It is complete.
        case downloaded
        /// It failed permanently.
        case failed(Failure)
        /// It was removed or never requested.
        case notDownloaded
    }

    package let wire: WireDownload
    /// The episode’s ID.
    public let episode: EpisodeID
    /// The download rate; nil if not known.
    public let bytesPerSecond: Double?
    /// Whether the service has sent telemetry since the connection began; the retained value is up to 10 s old.
    package let isAnnounced: Bool

    /// Combines a service’s download with its telemetry; nil if its ID isn’t valid.
    package init?(_ wire: WireDownload, progress: WireDownloadProgress? = nil) {
        guard let id = EpisodeID(wire.episode) else { return nil }
        episode = id
        var now = wire
        if let progress {
            now.receivedBytes = max(now.receivedBytes, progress.receivedBytes)
            if progress.totalBytes > 0 { now.totalBytes = progress.totalBytes }
        }
        self.wire = now
        isAnnounced = progress != nil
        bytesPerSecond = progress.flatMap { $0.bytesPerSecond > 0 ? $0.bytesPerSecond : nil }
    }

    /// Creates the state of an episode whose download was removed.
    package init(without episode: EpisodeID) {
        self.episode = episode
        wire = .with { $0.episode = episode.text }
        (bytesPerSecond, isAnnounced) = (nil, false)
    }

    /// The episode’s title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The ID of its podcast; nil if not known.
    public var podcastID: PodcastID? { PodcastID(wire.podcastID) }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// The state of the download.
    public var status: Status {
        switch wire.state {
        case .queued: .queued
        case .downloading: .downloading
        case .paused: .paused
        case .downloaded: .downloaded
        case .failed: .failed(wire.error.failure.sanitised)
        case .notDownloaded, .UNRECOGNIZED: .notDownloaded
        }
    }
    package var statusWord: String { wire.state.shownWord }
    /// The number of bytes received.
    public var receivedBytes: UInt64 { wire.receivedBytes }
    /// The length of the file in bytes; nil if unknown.
    public var totalBytes: UInt64? { wire.totalBytes == 0 ? nil : wire.totalBytes }
    /// The file’s path; nil if there is none yet.
    public var path: String? { wire.path.isEmpty ? nil : DisplayText.sanitised(wire.path) }
    /// The condition that a queued download waits for, as text; empty if it waits for its turn.
    public var waitsFor: String { DisplayText.sanitised(wire.waitsFor) }
    /// A note for the user as a sentence; empty if there is none.
    public var note: String { DisplayText.sanitised(wire.note) }
    /// The time of the request.
    public var requestedAt: Timestamp { Timestamp(milliseconds: wire.requestedAt) }
    /// The time of completion; nil if it isn’t complete.
    public var finishedAt: Timestamp? { wire.finishedAt == 0 ? nil : Timestamp(milliseconds: wire.finishedAt) }
    /// The JSON object that `protocols/cli.md` documents.
    public var json: JSONValue { wire.json }
}
