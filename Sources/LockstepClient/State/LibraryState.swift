public import PodcastModel
import SwiftProtobuf
package import WireMessages

/// A podcast that is subscribed to, or was.
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
    /// The podcast’s author.
    public var author: String { DisplayText.sanitised(wire.author) }
    /// The address of its feed.
    public var url: String { DisplayText.sanitised(wire.url) }
    /// The number of its episodes.
    public var episodeCount: Int { Int(wire.episodeCount) }
    /// The number of its episodes that don’t count as played; 0 unless the library was asked.
    public var unplayedCount: Int { Int(wire.unplayedCount) }
    /// Whether it is refreshed.
    public var isSubscribed: Bool { wire.subscribed }
    /// The time of the last refresh; nil: never refreshed.
    public var lastRefresh: Timestamp? { wire.lastRefresh == 0 ? nil : Timestamp(milliseconds: wire.lastRefresh) }
    /// Why the last refresh failed; nil: it didn’t.
    public var error: String? { wire.errorCode.isEmpty ? nil : DisplayText.sanitised(wire.errorMessage) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// An episode, as the library knows it.
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
    /// The ID of its podcast; nil: not known.
    public var podcastID: PodcastID? { PodcastID(wire.podcastID) }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// The time of its publication; nil: unknown.
    public var published: Timestamp? { wire.published == 0 ? nil : Timestamp(milliseconds: wire.published) }
    /// Its length in seconds, as measured or else as announced; nil: unknown.
    public var duration: Double? { wire.knownDuration > 0 ? wire.knownDuration : nil }
    /// The position at which it resumes, in seconds.
    public var position: Double { wire.state.position }
    /// Whether it counts as played.
    public var isPlayed: Bool { wire.state.played }
    /// Why it counts as played or doesn’t, in words; empty: it never changed.
    public var playedReason: String { DisplayText.sanitised(wire.state.reason) }
    /// Its show notes, HTML as the feed has it; not safe for a terminal.
    public var notes: String { wire.description_p }
    /// The address of its page; empty: it has none.
    public var link: String { DisplayText.sanitised(wire.link) }
    /// The address of its audio.
    public var audio: String { DisplayText.sanitised(wire.enclosureURL) }
    /// Its chapters, in order, where it was asked for by its ID.
    public var chapters: [ChapterState] { ChapterState.list(wire.chapters, duration: wire.knownDuration) }
    /// Whether it has chapters that the feed names, not those of the audio file alone.
    package var hasChaptersOfFeed: Bool { !wire.chapters.isEmpty && !wire.chaptersOfFile }
    /// Its file, where it was asked for by its ID; nil: it has none.
    public var download: DownloadState? { wire.hasDownload ? DownloadState(wire.download) : nil }
    /// The object that `lockstep episodes --json` documents.
    public var json: JSONValue { wire.json }
    /// The object that `lockstep show --json` documents, without what the player and the queues add.
    package var detailJSON: JSONValue { wire.detailJSON }
}

/// The progress of listening to an episode.
public struct EpisodeProgress: Sendable, Hashable {
    /// The episode’s ID.
    public let episode: EpisodeID
    /// The position at which it resumes, in seconds.
    public let position: Double
    /// Whether it counts as played.
    public let isPlayed: Bool
    /// The reason why it counts as played or doesn’t, in words; empty: that never changed.
    public let reason: String
    /// The documented object.
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
    /// Its note; empty: none.
    public var note: String { DisplayText.sanitised(wire.note) }
    /// The time at which it was added.
    public var createdAt: Timestamp { Timestamp(milliseconds: wire.createdAt) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// The file of an episode: there, on its way, or failed.
public struct DownloadState: Sendable, Hashable {
    /// The state of a download.
    public enum Status: Sendable, Hashable {
        /// It waits for its turn, or for what `waitsFor` says.
        case queued
        /// Its bytes are arriving.
        case downloading
        /// It was paused; its partial file is kept.
        case paused
        /// The file is there.
        case downloaded
        /// It failed for good.
        case failed(Failure)
        /// The file is gone, or was never asked for.
        case notDownloaded
    }

    package let wire: WireDownload
    /// The episode’s ID.
    public let episode: EpisodeID
    /// The rate at which bytes arrive; nil: not known.
    public let bytesPerSecond: Double?
    /// Whether the service has said how far it is since the connection began: what it retains is up to 10 s old.
    package let isAnnounced: Bool

    /// A download as its service names it, and how far it is; nil: it has no readable ID.
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

    /// The download of an episode that has none any more.
    package init(without episode: EpisodeID) {
        self.episode = episode
        wire = .with { $0.episode = episode.text }
        (bytesPerSecond, isAnnounced) = (nil, false)
    }

    /// The episode’s title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The ID of its podcast; nil: not known.
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
    /// The bytes that have arrived.
    public var receivedBytes: UInt64 { wire.receivedBytes }
    /// The length of the file in bytes; nil: unknown.
    public var totalBytes: UInt64? { wire.totalBytes == 0 ? nil : wire.totalBytes }
    /// The file’s path; nil: there is none yet.
    public var path: String? { wire.path.isEmpty ? nil : DisplayText.sanitised(wire.path) }
    /// The condition that a queued one waits for, in words; empty: its turn.
    public var waitsFor: String { DisplayText.sanitised(wire.waitsFor) }
    /// A remark for people, a sentence; empty: none.
    public var note: String { DisplayText.sanitised(wire.note) }
    /// The time at which it was requested.
    public var requestedAt: Timestamp { Timestamp(milliseconds: wire.requestedAt) }
    /// The time at which it was finished; nil: it isn’t.
    public var finishedAt: Timestamp? { wire.finishedAt == 0 ? nil : Timestamp(milliseconds: wire.finishedAt) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}
