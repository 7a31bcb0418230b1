package import BusKit
public import PodcastModel
import SwiftProtobuf
import WireMessages

/// The state of a connection to the bus.
public enum Connection: Sendable, Hashable {
    /// It has never been in step with the bus.
    case connecting
    /// The state is current, but for the parts that are stale.
    case live
    /// The bus is away or the state is being read again; what the state holds may be old.
    case reconnecting
    /// It has ended for good: because of the failure, or with nil by `disconnect`.
    case ended(Failure?)
}

/// The state of a fleet at one moment, as far as a connection observes it. A value: it never changes.
public struct FleetState: Sendable {
    package internal(set) var view: FleetView
    let selection: TopicSelection?
    /// The reason why the connection has ended; set when it has.
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

    /// Whether a part may be out of date or incomplete: the connection isn’t live or doesn’t observe it, or the part’s service
    /// isn’t ready.
    public func isStale(_ part: FleetPart) -> Bool {
        connection != .live || !observes(part) || part.owner.map { !isReady($0) } ?? false
    }

    func observes(_ part: FleetPart) -> Bool {
        selection.map { selection in part.prefixes.allSatisfy { selection.contains(Topic($0)) } } ?? false
    }

    /// Whether a service serves; what it has published may be out of date otherwise.
    public func isReady(_ service: ServiceName) -> Bool { !view.isStale(service) }

    /// The player and its episode.
    public var player: PlayerState { view.player.map(PlayerState.init) ?? .unknown }

    /// The queue that plays and the entry that follows; nil: not known.
    public var next: NextState? { view.next.map(NextState.init) }

    /// The queues: Up Next, then the others by name.
    public var queues: [QueueState] {
        view.queueStates.values.sorted { ($0.isUpNext ? 0 : 1, $0.name) < ($1.isUpNext ? 0 : 1, $1.name) }
    }

    /// A queue by its name, as in “main”; nil: there is none.
    public func queue(_ name: String) -> QueueState? { view.queueStates[name] }

    /// The queue that goes on when what is loaded ends.
    public var upNext: QueueState {
        let loaded = view.player.map(\.queue) ?? ""
        let name = view.next?.queue ?? (loaded.isEmpty ? QueueName.default : loaded)
        return view.queueStates[name] ?? QueueState(.with { $0.name = name })
    }

    /// The open alerts: errors before warnings before information, and of each the oldest first.
    public var alerts: [AlertState] { view.alertsInOrder.compactMap(AlertState.init) }

    /// The podcasts, by title.
    public var podcasts: [Podcast] {
        view.podcasts.values.compactMap(Podcast.init).map { (title: $0.title, podcast: $0) }
            .sorted { ($0.title, $0.podcast.id) < ($1.title, $1.podcast.id) }.map(\.podcast)
    }

    /// A podcast by its ID; nil: it isn’t known.
    public func podcast(_ id: PodcastID) -> Podcast? { view.podcasts[id.text].flatMap(Podcast.init) }

    /// The episodes that are downloaded, or are to be; the newest request first.
    public var downloads: [DownloadState] {
        view.downloads.values.compactMap(downloadState).sorted {
            ($0.requestedAt, $0.episode) > ($1.requestedAt, $1.episode)
        }
    }

    /// The download of an episode; nil: it is neither downloaded nor to be.
    public func download(of episode: EpisodeID) -> DownloadState? {
        view.downloads[episode.text].flatMap(downloadState)
    }

    private func downloadState(_ download: WireDownload) -> DownloadState? {
        DownloadState(download, progress: view.progress[download.episode])
    }

    /// All bookmarks: those of an episode together, by their positions; the episodes with the newest ones first.
    public var bookmarks: [Bookmark] {
        view.bookmarks.values.map { ($0.bookmarks.map(\.createdAt).max() ?? 0, $0) }
            .sorted { $0.0 > $1.0 }.flatMap { Self.bookmarks($0.1) }
    }

    /// An episode’s bookmarks, by their positions.
    public func bookmarks(of episode: EpisodeID) -> [Bookmark] {
        view.bookmarks[episode.text].map(Self.bookmarks) ?? []
    }

    private static func bookmarks(_ wire: WireBookmarks) -> [Bookmark] {
        wire.bookmarks.sorted { ($0.position, $0.id) < ($1.position, $1.id) }.compactMap(Bookmark.init)
    }

    /// The settings and the values that hold.
    public var settings: SettingValues { SettingValues(view.settings) }

    /// The sound devices; nil: the player hasn’t listed them yet.
    public var output: OutputState? { view.output.map(OutputState.init) }

    /// The services, by name.
    public var services: [ServiceState] { view.services.sorted { $0.key < $1.key }.map { ServiceState($0.value) } }
}

/// A part of the state that has changed. The values are in the state.
public enum FleetChange: Sendable, Hashable {
    /// The player or its episode.
    case player
    /// The sound devices.
    case output
    /// The queue that plays, the entry that follows, or the outcome of a load.
    case next
    /// A queue, by name.
    case queue(String)
    /// A podcast came, changed or went.
    case podcast(PodcastID)
    /// A podcast’s episodes.
    case episodes(EpisodesChange)
    /// An episode’s position, or whether it counts as played.
    case episode(EpisodeID)
    /// An episode’s bookmarks.
    case bookmarks(EpisodeID)
    /// An episode’s download, or how far it is.
    case download(EpisodeID)
    /// An alert was raised, changed or closed.
    case alert
    /// A setting was changed.
    case settings
    /// A service or the database.
    case service(ServiceName)
    /// The connection to the bus.
    case connection
    /// Anything may have changed: the state was read again, or changes were missed.
    case everything
}

/// The episodes of a podcast that came, changed or went.
public struct EpisodesChange: Sendable, Hashable {
    /// The podcast’s ID.
    public let podcast: PodcastID
    /// The new episodes.
    public let added: [EpisodeID]
    /// The episodes that have changed.
    public let updated: [EpisodeID]
    /// The episodes that are gone.
    public let removed: [EpisodeID]

    init?(_ change: WireEpisodesChanged) {
        guard let podcast = PodcastID(change.podcast) else { return nil }
        self.podcast = podcast
        added = change.added.compactMap(EpisodeID.init)
        updated = change.updated.compactMap(EpisodeID.init)
        removed = change.removed.compactMap(EpisodeID.init)
    }
}
