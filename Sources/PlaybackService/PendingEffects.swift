import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The effects of one event, and the state that is kept for later events: unsaved changes and alerts.
struct PendingEffects: Sendable {
    /// The reply to a command, sent when its changes are durable.
    struct Answer: Sendable {
        enum Body: Sendable { case state, output, episodeState(WireEpisodeState) }

        let request: RequestID
        let body: Body
        /// The effect, such as “Paused” for “Paused, but not saved”.
        let fact: String
        let changed: Bool
        var setting: WireSettingReply?
        var ended: WireEpisodeSummary?

        /// The reply, with the state at the end of the event.
        func reply(_ state: WirePlaybackState, _ output: WireOutputState) -> WirePlaybackReply {
            var reply = WirePlaybackReply()
            reply.changed = changed
            switch body {
            case .state: reply.state = state
            case .output: reply.output = output
            case .episodeState(let episodeState): reply.episodeState = episodeState
            }
            if let setting { reply.setting = setting }
            if let ended { reply.ended = ended }
            return reply
        }
    }

    var writes = PendingWrites()
    var alerts = PlayerAlerts()
    private var serial: UInt64 = 0

    private(set) var now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
    private(set) var actions: [PlaybackAction] = []
    /// Whether the state will be published.
    var state = false
    /// Whether the sound devices will be published.
    var output = false
    /// Other publications, which follow the state, and those that precede it.
    var publications: [Publication] = []
    var earlierPublications: [Publication] = []
    /// Whether unsaved changes are committed with this event.
    var commit = false
    var answer: Answer?
    private(set) var replies: [(RequestID, Result<[UInt8], Failure>)] = []
    var transactions: [PlaybackMachine.Transaction] = []
    private(set) var calls: [PlaybackMachine.Call] = []
    private(set) var logs: [(LogLevel, String)] = []
    /// The process is ending, and nothing more is opened.
    var isStopping = false
    var opensEngine = false
    var movedTo: PlaybackPosition?
    var hasEnded = false

    /// Whether the stream or the database changes.
    var hasChanges: Bool { state || output || commit || !publications.isEmpty }

    mutating func begin(now: Moment) { self.now = now }

    mutating func end() {
        var next = PendingEffects()
        (next.writes, next.alerts, next.serial) = (writes, alerts, serial)
        (next.now, next.isStopping) = (now, isStopping)
        self = next
    }

    mutating func nextSerial() -> UInt64 {
        serial += 1
        return serial
    }

    mutating func perform(_ action: PlaybackAction) { actions.append(action) }
    mutating func command(_ command: EngineCommand) { actions.append(.engine(command)) }
    mutating func log(_ level: LogLevel, _ line: String) { logs.append((level, line)) }
    mutating func refuse(_ request: RequestID, _ failure: Failure) { replies.append((request, .failure(failure))) }
    mutating func reply(_ request: RequestID, _ reply: WirePlaybackReply) {
        replies.append((request, .success(reply.wireBytes)))
    }

    /// Queries the library for episodes; there may be no answer.
    ///
    /// - Parameter brief: whether notes and chapters are omitted.
    mutating func lookUp(
        _ episodes: [String], for query: PlaybackMachine.Query, limit: Duration? = .seconds(2), brief: Bool = false
    ) {
        var request = WirePersistenceRequest()
        request.episodesByID.ids = episodes
        request.episodesByID.brief = brief
        calls.append(PlaybackMachine.Call(query, to: .persistence, payload: request.wireBytes, limit: limit))
    }

    mutating func saveSession() {
        writes.mark(.session)
        state = true
        commit = true
    }

    /// Replaces a stored session that can’t be read; the episodes’ own positions are stored elsewhere.
    mutating func resetSession() {
        log(.error, "The stored session can’t be used and has been reset.")
        raise(
            FailureCode.sessionCorrupt.rawValue, about: nil, title: "The last session is lost",
            "The last session can’t be read from the database. Episodes keep their own positions; play one again.",
            .warning, actions: ["dismiss"])
        writes.mark(.session)
    }

    // MARK: Alerts

    /// Raises an alert, unless one with the same code and subject is active; see `PlayerAlerts.raise`.
    ///
    /// - Parameters:
    ///   - session: the load that the alert is about.
    ///   - id: the ID of an alert that is raised again.
    mutating func raise(
        _ code: String, about session: PlaybackSession?, title: String, _ message: String,
        _ severity: WireAlert.Severity, actions: [String], as id: String? = nil
    ) {
        let load = session?.loadID.text ?? ""
        // An alert about a device outlasts loads.
        let subject = DeviceAlert.codes.contains(code) ? "" : load
        var alert = WireAlert(
            code, of: .playback, named: "\(code)/\(load)/\(now.wall.milliseconds)/\(nextSerial())", title: title,
            message: message, severity: severity, actions: actions, subject: subject,
            episode: session?.episode.id ?? "", podcast: session?.episode.podcastID ?? "", at: now.wall)
        if let id { alert.id = id }
        save(alerts.raise(alert), as: PendingWrites.Item.alert)
    }

    mutating func endAlerts(_ cause: PlayerAlerts.Cause) { save(alerts.end(cause), as: PendingWrites.Item.alert) }

    /// Removes the notice of automatic resumption from all alerts: playback has stopped.
    mutating func withdraw(_ notice: String) {
        for alert in alerts.active.values.sorted(by: { $0.id < $1.id }) where alert.message.hasSuffix(notice) {
            let message = String(alert.message.dropLast(notice.count))
            save(alerts.reword(alert, PlayerAlerts.stoppedTitle, message), as: PendingWrites.Item.alert)
        }
    }

    /// Publishes a change, and commits its records, by their keys, with this event.
    mutating func save(_ change: OwnerChange, as item: (String) -> PendingWrites.Item) {
        guard !change.isEmpty else { return }
        for case let key? in change.changes.map(\.recordKey) { writes.mark(item(key)) }
        publications += change.publications
        commit = true
    }
}

extension WireChange {
    static func putting(_ state: WireEpisodeState) -> WireChange {
        var change = WireChange()
        change.putEpisodeState = state
        return change
    }

    static func putting(_ session: WirePlaySession) -> WireChange {
        var change = WireChange()
        change.putPlaySession = session
        return change
    }

    fileprivate var recordKey: String? {
        switch change {
        case .put(let record)?: record.key
        case .delete(let record)?: record.key
        default: nil
        }
    }
}
