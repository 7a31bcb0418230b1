package import BusKit
import PodcastModel
import WireMessages

/// The part of the fleet’s state that a connection observes. The bus sends nothing else, so that a smaller part arrives sooner.
public enum Observation: Sendable, Hashable {
    /// All state, and how far downloads are.
    case everything
    /// These parts of the state, and the services’ own states.
    case parts(Set<FleetPart>)
    /// The topics of the stream that begin with one of these, as `events` brings them, and the services’ own states.
    case topics([String])
    /// Nothing: the connection only carries commands, and `state` stays empty.
    case nothing

    /// The player and what it plays next: they show the effect of every command to it.
    public static let player = Observation.parts([.player, .next])

    package var selection: TopicSelection? {
        switch self {
        case .everything: .all
        case .parts(let parts): TopicSelection(prefixes: parts.flatMap(\.prefixes).sorted())
        case .topics(let prefixes): TopicSelection(prefixes: prefixes.map(Self.topic))
        case .nothing: nil
        }
    }

    /// The topic that somebody means who leaves `stream/` out: `playback` is as good as `stream/playback`.
    static func topic(_ text: String) -> String {
        text.hasPrefix(Topic.streamPrefix) || text.hasPrefix("live/") ? text : Topic.streamPrefix + text
    }
}

/// A part of the state.
public enum FleetPart: Sendable, Hashable, CaseIterable {
    /// The loaded episode and its playback state.
    case player
    /// The sound devices.
    case output
    /// The queue that plays, what follows in it, and the loads that were decided.
    case next
    /// The queues with their entries.
    case queues
    /// The podcasts in the library.
    case podcasts
    /// New and changed episodes, positions and played marks. They are reported as changes; the state doesn’t hold them.
    case episodes
    /// The downloads, and how far they are.
    case downloads
    /// The bookmarks of all episodes.
    case bookmarks
    /// The settings that were set.
    case settings
    /// The open alerts.
    case alerts

    /// The service whose state it is; nil: several have a share in it.
    var owner: ServiceName? {
        switch self {
        case .player, .output, .bookmarks: .playback
        case .next, .queues: .queue
        case .podcasts: .feeds
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
        case .podcasts: ["stream/feeds/podcast/"]
        case .episodes: ["stream/feeds/episodes/", "stream/playback/episode/", "stream/playback/states"]
        case .downloads: ["stream/downloads/download/", "live/downloads/"]
        case .bookmarks: ["stream/playback/bookmarks/"]
        case .settings:
            ServiceCatalog.all.filter { $0.request is any SettingRequest.Type }.map { "stream/\($0.name)/settings/" }
        case .alerts: ServiceCatalog.all.filter { $0.request != nil }.map { "stream/\($0.name)/alert/" }
        }
    }
}
