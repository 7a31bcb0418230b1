import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The effects of one event, put in order when all of it is decided; and the parts that outlast the event: unsaved
/// changes and the alerts.
struct PendingEffects: Sendable {
    /// The answer to a command, told when what it changed is durable.
    struct Answer: Sendable {
        enum Body: Sendable { case state, output, episodeState(WireEpisodeState) }

        let request: RequestID
        let body: Body
        /// "Paused", for "Paused, but not saved".
        let fact: String
        /// Whether anything is another than before.
        let changed: Bool
        /// The setting that it has changed.
        var setting: WireSettingReply?
        /// The episode that a seek has ended.
        var ended: WireEpisodeSummary?

        /// The reply, with what is so when all is decided.
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

    /// When the event happens.
    private(set) var now = Moment(monotonic: MonotonicTime(nanoseconds: 0), wall: Timestamp(milliseconds: 0))
    private(set) var actions: [PlaybackAction] = []
    /// The state has changed.
    var state = false
    /// The sound devices have changed.
    var output = false
    /// Other things to publish, after the state, and what comes before it.
    var publications: [Publication] = []
    var earlierPublications: [Publication] = []
    /// Whether unsaved changes are committed with this event.
    var commit = false
    /// The command that is to be answered.
    var answer: Answer?
    private(set) var replies: [(RequestID, Result<[UInt8], Failure>)] = []
    var transactions: [PlaybackMachine.Transaction] = []
    private(set) var calls: [PlaybackMachine.Call] = []
    private(set) var logs: [(LogLevel, String)] = []
    /// The process will end, and nothing is opened any more.
    var isStopping = false
    /// The engine has been told to open the loaded episode.
    var opensEngine = false
    /// Where the loaded episode was moved to.
    var movedTo: PlaybackPosition?
    /// The loaded episode has ended.
    var hasEnded = false

    /// Whether anything has been decided that the stream shows or the database stores.
    var hasChanges: Bool { state || output || commit || !publications.isEmpty }

    /// Begins the effects of an event at this moment.
    mutating func begin(now: Moment) { self.now = now }

    /// Forgets the effects of the event, which have been put in order.
    mutating func end() {
        var next = PendingEffects()
        (next.writes, next.alerts, next.serial) = (writes, alerts, serial)
        (next.now, next.isStopping) = (now, isStopping)
        self = next
    }

    /// A number that this process has not used yet.
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

    /// Asks what the library knows of episodes; the answer need not come.
    ///
    /// - Parameter brief: without notes and chapters.
    mutating func lookUp(
        _ episodes: [String], for query: PlaybackMachine.Query, limit: Duration? = .seconds(2), brief: Bool = false
    ) {
        var request = WirePersistenceRequest()
        request.episodesByID.ids = episodes
        request.episodesByID.brief = brief
        calls.append(PlaybackMachine.Call(query, to: .persistence, payload: request.wireBytes, limit: limit))
    }

    /// Commits the session with this event, and publishes the state.
    mutating func saveSession() {
        writes.mark(.session)
        state = true
        commit = true
    }

    /// Resets a stored session that can’t be read; the episodes’ own positions are stored elsewhere.
    mutating func resetSession() {
        log(.error, "The stored session can’t be used and has been reset.")
        raise(
            FailureCode.sessionCorrupt.rawValue, about: nil, title: "The last session is lost",
            "The last session can’t be read from the database. Episodes keep their own positions; play one again.",
            .warning, actions: ["dismiss"])
        writes.mark(.session)
    }

    // MARK: Alerts

    /// Raises an alert, unless one of its code stands that is about the same.
    ///
    /// - Parameters:
    ///   - session: the load that it is about; nil: none.
    ///   - id: the ID that it has, if it has been raised before.
    mutating func raise(
        _ code: String, about session: PlaybackSession?, title: String, _ message: String,
        _ severity: WireAlert.Severity, actions: [String], as id: String? = nil
    ) {
        let load = session?.loadID.text ?? ""
        // One device is missing, however many episodes are loaded meanwhile.
        let subject = DeviceAlert.codes.contains(code) ? "" : load
        var alert = WireAlert(
            code, of: .playback, named: "\(code)/\(load)/\(now.wall.milliseconds)/\(nextSerial())", title: title,
            message: message, severity: severity, actions: actions, subject: subject,
            episode: session?.episode.id ?? "", podcast: session?.episode.podcastID ?? "", at: now.wall)
        if let id { alert.id = id }
        write(alerts.raise(alert))
    }

    /// Ends the alerts whose cause is gone.
    mutating func endAlerts(_ cause: PlayerAlerts.Cause) { write(alerts.end(cause)) }

    /// Withdraws a promise from all alerts.
    mutating func withdraw(_ promise: String) {
        for alert in alerts.standing.values.sorted(by: { $0.id < $1.id }) where alert.message.hasSuffix(promise) {
            write(alerts.reword(alert, String(alert.message.dropLast(promise.count))))
        }
    }

    /// Writes and publishes a change of the alerts.
    private mutating func write(_ change: OwnerChange) {
        guard !change.isEmpty else { return }
        for case let id? in change.changes.map(\.recordKey) { writes.mark(.alert(id)) }
        publications += change.publications
        commit = true
    }
}

extension WireChange {
    /// An episode’s state is stored.
    static func putting(_ state: WireEpisodeState) -> WireChange {
        var change = WireChange()
        change.putEpisodeState = state
        return change
    }

    /// The key of the record that is put or deleted.
    fileprivate var recordKey: String? {
        switch change {
        case .put(let record)?: record.key
        case .delete(let record)?: record.key
        default: nil
        }
    }
}
