import BusKit
package import PodcastModel
package import WireMessages

/// The values that the screens show at one moment, made safe for a terminal.
package struct PlayerSnapshot: Sendable, Hashable {
    /// The state of the connection to the bus.
    package enum Link: Sendable, Hashable {
        /// It has never been in step with the bus.
        case connecting
        /// It is in step with the bus.
        case live
        /// It is reading the state again, or the bus is away.
        case reconnecting
    }

    /// The playback state.
    package enum Status: String, Sendable, Hashable {
        case idle, loading, playing, paused, finished, failed
    }

    /// An alert and what can be answered.
    package struct Alert: Sendable, Hashable {
        package var id: AlertID
        package var owner: ServiceName
        package var severity: AlertState.Severity
        package var title: String
        package var message: String
        package var actions: [String]
        /// The digit of each action; empty: nobody can press any.
        package var keys: [Int?] = []

        /// An alert with the digits of its actions.
        package init(
            id: AlertID, owner: ServiceName, severity: AlertState.Severity, title: String, message: String,
            actions: [String], keys: [Int?] = []
        ) {
            (self.id, self.owner, self.severity) = (id, owner, severity)
            (self.title, self.message, self.actions, self.keys) = (title, message, actions, keys)
        }

        /// The actions, each with its digit where it has one: `1 retry`.
        package var answers: [String] {
            actions.enumerated().map { index, action in
                keys.indices.contains(index) ? keys[index].map { "\($0) \(action)" } ?? action : action
            }
        }
    }

    /// A part of the episode.
    package struct Chapter: Sendable, Hashable {
        package var number: Int
        package var count: Int
        package var title: String
    }

    /// A line of the list of chapters.
    package struct Part: Sendable, Hashable {
        /// Its start, in seconds.
        package var start: Double
        package var title: String
    }

    /// Another attempt at a stream that has failed.
    package struct Retry: Sendable, Hashable {
        package var attempt: Int
        package var of: Int
        /// Seconds until it is tried, at the moment of the snapshot; 0: it is being tried.
        package var wait: Double
        package var error: String

        /// An attempt of these parts.
        package init(attempt: Int, of: Int, wait: Double, error: String) {
            (self.attempt, self.of, self.wait, self.error) = (attempt, of, wait, error)
        }
    }

    /// A sleep timer that runs.
    package struct Sleep: Sendable, Hashable {
        /// Seconds of the clock that are left; nil: it does not end by time.
        package var remaining: Double?
        /// The number of episodes that will still end; 0: it doesn’t end by those.
        package var episodes = 0
        package var isEndOfChapter = false
        package var isFading = false
        /// A number that identifies the timer.
        package var mark: UInt64 = 0

        /// A timer that ends by time, by episodes, or at the end of the chapter.
        package init(
            remaining: Double? = nil, episodes: Int = 0, isEndOfChapter: Bool = false, isFading: Bool = false,
            mark: UInt64 = 0
        ) {
            (self.remaining, self.episodes, self.isEndOfChapter) = (remaining, episodes, isEndOfChapter)
            (self.isFading, self.mark) = (isFading, mark)
        }
    }

    /// A service and the word for its state.
    package struct Service: Sendable, Hashable {
        package var name: String
        package var state: String
    }

    package var link = Link.connecting
    package var status = Status.idle
    /// The cause of a pause.
    package var pausedBy = PlayerState.Pause.user
    /// Whether the player or the queue may be out of date.
    package var isStale = false
    package var hasEpisode = false
    package var episodeID: EpisodeID?
    package var podcastID: PodcastID?
    package var title = ""
    package var podcast = ""
    package var loadID: LoadID?
    /// In seconds, at the moment of the snapshot.
    package var position = 0.0
    /// In seconds; nil: unknown.
    package var duration: Double?
    package var speed = 1.0
    /// The rate of the position, above the speed while silence is passed over; nil: the speed.
    package var pace: Double?
    /// It is loading, and will be paused when it is open.
    package var staysPaused = false
    package var volume = 100.0
    package var output = ""
    package var isSilent = false
    package var isBuffering = false
    package var isRunning = false
    package var error: String?
    package var chapter: Chapter?
    /// All chapters, in order.
    package var parts: [Part] = []
    package var retry: Retry?
    package var sleep: Sleep?
    /// Whether the downloaded file plays.
    package var isLocal = false
    /// The name of the queue that it was loaded from; empty: none.
    package var sourceQueue = ""
    /// The changes to the sound, in words.
    package var sound: [String] = []
    /// The queue that is shown: the one that plays.
    package var queueName = QueueName.default
    package var entries: [QueueState.Entry] = []
    package var currentEntry: QueueEntryID?
    package var alerts: [Alert] = []
    package var services: [Service] = []

    /// A snapshot of a state at `now` on the boot `bootID`.
    package init(_ state: FleetState, now: Moment, bootID: String = SystemClocks.bootID) {
        link =
            switch state.connection {
            case .connecting: .connecting
            case .live: .live
            case .reconnecting, .ended: .reconnecting
            }
        isStale = state.isStale(.player) || state.isStale(.queues)
        if let player = state.view.player { take(player, now: now, bootID: bootID) }
        let queue = state.upNext
        (queueName, entries, currentEntry) = (queue.name, queue.entries, queue.current)
        alerts = state.alerts.map { alert in
            Alert(
                id: alert.id, owner: alert.owner, severity: alert.severity, title: alert.title,
                message: alert.message, actions: alert.actions)
        }
        services = state.services.map { Service(name: $0.name, state: $0.word) }
    }

    /// A snapshot that knows nothing.
    package init() {}

    /// Takes over the player’s state.
    package mutating func take(_ player: WirePlaybackState, now: Moment, bootID: String) {
        status = Status(rawValue: player.status.word) ?? .idle
        pausedBy = PlayerState.Pause(player.pausedBy)
        hasEpisode = player.hasEpisode
        episodeID = EpisodeID(player.episode.id)
        podcastID = PodcastID(player.episode.podcastID)
        title = DisplayText.sanitised(player.episode.title)
        podcast = DisplayText.sanitised(player.episode.podcastTitle)
        loadID = LoadID(player.loadID)
        duration = player.duration > 0 ? player.duration : nil
        position = player.position(at: now, bootID: bootID)
        isRunning = player.anchor.running
        speed = player.speed > 0 ? player.speed : 1
        pace = player.anchor.speed > 0 ? player.anchor.speed : nil
        staysPaused = player.status == .loading && !player.willPlay
        volume = player.volume
        output = DisplayText.sanitised(player.output)
        isSilent = player.nullOutput
        isBuffering = player.buffering
        error = player.hasError ? DisplayText.sanitised(player.error.message) : nil
        isLocal = player.local
        sourceQueue = player.queue
        retry = player.hasRetry ? Retry(player.retry, wait: player.retryWait(at: now, bootID: bootID)) : nil
        sleep = player.hasSleep ? Sleep(player.sleep, at: now, bootID: bootID) : nil
        sound = player.hasSound ? player.sound.words : []
        parts = player.chapters.map { Part(start: $0.start, title: DisplayText.sanitised($0.title)) }
        let number = player.chapters.number(at: position)
        chapter =
            number == 0 ? nil : Chapter(number: number, count: parts.count, title: parts[number - 1].title)
    }

    /// Whether an entry’s episode is the loaded one, so that the player knows its position.
    package func isLoaded(_ entry: QueueState.Entry) -> Bool {
        // What has ended has no position.
        hasEpisode && status != .finished && status != .idle && entry.episode.id == episodeID
    }
}

extension PlayerSnapshot {
    /// The state in a word or two.
    package var stateWord: String {
        switch status {
        case .playing: isBuffering ? "buffering" : "playing"
        case .idle: "nothing loaded"
        case .paused where pausedBy == .sleepTimer: "paused by the sleep timer"
        case .paused where pausedBy == .stop: "stopped"
        case .paused where pausedBy == .soundDevice: "paused without a sound device"
        default: status.rawValue
        }
    }

    /// `12:34 of 58:10`, or `12:34` while the length is unknown.
    package var place: String {
        duration.map { "\(ClockText.format(position)) of \(ClockText.format($0))" } ?? ClockText.format(position)
    }

    /// The rest in whole seconds: the length as it is shown less the position as it is shown.
    package var remaining: Double? {
        duration.map { Double(max(0, ClockText.wholeSeconds($0) - ClockText.wholeSeconds(position))) }
    }

    /// The title, with a word for one that is empty.
    package var shownTitle: String { title.isEmpty ? "(no title)" : title }

    /// Whether an alert says what the player has failed of.
    package func isSaid(by alert: Alert) -> Bool {
        guard let error, !error.isEmpty else { return false }
        return alert.message.contains(error)
    }

    /// The services that are not ready; empty: all are.
    package var unreadyServices: [Service] { services.filter { $0.state != "ready" } }

    /// The fleet in a few words.
    package var health: String {
        switch link {
        case .connecting: return "connecting …"
        case .reconnecting: return "reconnecting …"
        case .live:
            let unready = unreadyServices
            guard !unready.isEmpty else { return services.isEmpty ? "connected" : "all services ready" }
            return unready.map { "\($0.name) \($0.state)" }.joined(separator: ", ")
        }
    }

    /// The time until a shown value changes without an update, in seconds; nil: none does.
    package var nextTick: Double? {
        guard link == .live || !isStale else { return nil }
        var ticks: [Double] = []
        if isRunning {
            let shown = position + ClockText.grace
            let fraction = shown - shown.rounded(.down)
            ticks.append(max(0.02, min(1, (1 - fraction) / max(0.1, speed)) + 0.005))
        }
        // What counts down shows whole seconds, rounded up.
        for left in [sleep?.remaining, retry?.wait].compactMap(\.self) where left > 0 {
            ticks.append(max(0.02, left - (left.rounded(.up) - 1) + 0.005))
        }
        return ticks.min()
    }
}

extension PlayerSnapshot.Retry {
    package init(_ retry: WireRetryState, wait: Double) {
        self.init(
            attempt: Int(retry.attempt), of: Int(retry.of), wait: wait,
            error: retry.hasError ? DisplayText.sanitised(retry.error.message) : "")
    }
}

extension PlayerSnapshot.Sleep {
    package init(_ sleep: WireSleepState, at now: Moment, bootID: String) {
        self.init(
            remaining: sleep.remaining(at: now, bootID: bootID), episodes: Int(sleep.episodes),
            isEndOfChapter: sleep.endOfChapter, isFading: sleep.fading, mark: sleep.endsAt)
    }
}
