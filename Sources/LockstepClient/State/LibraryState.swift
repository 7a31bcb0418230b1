public import PodcastModel
package import WireMessages

/// A queue: Up Next, or another one.
public struct QueueState: Sendable, Hashable {
    /// An entry: an episode in the queue. The same episode may be in several.
    public struct Entry: Sendable, Hashable {
        /// Its ID.
        public let id: String
        /// The episode.
        public let episode: EpisodeSummary
        /// When it was added.
        public let addedAt: Timestamp
        /// Who or which rule has added it, in words; empty: not known.
        public let reason: String
    }

    package let wire: WireQueueState

    init(_ wire: WireQueueState) {
        self.wire = wire
    }

    /// Its name; that of Up Next is `main`.
    public var name: String { wire.name.isEmpty ? QueueName.usual : wire.name }
    /// Its name as sentences say it: Up Next, or the name in quotation marks.
    public var title: String { wire.shownName }
    /// The number of its changes so far.
    public var revision: UInt64 { wire.revision }
    /// The entries, in order.
    public var entries: [Entry] {
        wire.entries.map { entry in
            Entry(
                id: entry.id, episode: EpisodeSummary(entry.episode),
                addedAt: Timestamp(milliseconds: entry.addedAt), reason: DisplayText.sanitised(entry.reason))
        }
    }
    /// The ID of the current entry; nil: none is.
    public var current: String? { wire.current.isEmpty ? nil : wire.current }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// Something that went wrong or needs a decision.
public struct AlertState: Sendable, Hashable {
    /// How serious it is.
    public enum Severity: Sendable, Hashable {
        /// For information.
        case info
        /// Something isn’t as it should be.
        case warning
        /// Something doesn’t work.
        case error
    }

    package let wire: WireAlert

    init(_ wire: WireAlert) {
        self.wire = wire
    }

    /// Its ID.
    public var id: String { wire.id }
    /// The service that has raised it.
    public var owner: String { wire.owner }
    /// A stable word for its kind.
    public var code: String { wire.code }
    /// How serious it is.
    public var severity: Severity {
        switch wire.severity {
        case .error: .error
        case .warning: .warning
        case .info, .unknown, .UNRECOGNIZED: .info
        }
    }
    /// What has happened, in a few words.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The whole story, and what can be done.
    public var message: String { DisplayText.sanitised(wire.message) }
    /// The answers that it takes, as `AlertsClient.answer` does.
    public var actions: [String] { wire.actions.map { DisplayText.sanitised($0) } }
    /// When it was raised.
    public var raisedAt: Timestamp { Timestamp(milliseconds: wire.raisedAt) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// A podcast.
public struct Podcast: Sendable, Hashable {
    package let wire: WirePodcast

    init(_ wire: WirePodcast) {
        self.wire = wire
    }

    /// Its ID.
    public var id: String { wire.id }
    /// Its title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// Its author.
    public var author: String { DisplayText.sanitised(wire.author) }
    /// The address of its feed.
    public var url: String { wire.url }
    /// How many episodes of it are known.
    public var episodeCount: Int { Int(wire.episodeCount) }
    /// Whether it is refreshed.
    public var isSubscribed: Bool { wire.subscribed }
    /// Why the last refresh failed; nil: it didn’t.
    public var error: String? { wire.errorCode.isEmpty ? nil : DisplayText.sanitised(wire.errorMessage) }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// An episode, as the database has it.
public struct Episode: Sendable, Hashable {
    package let wire: WireEpisode

    init(_ wire: WireEpisode) {
        self.wire = wire
    }

    /// Its ID.
    public var id: String { wire.id }
    /// Its title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The ID of its podcast.
    public var podcastID: String { wire.podcastID }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// When it was published; nil: unknown.
    public var published: Timestamp? { wire.published == 0 ? nil : Timestamp(milliseconds: wire.published) }
    /// Its length in seconds; nil: unknown.
    public var duration: Double? { wire.knownDuration > 0 ? wire.knownDuration : nil }
    /// Where it goes on, in seconds.
    public var position: Double { wire.state.position }
    /// Whether it counts as played.
    public var isPlayed: Bool { wire.state.played }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// The file of an episode: there, on its way, or failed.
public struct DownloadState: Sendable, Hashable {
    /// How far a download is.
    public enum Status: Sendable, Hashable {
        /// It waits for its turn, or for what `waitsFor` says.
        case queued
        /// Bytes come.
        case downloading
        /// It was paused; what has come is kept.
        case paused
        /// The file is there.
        case downloaded
        /// It failed for good.
        case failed(Failure)
        /// The file is gone, or was never asked for.
        case notDownloaded
    }

    package let wire: WireDownload

    init(_ wire: WireDownload) {
        self.wire = wire
    }

    /// The episode’s ID.
    public var episode: String { wire.episode }
    /// The episode’s title.
    public var title: String { DisplayText.sanitised(wire.title) }
    /// The title of its podcast.
    public var podcast: String { DisplayText.sanitised(wire.podcastTitle) }
    /// How far it is.
    public var status: Status {
        switch wire.state {
        case .queued: .queued
        case .downloading: .downloading
        case .paused: .paused
        case .downloaded: .downloaded
        case .failed: .failed(wire.error.failure)
        case .notDownloaded, .UNRECOGNIZED: .notDownloaded
        }
    }
    /// The bytes that have come.
    public var receivedBytes: UInt64 { wire.receivedBytes }
    /// The length of the file in bytes; nil: unknown.
    public var totalBytes: UInt64? { wire.totalBytes == 0 ? nil : wire.totalBytes }
    /// The file’s path; nil: there is none yet.
    public var path: String? { wire.path.isEmpty ? nil : wire.path }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// The sound devices.
public struct OutputState: Sendable, Hashable {
    /// A sound device.
    public struct Device: Sendable, Hashable {
        /// The name that `PlayerClient.setOutput` takes.
        public let name: String
        /// What people call it.
        public let title: String
    }

    package let wire: WireOutputState

    init(_ wire: WireOutputState) {
        self.wire = wire
    }

    /// The device that was chosen; nil: the system’s default.
    public var chosen: String? { wire.chosen.isEmpty ? nil : wire.chosen }
    /// The device in use; nil: none, or not known.
    public var inUse: String? { wire.inUse.isEmpty ? nil : wire.inUse }
    /// The devices that are there.
    public var devices: [Device] {
        wire.devices.map { Device(name: $0.name, title: DisplayText.sanitised($0.description_p)) }
    }
    /// The documented object.
    public var json: JSONValue { wire.json }
}

/// A service of the fleet.
public struct ServiceState: Sendable, Hashable {
    package let wire: WireServiceStatus

    init(_ wire: WireServiceStatus) {
        self.wire = wire
    }

    /// Its name, without a prefix.
    public var name: String { wire.name }
    /// Whether it serves.
    public var isReady: Bool { wire.state == .ready }
}
