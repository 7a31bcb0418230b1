import BusKit
public import PodcastModel
import WireMessages

/// How a connection stands to the bus.
public enum Connection: Sendable, Hashable {
    /// It has never been in step.
    case connecting
    /// The state is current, but for the parts that are stale.
    case live
    /// The bus is away or the state is being read again; what the state holds may be old.
    case reconnecting
}

/// A part of the state, which one service owns.
public enum FleetPart: Sendable, Hashable, CaseIterable {
    /// What is loaded and how it plays.
    case player
    /// The queues.
    case queues
    /// The podcasts.
    case podcasts
    /// The downloads.
    case downloads

    var owner: ServiceName {
        switch self {
        case .player: .playback
        case .queues: .queue
        case .podcasts: .feeds
        case .downloads: .downloads
        }
    }
}

/// What a connection knows of the fleet at one moment. A value: it doesn’t change any more.
public struct FleetState: Sendable {
    package let view: FleetView

    init(_ view: FleetView) {
        self.view = view
    }

    /// How the connection stands to the bus.
    public var connection: Connection {
        switch view.connection {
        case .connecting: .connecting
        case .live: .live
        case .resyncing, .disconnected: .reconnecting
        }
    }

    /// Whether a part may be out of date: the connection isn’t live, or the part’s service isn’t ready.
    public func isStale(_ part: FleetPart) -> Bool { connection != .live || view.isStale(part.owner) }

    /// The player.
    public var player: PlayerState { PlayerState(view.player ?? WirePlaybackState()) }

    /// The queues: Up Next, then the others by name. None where the connection doesn’t follow them.
    public var queues: [QueueState] {
        view.queues.values.sorted { FleetView.isQueue($0.name, before: $1.name) }.map(QueueState.init)
    }

    /// A queue by its name, as in “main”; nil: there is none.
    public func queue(_ name: String) -> QueueState? { view.queues[name].map(QueueState.init) }

    /// The queue that goes on when what is loaded ends.
    public var upNext: QueueState { QueueState(view.playingQueue) }

    /// What needs an answer: errors before warnings before information, and of each the oldest first.
    public var alerts: [AlertState] { view.alertsInOrder.map(AlertState.init) }

    /// The podcasts, by title.
    public var podcasts: [Podcast] {
        view.podcasts.values.map(Podcast.init).sorted { ($0.title, $0.id) < ($1.title, $1.id) }
    }

    /// The episodes that are downloaded, or are to be; the newest request first.
    public var downloads: [DownloadState] {
        view.downloads.values.sorted { ($0.requestedAt, $0.episode) > ($1.requestedAt, $1.episode) }
            .map(DownloadState.init)
    }

    /// The download of an episode; nil: it is neither downloaded nor to be.
    public func download(of episode: EpisodeID) -> DownloadState? {
        view.downloads[episode.text].map(DownloadState.init)
    }

    /// The sound devices; nil: the player hasn’t listed them yet.
    public var output: OutputState? { view.output.map(OutputState.init) }

    /// The services, by name.
    public var services: [ServiceState] { view.services.sorted { $0.key < $1.key }.map { ServiceState($0.value) } }
}

/// What has changed. The values are in the state.
public enum FleetChange: Sendable, Hashable {
    /// The player.
    case player
    /// The sound devices.
    case output
    /// A queue, by name.
    case queue(String)
    /// What plays next, or what became of a load.
    case next
    /// A podcast, by ID: it came, changed or went.
    case podcast(String)
    /// A podcast’s episodes.
    case episodes(EpisodesChange)
    /// How far an episode was played, or whether it counts as played.
    case episode(String)
    /// An episode’s bookmarks, by its ID.
    case bookmarks(String)
    /// An episode’s download, by its ID.
    case download(String)
    /// An alert.
    case alert
    /// A setting.
    case settings
    /// A service or the database.
    case service(String)
    /// The connection.
    case connection
    /// Anything may have changed: the state was read again, or changes were missed.
    case everything

    init(_ change: FleetView.Change) {
        self =
            switch change {
            case .player: .player
            case .output: .output
            case .queue(let name): .queue(name)
            case .next: .next
            case .podcast(let id): .podcast(id)
            case .episodes(let change): .episodes(EpisodesChange(change))
            case .episode(let state): .episode(state.episode)
            case .bookmarks(let episode): .bookmarks(episode)
            case .download(let episode): .download(episode)
            case .alert: .alert
            case .settings: .settings
            case .service(let name): .service(name.text)
            case .database: .service(ServiceName.persistence.text)
            case .connection: .connection
            case .everything: .everything
            }
    }
}

/// The episodes of a podcast that came, changed or went, by their IDs.
public struct EpisodesChange: Sendable, Hashable {
    /// The podcast’s ID.
    public let podcast: String
    /// The new ones.
    public let added: [String]
    /// Those that have changed.
    public let updated: [String]
    /// Those that are gone.
    public let removed: [String]

    init(_ change: WireEpisodesChanged) {
        (podcast, added, updated, removed) = (change.podcast, change.added, change.updated, change.removed)
    }
}
