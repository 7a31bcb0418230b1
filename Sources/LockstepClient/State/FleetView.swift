package import BusKit
package import PodcastModel
import SwiftProtobuf
package import WireMessages

/// The stream’s messages: decoded once, with deltas applied, and with what may be out of date marked.
package struct FleetView: Sendable {
    /// A part of the view that an update changed.
    package enum Change: Sendable, Hashable {
        case player
        case output
        /// A queue, by name.
        case queue(String)
        /// The queue that plays, the entry that follows, and the loads that were decided.
        case next
        /// A podcast, by id.
        case podcast(String)
        /// An alert, by topic.
        case alert(Topic)
        /// An episode’s download, by the episode’s ID.
        case download(String)
        /// An episode's bookmarks, by its id.
        case bookmarks(String)
        /// An owner’s settings, by topic.
        case settings(Topic)
        /// A service's state.
        case service(ServiceName)
        /// The database's state.
        case database
        case connection
        /// An episode’s position or played mark, by its ID; they aren’t kept.
        case episode(String)
        /// A podcast's episodes came, changed or went; they are not kept.
        case episodes(WireEpisodesChanged)
        /// Everything may have changed, as after a resync.
        case everything
    }

    /// The retained values, encoded.
    package private(set) var replica = Replica()
    /// The state of the connection to the bus.
    package private(set) var connection = ConnectionState.connecting
    /// The player’s state; nil until the player has published one.
    package private(set) var player: WirePlaybackState?
    /// The sound devices.
    package private(set) var output: WireOutputState?
    /// The queues, by name.
    package private(set) var queueStates: [String: QueueState] = [:]
    /// The queue that plays, the entry that follows, and the loads that were decided.
    package private(set) var next: WireQueueNext?
    /// The podcasts, by id.
    package private(set) var podcasts: [String: WirePodcast] = [:]
    /// The alerts that wait for an answer, by topic.
    package private(set) var alerts: [Topic: WireAlert] = [:]
    /// The files of episodes that are there, come or failed to come, by the episode's id.
    package private(set) var downloads: [String: WireDownload] = [:]
    /// The progress of downloads under way, by the episode’s ID: ahead of `downloads`, and lossy.
    package private(set) var progress: [String: WireDownloadProgress] = [:]
    /// The bookmarks of the episodes that have any, by the episode's id.
    package private(set) var bookmarks: [String: WireBookmarks] = [:]
    /// The owners’ settings, by topic: those for a podcast, or for all.
    package private(set) var settings: [Topic: WireSettingsState] = [:]
    /// The services' states.
    package private(set) var services: [ServiceName: WireServiceStatus] = [:]
    /// The database's state.
    package private(set) var database: WirePersistenceStatus?

    /// Knows nothing yet.
    package init() {}

    /// The queues as they were published, by name.
    package var queues: [String: WireQueueState] { queueStates.mapValues(\.wire) }

    /// Up Next; nil: not known yet.
    package var mainQueue: WireQueueState? { queueStates[QueueName.default]?.wire }

    /// The alerts, errors before warnings before information, and of each kind the oldest first.
    package var alertsInOrder: [WireAlert] {
        alerts.values.sorted {
            (-$0.severity.rawValue, $0.raisedAt, $0.id) < (-$1.severity.rawValue, $1.raisedAt, $1.id)
        }
    }

    /// Whether what `owner` has put may be out of date.
    package func isStale(_ owner: ServiceName) -> Bool { replica.ready[owner] == nil }

    /// Takes over an update.
    /// - Returns: what changed.
    @discardableResult
    package mutating func apply(_ update: ReplicaUpdate) -> Set<Change> {
        switch update {
        case .connection(let state):
            connection = state
            return [.connection]
        case .live(let event): return telemetry(event).map { [$0] } ?? []
        case .snapshot(let snapshot):
            self = FleetView(snapshot, connection: connection)
            return [.everything]
        case .event(let event): return apply(event)
        }
    }

    private init(_ snapshot: Replica, connection: ConnectionState) {
        self.connection = connection
        replica = snapshot
        for topic in snapshot.entries.keys { read(topic) }
    }

    private mutating func apply(_ event: StreamEvent) -> Set<Change> {
        let changed = replica.apply(event)
        guard event.header.kind != .event else { return Self.occurrences(event) }
        var changes: Set<Change> = []
        for topic in changed {
            if topic == event.topic, event.header.kind == .delta {
                applyDelta(event)
            } else {
                read(topic)
            }
            if let change = Self.change(of: topic) { changes.insert(change) }
        }
        return changes
    }

    private static func occurrences(_ event: StreamEvent) -> Set<Change> {
        let parts = event.topic.parts
        guard parts.count >= 3 else { return [] }
        switch (parts[1], parts[2]) {
        case ("playback", "episode") where parts.count == 4: return [.episode(String(parts[3]))]
        case ("playback", "states"):
            let changed = try? WireEpisodeStatesChanged(wireBytes: event.payload)
            return Set((changed?.episodes ?? []).map(Change.episode))
        case ("feeds", "episodes"):
            return (try? WireEpisodesChanged(wireBytes: event.payload)).map { [.episodes($0)] } ?? []
        default: return []
        }
    }

    private mutating func telemetry(_ event: StreamEvent) -> Change? {
        guard event.topic.text.hasPrefix("live/\(ServiceName.downloads)/"),
            let news = try? WireDownloadProgress(wireBytes: event.payload),
            downloads[news.episode]?.state == .downloading
        else { return nil }
        progress[news.episode] = news
        return .download(news.episode)
    }

    private static func change(of topic: Topic) -> Change? {
        let parts = topic.parts.map(String.init)
        guard parts.count >= 3 else { return nil }
        switch (parts[1], parts[2], parts.count) {
        case ("playback", "state", 3): return .player
        case ("playback", "output", 3): return .output
        case ("persistence", "status", 3): return .database
        case ("queue", "queue", 4): return .queue(parts[3])
        case ("queue", "next", 3): return .next
        case ("feeds", "podcast", 4): return .podcast(parts[3])
        case ("downloads", "download", 4): return .download(parts[3])
        case ("playback", "bookmarks", 4): return .bookmarks(parts[3])
        case ("bus", "service", 4): return ServiceName(parts[3]).map(Change.service)
        case (_, "alert", 4): return .alert(topic)
        case (_, "settings", 4): return .settings(topic)
        default: return nil
        }
    }

    /// Reads a topic's value anew, from its put and its deltas. One that cannot be read is as one that is not there.
    private mutating func read(_ topic: Topic) {
        let value = replica.entries[topic]
        func decoded<Message: SwiftProtobuf.Message>(_ type: Message.Type) -> Message? {
            value.flatMap { try? Message(wireBytes: $0.put.payload) }
        }
        switch Self.change(of: topic) {
        case .player: player = decoded(WirePlaybackState.self)
        case .output: output = decoded(WireOutputState.self)
        case .database: database = decoded(WirePersistenceStatus.self)
        case .podcast(let id): podcasts[id] = decoded(WirePodcast.self)
        case .alert: alerts[topic] = decoded(WireAlert.self)
        case .next: next = decoded(WireQueueNext.self)
        case .download(let episode):
            downloads[episode] = decoded(WireDownload.self)
            if downloads[episode]?.state != .downloading { progress[episode] = nil }
        case .bookmarks(let episode): bookmarks[episode] = decoded(WireBookmarks.self)
        case .settings: settings[topic] = decoded(WireSettingsState.self)
        case .service(let name): services[name] = decoded(WireServiceStatus.self)
        case .queue(let name):
            queueStates[name] = decoded(WireQueueState.self).map { state in
                var state = state
                for delta in value?.deltas ?? [] { state.apply(delta) }
                return QueueState(state)
            }
        default: break
        }
    }

    private mutating func applyDelta(_ event: StreamEvent) {
        if case .queue(let name) = Self.change(of: event.topic) { queueStates[name]?.apply(event) }
    }
}

extension WireQueueState {
    /// Applies a delta’s payload; one that can’t be read changes nothing.
    mutating func apply(_ event: StreamEvent) {
        if let delta = try? WireQueueDelta(wireBytes: event.payload) { apply(delta) }
    }
}
