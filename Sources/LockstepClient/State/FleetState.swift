package import BusKit
public import PodcastModel
import SwiftProtobuf
import WireMessages

/// The state of a connection to the bus.
public enum Connection: Sendable, Hashable {
    /// The connection has not been live yet.
    case connecting
    /// The state is current, except for stale parts.
    case live
    /// The connection is broken or the state is being read again; its values may be out of date.
    case reconnecting
    /// The connection has ended permanently, with a failure or, with nil, by `disconnect`.
    case ended(Failure?)
}

/// An immutable snapshot of the fleet’s state, restricted to the parts that a connection observes.
public struct FleetState: Sendable {
    package internal(set) var view: FleetView
    let selection: TopicSelection?
    /// The reason for the connection’s end; set when it has ended.
    var ending: Failure??

    package init(_ view: FleetView, observing selection: TopicSelection? = .all) {
        (self.view, self.selection) = (view, selection)
    }

    /// The state of the connection to the bus.
    public var connection: Connection {
        if let ending { return .ended(ending) }
        return switch view.connection {
        case .connecting: .connecting
        case .live: .live
        case .resyncing, .disconnected: .reconnecting
        }
    }

    /// Whether a part may be out of date or incomplete: the connection isn’t live or doesn’t observe it, or the part’s
    /// service isn’t ready.
    public func isStale(_ part: FleetPart) -> Bool {
        connection != .live || !observes(part) || part.owner.map { !isReady($0) } ?? false
    }

    func observes(_ part: FleetPart) -> Bool {
        selection.map { selection in part.prefixes.allSatisfy { selection.contains(Topic($0)) } } ?? false
    }

    /// Whether a service is ready; otherwise its published values may be out of date.
    public func isReady(_ service: ServiceName) -> Bool { !view.isStale(service) }

    /// The player and its episode.
    public var player: PlayerState { view.player.map(PlayerState.init) ?? .unknown }

    /// The queue that plays and the entry that follows; nil if not known.
    public var next: NextState? { view.next.map(NextState.init) }

    /// The queues: Up Next, then the others by name.
    public var queues: [QueueState] {
        view.queueStates.values.sorted { ($0.isUpNext ? 0 : 1, $0.name) < ($1.isUpNext ? 0 : 1, $1.name) }
    }

    /// The playlists: the favourites, then the others by title.
    public var playlists: [PlaylistState] {
        func key(_ list: PlaylistState) -> (Int, String, String) {
            (list.id == PlaylistName.favourites ? 0 : 1, list.title, list.id)
        }
        return view.playlists.values.map(PlaylistState.init).sorted { key($0) < key($1) }
    }

    /// Returns a queue by its name, such as “main”; nil if it doesn’t exist.
    public func queue(_ name: String) -> QueueState? { view.queueStates[name] }

    /// The queue that continues when the loaded episode ends.
    public var upNext: QueueState {
        let loaded = view.player.map(\.queue) ?? ""
        let name = view.next?.queue ?? (loaded.isEmpty ? QueueName.default : loaded)
        return view.queueStates[name] ?? QueueState(.with { $0.name = name })
    }

    /// The open alerts: errors, then warnings, then information, each from the oldest.
    public var alerts: [AlertState] { view.alertsInOrder.compactMap(AlertState.init) }

    /// The jobs that run or have ended within a minute, the oldest first.
    public var jobs: [JobState] {
        view.jobs.values.compactMap(JobState.init).sorted { ($0.started, $0.id) < ($1.started, $1.id) }
    }

    /// Returns a job by its ID; nil if there is none.
    public func job(_ id: JobID) -> JobState? { view.jobs[id.text].flatMap(JobState.init) }

    /// The podcasts, by title.
    public var podcasts: [Podcast] {
        view.podcasts.values.compactMap(Podcast.init).map { (title: $0.title, podcast: $0) }
            .sorted { ($0.title, $0.podcast.id) < ($1.title, $1.podcast.id) }.map(\.podcast)
    }

    /// Returns a podcast by its ID; nil if it isn’t known.
    public func podcast(_ id: PodcastID) -> Podcast? { view.podcasts[id.text].flatMap(Podcast.init) }

    /// The episodes that are downloaded or requested, the newest request first.
    public var downloads: [DownloadState] {
        view.downloads.values.compactMap(downloadState).sorted {
            ($0.requestedAt, $0.episode) > ($1.requestedAt, $1.episode)
        }
    }

    /// Returns the download of an episode; nil if there is none.
    public func download(of episode: EpisodeID) -> DownloadState? {
        view.downloads[episode.text].flatMap(downloadState)
    }

    private func downloadState(_ download: WireDownload) -> DownloadState? {
        DownloadState(download, progress: view.progress[download.episode])
    }

    /// All bookmarks, grouped by episode in order of position; episodes with the newest bookmarks are first.
    public var bookmarks: [Bookmark] {
        view.bookmarks.values.map { ($0.bookmarks.map(\.createdAt).max() ?? 0, $0) }
            .sorted { $0.0 > $1.0 }.flatMap { Self.bookmarks($0.1) }
    }

    /// Returns an episode’s bookmarks in order of position.
    public func bookmarks(of episode: EpisodeID) -> [Bookmark] {
        view.bookmarks[episode.text].map(Self.bookmarks) ?? []
    }

    private static func bookmarks(_ wire: WireBookmarks) -> [Bookmark] {
        wire.bookmarks.sorted { ($0.position, $0.id) < ($1.position, $1.id) }.compactMap(Bookmark.init)
    }

    /// The settings with their effective values.
    public var settings: SettingValues { SettingValues(view.settings) }

    /// The sound devices; nil before the player has listed them.
    public var output: OutputState? { view.output.map(OutputState.init) }

    /// The services by name.
    public var services: [ServiceState] { view.services.sorted { $0.key < $1.key }.map { ServiceState($0.value) } }
}

/// A part of the state that has changed. The state holds the values.
public enum FleetChange: Sendable, Hashable {
    /// The player or its episode.
    case player
    /// The sound devices.
    case output
    /// The queue that plays, the entry that follows, or the outcome of a load.
    case next
    /// A queue, by name.
    case queue(String)
    /// A playlist or its items, by ID.
    case playlist(String)
    /// A podcast was added, changed or removed.
    case podcast(PodcastID)
    /// A podcast’s episodes.
    case episodes(EpisodesChange)
    /// Episodes were removed from the inbox.
    case inbox
    /// An episode’s position, or whether it counts as played.
    case episode(EpisodeID)
    /// An episode’s bookmarks.
    case bookmarks(EpisodeID)
    /// An episode’s download, or its progress.
    case download(EpisodeID)
    /// An alert was raised, changed or closed.
    case alert
    /// A job began, made progress or ended.
    case job(JobID)
    /// A setting was changed.
    case settings
    /// A service or the database.
    case service(ServiceName)
    /// The connection to the bus.
    case connection
    /// Any part may have changed: the state was read again, or changes were missed.
    case everything
}

/// The episodes of a podcast that were added, changed or removed.
public struct EpisodesChange: Sendable, Hashable {
    /// The podcast’s ID.
    public let podcast: PodcastID
    /// The new episodes.
    public let added: [EpisodeID]
    /// The episodes that have changed.
    public let updated: [EpisodeID]
    /// The episodes that were removed.
    public let removed: [EpisodeID]

    init?(_ change: WireEpisodesChanged) {
        guard let podcast = PodcastID(change.podcast) else { return nil }
        self.podcast = podcast
        added = change.added.compactMap(EpisodeID.init)
        updated = change.updated.compactMap(EpisodeID.init)
        removed = change.removed.compactMap(EpisodeID.init)
    }
}
