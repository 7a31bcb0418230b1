package import BusKit
import PodcastModel
import WireMessages

/// The observed part of the fleet’s state. The bus sends only this part, so a smaller one arrives sooner.
public enum Observation: Sendable, Hashable {
    /// The whole state, with the progress of downloads.
    case everything
    /// These parts of the state, and the services’ own states.
    case parts(Set<FleetPart>)
    /// The stream’s topics with one of these prefixes, as `events` delivers them, and the services’ own states.
    case topics([String])
    /// No state: the connection only carries commands, and `state` stays empty.
    case nothing

    /// The player and the next entry: they show the effect of every command to it.
    public static let player = Observation.parts([.player, .next])

    package var selection: TopicSelection? {
        switch self {
        case .everything: .all
        case .parts(let parts): TopicSelection(prefixes: parts.flatMap(\.prefixes).sorted())
        case .topics(let prefixes): TopicSelection(prefixes: prefixes.map(Self.topic))
        case .nothing: nil
        }
    }

    /// Adds the prefix `stream/` to a topic without it: `playback` means `stream/playback`.
    static func topic(_ text: String) -> String {
        text.hasPrefix(Topic.streamPrefix) || text.hasPrefix("live/") ? text : Topic.streamPrefix + text
    }
}

/// A part of the state that a connection can observe.
public enum FleetPart: Sendable, Hashable, CaseIterable {
    /// The loaded episode and its playback state.
    case player
    /// The sound devices.
    case output
    /// The queue that plays, the entry that follows, and the decided loads.
    case next
    /// The queues with their entries.
    case queues
    /// The playlists without their items.
    case playlists
    /// The podcasts in the library.
    case podcasts
    /// New and changed episodes, positions and played marks. They are reported as changes; the state doesn’t hold them.
    case episodes
    /// The downloads and their progress.
    case downloads
    /// The bookmarks of all episodes.
    case bookmarks
    /// The values of settings.
    case settings
    /// The open alerts.
    case alerts
    /// The jobs that run or have ended within a minute.
    case jobs

    /// The service that publishes this part; nil if several do.
    var owner: ServiceName? {
        switch self {
        case .player, .output, .bookmarks: .playback
        case .next, .queues, .playlists: .queue
        case .podcasts, .jobs: .feeds
        case .downloads: .downloads
        case .episodes, .settings, .alerts: nil
        }
    }

    var prefixes: [String] {
        switch self {
        case .player: ["stream/playback/state"]
        case .output: ["stream/playback/output"]
        case .next: ["stream/queue/next"]
        case .queues: ["stream/queue/queue/"]
        case .playlists: ["stream/queue/playlist/"]
        case .podcasts: ["stream/feeds/podcast/"]
        case .episodes:
            ["stream/feeds/episodes/", "stream/feeds/inbox", "stream/playback/episode/", "stream/playback/states"]
        case .downloads: ["stream/downloads/download/", "live/downloads/"]
        case .bookmarks: ["stream/playback/bookmarks/"]
        case .settings:
            ServiceCatalog.all.filter { $0.request is any SettingRequest.Type }.map { "stream/\($0.name)/settings/" }
        case .alerts: ServiceCatalog.all.filter { $0.request != nil }.map { "stream/\($0.name)/alert/" }
        case .jobs: ["stream/feeds/job/"]
        }
    }
}
