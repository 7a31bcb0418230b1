package import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// The stream’s decoded values, with deltas applied and stale parts marked.
package struct FleetView: Sendable {
    package private(set) var replica = Replica()
    package private(set) var connection = ConnectionState.connecting
    package private(set) var player: WirePlaybackState?
    package private(set) var output: WireOutputState?
    package private(set) var queueStates: [String: QueueState] = [:]
    package private(set) var next: WireQueueNext?
    package private(set) var playlists: [String: WirePlaylist] = [:]
    package private(set) var podcasts: [String: WirePodcast] = [:]
    package private(set) var alerts: [Topic: WireAlert] = [:]
    package private(set) var jobs: [String: WireJob] = [:]
    package private(set) var downloads: [String: WireDownload] = [:]
    /// The progress of active downloads by episode ID; it is newer than `downloads`, and lossy.
    package private(set) var progress: [String: WireDownloadProgress] = [:]
    package private(set) var bookmarks: [String: WireBookmarks] = [:]
    /// The services’ settings by topic, for one podcast or for all.
    package private(set) var settings: [Topic: WireSettingsState] = [:]
    package private(set) var services: [ServiceName: WireServiceStatus] = [:]
    package private(set) var database: WirePersistenceStatus?

    package init() {}

    package var mainQueue: WireQueueState? { queueStates[QueueName.default]?.wire }

    /// The alerts: errors, then warnings, then information, each from the oldest.
    package var alertsInOrder: [WireAlert] {
        alerts.values.sorted {
            (-$0.severity.rawValue, $0.raisedAt, $0.id) < (-$1.severity.rawValue, $1.raisedAt, $1.id)
        }
    }

    /// Whether the values that `owner` published may be out of date.
    package func isStale(_ owner: ServiceName) -> Bool { replica.ready[owner] == nil }

    /// Applies an update.
    ///
    /// - Returns: the parts that have changed.
    @discardableResult
    package mutating func apply(_ update: ReplicaUpdate) -> Set<FleetChange> {
        switch update {
        case .connection(let state):
            connection = state
            return [.connection]
        case .live(let event): return telemetry(event).map { [$0] } ?? []
        case .snapshot(let snapshot):
            var view = FleetView()
            (view.connection, view.replica) = (connection, snapshot)
            for topic in snapshot.entries.keys { view.read(topic) }
            self = view
            return [.everything]
        case .event(let event):
            let changed = replica.apply(event)
            guard event.header.kind != .event else { return Self.occurrences(event) }
            return Set(changed.compactMap { read($0, delta: event.header.kind == .delta ? event : nil) })
        }
    }

    /// The changes of values that the view doesn’t store.
    private static func occurrences(_ event: StreamEvent) -> Set<FleetChange> {
        switch StreamTopic(event.topic) {
        case .episode: return Set([EpisodeID(String(event.topic.parts[3]))].compactMap { $0.map(FleetChange.episode) })
        case .episodeStates:
            let changed = try? WireEpisodeStatesChanged(wireBytes: event.payload)
            return Set((changed?.episodes ?? []).compactMap(EpisodeID.init).map(FleetChange.episode))
        case .inbox: return [.inbox]
        case .episodes:
            let change = (try? WireEpisodesChanged(wireBytes: event.payload)).flatMap(EpisodesChange.init)
            return change.map { [.episodes($0)] } ?? []
        default: return []
        }
    }

    private mutating func telemetry(_ event: StreamEvent) -> FleetChange? {
        guard StreamTopic(event.topic) == .downloadProgress,
            let news = try? WireDownloadProgress(wireBytes: event.payload),
            downloads[news.episode]?.state == .downloading
        else { return nil }
        progress[news.episode] = news
        return EpisodeID(news.episode).map(FleetChange.download)
    }

    /// Applies a delta, or decodes a topic’s value again. An unreadable value counts as absent.
    @discardableResult
    private mutating func read(_ topic: Topic, delta: StreamEvent? = nil) -> FleetChange? {
        let value = replica.entries[topic]
        func decoded<Message: SwiftProtobuf.Message>() -> Message? {
            value.flatMap { try? Message(wireBytes: $0.put.payload) }
        }
        switch StreamTopic(topic) {
        case .player:
            player = decoded()
            return .player
        case .output:
            output = decoded()
            return .output
        case .next:
            next = decoded()
            return .next
        case .queue(let name):
            if let delta {
                queueStates[name]?.apply(delta)
            } else {
                queueStates[name] = decoded().map { (state: WireQueueState) in
                    QueueState(value?.deltas.reduce(into: state) { $0.apply($1) } ?? state)
                }
            }
            return .queue(name)
        case .playlist(let id):
            playlists[id] = decoded()
            return .playlist(id)
        case .podcast(let id):
            podcasts[id] = decoded()
            return PodcastID(id).map(FleetChange.podcast)
        case .bookmarks(let episode):
            bookmarks[episode] = decoded()
            return EpisodeID(episode).map(FleetChange.bookmarks)
        case .download(let episode):
            downloads[episode] = decoded()
            if downloads[episode]?.state != .downloading { progress[episode] = nil }
            return EpisodeID(episode).map(FleetChange.download)
        case .job(let id):
            jobs[id] = decoded()
            return JobID(id).map(FleetChange.job)
        case .alert:
            alerts[topic] = decoded()
            return .alert
        case .settings:
            settings[topic] = decoded()
            return .settings
        case .service(let name):
            guard let name = ServiceName(name) else { return nil }
            services[name] = decoded()
            return .service(name)
        case .database:
            database = decoded()
            return .service(.persistence)
        case .episode, .episodeStates, .playSession, .episodes, .inbox, .downloadProgress, nil: return nil
        }
    }
}

extension WireQueueState {
    /// Applies a delta’s payload; an unreadable one changes nothing.
    mutating func apply(_ event: StreamEvent) {
        if let delta = try? WireQueueDelta(wireBytes: event.payload) { apply(delta) }
    }
}
