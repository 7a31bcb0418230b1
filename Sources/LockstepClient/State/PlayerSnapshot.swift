package import PodcastModel
import WireMessages

/// The values that screens show at one moment, sanitised for a terminal. A screen may replace those that its keys have
/// requested.
package struct PlayerSnapshot: Sendable, Hashable {
    /// An alert and its possible answers.
    package struct Alert: Sendable, Hashable {
        package var id: AlertID
        package var owner: ServiceName
        package var severity: AlertState.Severity
        package var title: String
        package var message: String
        package var actions: [String]
        /// The digit of each action; empty if no key answers the alert.
        package var keys: [Int?] = []

        /// The actions, each with its digit if it has one: `1 retry`.
        package var answers: [String] {
            actions.enumerated().map { index, action in
                keys.indices.contains(index) ? keys[index].map { "\($0) \(action)" } ?? action : action
            }
        }

        package var hasDigitForEachAnswer: Bool { keys.count == actions.count && !keys.contains(nil) }
    }

    /// The connection’s state; `reconnecting` also after its end.
    package var connection = Connection.connecting
    /// Whether the state of the player or of the queue may be out of date.
    package var isStale = false
    package let player: PlayerState
    package let episode: EpisodeSummary?
    package var position: Double
    package var speed: Double
    package var volume: Double
    package var error: String?
    package let chapters: [ChapterState]
    /// The index of the chapter that the position is in.
    package var chapter: Int?
    package let retry: RetryState?
    package var sleep: SleepTimerState?
    package var queue = QueueState(.init())
    package var alerts: [Alert] = []
    package var services: [ServiceState] = []

    package init(_ player: PlayerState = .unknown, at now: Moment = .now) {
        self.player = player
        episode = player.episode
        position = player.position(at: now)
        (speed, volume) = (player.speed, player.volume)
        error = player.wire.hasError ? DisplayText.sanitised(player.wire.error.message) : nil
        chapters = player.chapters
        chapter = player.chapter(atPosition: position)
        retry = player.retry(at: now)
        sleep = player.sleepTimer(at: now)
    }

    package init(_ state: FleetState, now: Moment) {
        self.init(state.player, at: now)
        connection = state.connection
        if case .ended = connection { connection = .reconnecting }
        isStale = state.isStale(.player) || state.isStale(.queues)
        queue = state.upNext
        alerts = state.alerts.map { alert in
            Alert(
                id: alert.id, owner: alert.owner, severity: alert.severity, title: alert.title,
                message: alert.message, actions: alert.actions)
        }
        services = state.services
    }

    /// Whether an entry’s episode is the loaded one, whose position is the player’s.
    package func isLoaded(_ entry: QueueState.Entry) -> Bool {
        // A finished episode has no position.
        player.status != .finished && entry.episode.id == episode?.id
    }

    package var stateWord: String {
        switch player.status {
        case .playing(isBuffering: true): "buffering"
        case .idle: "nothing loaded"
        case .paused(by: .sleepTimer): "paused by the sleep timer"
        case .paused(by: .stop): "stopped"
        case .paused(by: .soundDevice): "paused without a sound device"
        default: player.statusWord
        }
    }

    /// `12:34 of 58:10`, or `12:34` while the length is unknown.
    package var shownPosition: String {
        player.duration.map { "\(ClockText.format(position)) of \(ClockText.format($0))" } ?? ClockText.format(position)
    }

    /// The remaining time in whole seconds: the shown length minus the shown position.
    package var remaining: Double? {
        player.duration.map { Double(max(0, ClockText.wholeSeconds($0) - ClockText.wholeSeconds(position))) }
    }

    package var shownTitle: String { episode.map { $0.title.isEmpty ? "(no title)" : $0.title } ?? "" }

    /// `Chapter 2 of 5: A title`; nil outside of all chapters.
    package var chapterName: String? {
        chapter.map { index in
            let title = chapters[index].title
            return "Chapter \(index + 1) of \(chapters.count)" + (title.isEmpty ? "" : ": \(title)")
        }
    }

    /// Whether an alert already reports the player’s failure.
    package func isReported(by alert: Alert) -> Bool {
        guard let error, !error.isEmpty else { return false }
        return alert.message.contains(error)
    }

    package var unreadyServices: [ServiceState] { services.filter { !$0.isReady } }

    package var health: String {
        switch connection {
        case .connecting: return "connecting …"
        case .reconnecting, .ended: return "reconnecting …"
        case .live:
            let unready = unreadyServices
            guard !unready.isEmpty else { return services.isEmpty ? "connected" : "all services ready" }
            return unready.map { "\($0.name) \($0.word)" }.joined(separator: ", ")
        }
    }

    /// The time in seconds until a shown value changes without an update; nil if none does.
    package var nextTick: Double? {
        guard connection == .live || !isStale else { return nil }
        var ticks: [Double] = []
        if player.isRunning {
            let shown = position + ClockText.tolerance
            let fraction = shown - shown.rounded(.down)
            ticks.append(max(0.02, min(1, (1 - fraction) / max(0.1, speed)) + 0.005))
        }
        // Countdowns show whole seconds, rounded up.
        var rests = [retry?.wait]
        if case .time(let remaining) = sleep { rests.append(remaining) }
        for left in rests.compactMap(\.self) where left > 0 {
            ticks.append(max(0.02, left - (left.rounded(.up) - 1) + 0.005))
        }
        return ticks.min()
    }
}
