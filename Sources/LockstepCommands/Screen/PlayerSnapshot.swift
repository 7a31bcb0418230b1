import BusKit
import PodcastModel
import WireMessages

/// What a player shows at one moment: everything that the screens need, computed and made fit for a terminal.
struct PlayerSnapshot: Sendable, Hashable {
    /// How it stands to the bus.
    enum Link: Sendable, Hashable {
        /// It has never been in step.
        case connecting
        /// It is in step.
        case live
        /// It is catching up, or hears nothing.
        case reconnecting
    }

    /// An entry of Up Next.
    struct Entry: Sendable, Hashable {
        var id: String
        var title: String
        var podcast: String
        /// In seconds; nil: unknown.
        var duration: Double?
        /// Where it would go on, in seconds.
        var position: Double
        var isCurrent: Bool
    }

    /// An alert and what can be answered.
    struct Alert: Sendable, Hashable {
        var id: String
        var owner: String
        var severity: String
        var title: String
        var message: String
        var actions: [String]
    }

    /// A part of the episode.
    struct Chapter: Sendable, Hashable {
        var number: Int
        var count: Int
        var title: String
    }

    /// A service and the word for its state.
    struct Service: Sendable, Hashable {
        var name: String
        var state: String
    }

    var link = Link.connecting
    var status = WirePlaybackState.Status.unknown
    /// Whether the player or the queue may be out of date.
    var isStale = false
    var hasEpisode = false
    var episodeID = ""
    var title = ""
    var podcast = ""
    var loadID = ""
    /// In seconds, at the moment of the snapshot.
    var position = 0.0
    /// In seconds; nil: unknown.
    var duration: Double?
    var speed = 1.0
    var volume = 100.0
    var output = ""
    var isSilent = false
    var isBuffering = false
    var isRunning = false
    var error: String?
    var chapter: Chapter?
    var entries: [Entry] = []
    var currentEntry = ""
    var queueRevision: UInt64 = 0
    var alerts: [Alert] = []
    var services: [Service] = []

    /// The view at `now` on the boot `bootID`.
    init(_ view: FleetView, now: Moment, bootID: String) {
        link =
            switch view.connection {
            case .connecting: .connecting
            case .live: .live
            case .resyncing, .disconnected: .reconnecting
            }
        isStale = link != .live || view.isStale(.playback) || view.isStale(.queue)
        if let player = view.player { take(player, now: now, bootID: bootID) }
        if let queue = view.mainQueue { take(queue) }
        alerts = view.alertsInOrder.map { alert in
            Alert(
                id: alert.id, owner: alert.owner, severity: alert.severity.word,
                title: DisplayText.sanitised(alert.title), message: DisplayText.sanitised(alert.message),
                actions: alert.actions.map { DisplayText.sanitised($0) })
        }
        services = view.services.sorted { $0.key < $1.key }.map { name, status in
            Service(name: name.text, state: status.state.word)
        }
    }

    /// A snapshot that knows nothing.
    init() {}

    /// Takes over the player's state.
    mutating func take(_ player: WirePlaybackState, now: Moment, bootID: String) {
        status = player.status
        hasEpisode = player.hasEpisode
        episodeID = player.episode.id
        title = DisplayText.sanitised(player.episode.title)
        podcast = DisplayText.sanitised(player.episode.podcastTitle)
        loadID = player.loadID
        duration = player.duration > 0 ? player.duration : nil
        position = player.position(at: now, bootID: bootID)
        isRunning = player.anchor.running
        speed = player.speed > 0 ? player.speed : 1
        volume = player.volume
        output = DisplayText.sanitised(player.output)
        isSilent = player.nullOutput
        isBuffering = player.buffering
        error = player.hasError ? DisplayText.sanitised(player.error.message) : nil
        if let index = player.chapters.lastIndex(where: { $0.start <= position + 0.001 }) {
            chapter = Chapter(
                number: index + 1, count: player.chapters.count,
                title: DisplayText.sanitised(player.chapters[index].title))
        }
    }

    private mutating func take(_ queue: WireQueueState) {
        currentEntry = queue.current
        queueRevision = queue.revision
        entries = queue.entries.map { entry in
            Entry(
                id: entry.id, title: DisplayText.sanitised(entry.episode.title),
                podcast: DisplayText.sanitised(entry.episode.podcastTitle),
                duration: entry.episode.duration > 0 ? entry.episode.duration : nil,
                position: entry.episode.position, isCurrent: entry.id == queue.current)
        }
    }
}

extension WirePlaybackState {
    /// The position at `now`, in seconds, from the anchor.
    func position(at now: Moment, bootID: String) -> Double {
        guard hasEpisode, hasAnchor else { return 0 }
        let anchor = PlaybackAnchor(
            position: PlaybackPosition(clamping: anchor.position),
            speed: PlaybackSpeed(factor: speed) ?? .normal, at: MonotonicTime(nanoseconds: anchor.at),
            bootID: anchor.bootID, running: anchor.running, wall: Timestamp(milliseconds: anchor.wall))
        return anchor.position(at: now, bootID: bootID, duration: EpisodeDuration(seconds: duration)).seconds
    }

    /// What `status --json` prints.
    func statusJSON(at now: Moment, bootID: String) -> JSONValue {
        let loaded = hasEpisode && status != .idle && status != .unknown
        return .object([
            "state": .string(status.word), "episode": loaded ? episode.briefJSON : .null,
            "position": loaded ? .seconds(position(at: now, bootID: bootID)) : .integer(0),
            "duration": loaded ? .knownSeconds(duration) : .null, "speed": .number(speed), "volume": .number(volume),
            "output": .text(output), "silent": .bool(nullOutput), "buffering": .bool(buffering),
            "error": hasError ? error.json : .null,
        ])
    }
}

extension PlayerSnapshot {
    /// The state in a word or two.
    var stateWord: String {
        switch status {
        case .playing: isBuffering ? "buffering" : "playing"
        case .idle, .unknown, .UNRECOGNIZED: "nothing loaded"
        default: status.word
        }
    }

    /// `12:34 of 58:10`, or `12:34` while the length is unknown.
    var place: String {
        duration.map { "\(TimeText.clock(position)) of \(TimeText.clock($0))" } ?? TimeText.clock(position)
    }

    /// What is left, in seconds of the episode.
    var remaining: Double? { duration.map { max(0, $0 - position) } }

    /// The title, with a word for one that is empty.
    var shownTitle: String { title.isEmpty ? "(no title)" : title }

    /// The services that are not ready; empty: all are.
    var unreadyServices: [Service] { services.filter { $0.state != "ready" } }

    /// The fleet in a few words.
    var health: String {
        switch link {
        case .connecting: return "connecting …"
        case .reconnecting: return "reconnecting …"
        case .live:
            let unready = unreadyServices
            guard !unready.isEmpty else { return services.isEmpty ? "connected" : "all services ready" }
            return unready.map { "\($0.name) \($0.state)" }.joined(separator: ", ")
        }
    }

    /// When the shown position next changes by a second, in seconds from now; nil: it does not move.
    var nextTick: Double? {
        guard isRunning, link == .live || !isStale else { return nil }
        let fraction = position - position.rounded(.down)
        return max(0.02, min(1, (1 - fraction) / max(0.1, speed)) + 0.005)
    }
}
