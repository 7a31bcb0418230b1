import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What one event has brought about so far, put in order when all of it is decided; and what outlasts the event: what is
/// unsaved, and the alerts.
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
        /// What it has done to a setting.
        var setting: WireSettingReply?
        /// The episode that a seek has ended.
        var ended: WireEpisodeSummary?
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
    /// What is unsaved is to be committed now.
    var commit = false
    /// The command that is to be answered.
    var answer: Answer?
    private(set) var replies: [(RequestID, Result<[UInt8], Failure>)] = []
    var transactions: [Transaction] = []
    var calls: [Call] = []
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

    /// An event happens.
    mutating func begin(now: Moment) { self.now = now }

    /// What the event has brought about has been put in order.
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
    mutating func tell(_ command: EngineCommand) { actions.append(.engine(command)) }
    mutating func log(_ level: LogLevel, _ line: String) { logs.append((level, line)) }
    mutating func refuse(_ request: RequestID, _ failure: Failure) { replies.append((request, .failure(failure))) }
    mutating func reply(_ request: RequestID, _ reply: WirePlaybackReply) {
        replies.append((request, .success(reply.wireBytes)))
    }

    /// Asks what the library knows of an episode; the answer need not come.
    mutating func lookUp(_ episode: String, as id: CallID, limit: Duration? = .seconds(2)) {
        var query = WirePersistenceRequest()
        query.episodesByID.ids = [episode]
        calls.append(Call(id: id, to: .persistence, payload: query.wireBytes, limit: limit))
    }

    /// Commits what is loaded with this event, and shows it.
    mutating func saveSession() {
        writes.mark(.session)
        state = true
        commit = true
    }

    // MARK: Alerts

    /// Raises an alert, unless one of its code stands that is about the same.
    mutating func raise(_ alert: PlayerAlert, as id: String? = nil) {
        guard !alerts.stands(alert) else { return }
        put(alert.record(id: id ?? newAlertID("\(alert.code)/\(alert.load)"), at: now.wall))
    }

    /// An ID that no alert has had.
    mutating func newAlertID(_ subject: String) -> String {
        AlertID.derived(from: "\(subject)/\(now.wall.milliseconds)/\(nextSerial())").text
    }

    private mutating func reword(_ record: WirePlaybackAlertRecord, _ message: String) {
        var record = record
        record.alert.message = message
        put(record)
        commit = true
    }

    /// No alert says any more that what failed plays on by itself.
    mutating func withdraw(_ promise: String) {
        for (_, record) in alerts.standing.sorted(by: { $0.key < $1.key })
        where record.alert.message.hasSuffix(promise) {
            reword(record, String(record.alert.message.dropLast(promise.count)))
        }
    }

    private mutating func put(_ record: WirePlaybackAlertRecord) {
        alerts.put(record)
        writes.mark(.alert(record.alert.id))
        publications.append(Publication(.put, .alert(.playback, record.alert.id), record.alert.wireBytes))
    }

    /// Ends the alerts whose cause is gone.
    mutating func endAlerts(_ cause: PlayerAlerts.Cause) {
        for id in alerts.end(cause) {
            writes.mark(.alert(id))
            commit = true
            publications.append(Publication(.delete, .alert(.playback, id)))
        }
    }
}
