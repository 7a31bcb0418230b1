import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// An alert of the player.
struct PlayerAlert: Sendable {
    let code: String
    /// The load that it is about; empty: none.
    let load: String
    let episode: String
    let podcast: String
    let title: String
    let message: String
    let severity: WireAlert.Severity
    let actions: [String]

    init(
        _ code: String, about session: PlaybackSession?, title: String, _ message: String,
        _ severity: WireAlert.Severity, actions: [String]
    ) {
        self.code = code
        load = session?.loadID.text ?? ""
        episode = session?.episode.id ?? ""
        podcast = session?.episode.podcastID ?? ""
        self.title = title
        self.message = message
        self.severity = severity
        self.actions = actions
    }

    func record(id: String, at time: Timestamp) -> WirePlaybackAlertRecord {
        var record = WirePlaybackAlertRecord()
        record.loadID = load
        record.alert.id = id
        record.alert.code = code
        record.alert.title = title
        record.alert.message = message
        record.alert.severity = severity
        record.alert.actions = actions
        record.alert.raisedAt = time.milliseconds
        record.alert.owner = ServiceName.playback.text
        record.alert.episode = episode
        record.alert.podcast = podcast
        return record
    }
}

/// The player's alerts, the newest answers that they got, and the answers that are on their way to the database.
struct PlayerAlerts: Sendable {
    /// What ends alerts.
    enum Cause {
        /// The load goes on.
        case resumed(LoadID)
        /// Something else is loaded in place of the load.
        case left(LoadID)
        /// Something is loaded where nothing was.
        case loaded
        /// The cause of all alerts of a code is gone.
        case code(String)
    }

    /// An answer to an alert.
    struct Answer: Sendable {
        let command: Command
        let answer: WireAnswerAlert
        /// Somebody has paused or stopped since: it plays nothing any more.
        var isOverruled = false
    }

    /// What becomes of an answer.
    enum Outcome {
        /// It is the first, and is to be committed with these changes.
        case commit([WireChange], of: WirePlaybackAlertRecord)
        /// It waits for the outcome of another one.
        case joined
        /// It was given before.
        case repeated
    }

    static let answersKept = 64
    /// Alerts that tell of something while it plays on.
    private static let tellingCodes: Set<String> = ["playsStream", "audioChanged"]

    private(set) var standing: [String: WirePlaybackAlertRecord] = [:]
    private var answers: [String: WirePlaybackAnswerRecord] = [:]
    /// The answers that are on their way, the first of each alert before those that wait for it.
    private var pending: [String: [Answer]] = [:]

    // MARK: Alerts

    /// Whether an alert of the code is standing that is about the same; one that is being answered tells nobody of this.
    func stands(_ alert: PlayerAlert) -> Bool {
        // One device is missing, however many episodes are loaded meanwhile.
        let isOfAny = DeviceAlert.codes.contains(alert.code)
        return standing.values.contains {
            $0.alert.code == alert.code && (isOfAny || $0.loadID == alert.load) && pending[$0.alert.id] == nil
        }
    }

    mutating func put(_ record: WirePlaybackAlertRecord) { standing[record.alert.id] = record }

    /// Ends the alerts whose cause is gone.
    ///
    /// - Returns: their IDs, in order.
    mutating func end(_ cause: Cause) -> [String] {
        let over = standing.filter { isOver($0.value, cause) }.keys.sorted()
        for id in over { standing[id] = nil }
        return over
    }

    /// A missing device is not cured by another episode, and what the listener should know not by playing on.
    private func isOver(_ record: WirePlaybackAlertRecord, _ cause: Cause) -> Bool {
        let isOfDevice = DeviceAlert.codes.contains(record.alert.code)
        switch cause {
        case .resumed(let load):
            return record.loadID == load.text && !isOfDevice && !Self.tellingCodes.contains(record.alert.code)
        case .left(let load): return record.loadID == load.text && !isOfDevice
        case .loaded: return !record.loadID.isEmpty && !isOfDevice
        case .code(let code): return record.alert.code == code
        }
    }

    // MARK: Answers

    /// Whether an alert has been answered, or is being answered.
    func isAnswered(_ id: String) -> Bool { answers[id] != nil || pending[id] != nil }

    /// An alert is answered. The first answer to become durable wins; one that comes meanwhile waits to see which it was.
    ///
    /// - Parameter kept: alerts whose answers must not be forgotten.
    mutating func begin(_ answer: Answer, kept: Set<String>, at time: Timestamp) throws(Failure) -> Outcome {
        let (id, action) = (answer.answer.alert, answer.answer.action)
        if pending[id] != nil {
            pending[id]?.append(answer)
            return .joined
        }
        let isFirst = try answer.answer.isFirst(after: answers[id]?.action, to: standing[id]?.alert)
        guard isFirst, let record = standing[id] else { return .repeated }
        pending[id] = [answer]
        var won = WirePlaybackAnswerRecord()
        won.action = action
        won.at = time.milliseconds
        return .commit([.deleting("alert", id), .putting("answer", id, won)] + dropOldest(but: kept), of: record)
    }

    private mutating func dropOldest(but kept: Set<String>) -> [WireChange] {
        guard answers.count >= Self.answersKept,
            let oldest = answers.filter({ !kept.contains($0.key) })
                .min(by: { ($0.value.at, $0.key) < ($1.value.at, $1.key) })
        else { return [] }
        answers[oldest.key] = nil
        return [.deleting("answer", oldest.key)]
    }

    /// Whoever pauses or stops means what was answered before, too, though it is not done yet.
    ///
    /// - Returns: whether anything was.
    mutating func overrule() -> Bool {
        pending = pending.mapValues { answers in
            answers.map { answer in
                var answer = answer
                answer.isOverruled = true
                return answer
            }
        }
        return !pending.isEmpty
    }

    /// An answer is durable.
    ///
    /// - Returns: the alert, if it was still standing; the answer; and those that have waited for it.
    mutating func committed(
        _ id: String, at time: Timestamp
    ) -> (alert: WirePlaybackAlertRecord?, answer: Answer, waiting: ArraySlice<Answer>)? {
        guard let all = pending.removeValue(forKey: id), let first = all.first else { return nil }
        var won = WirePlaybackAnswerRecord()
        won.action = first.answer.action
        won.at = time.milliseconds
        answers[id] = won
        return (standing.removeValue(forKey: id), first, all.dropFirst())
    }

    /// An answer could not be saved.
    ///
    /// - Returns: those that have waited for it.
    mutating func refused(_ id: String) -> ArraySlice<Answer> { (pending.removeValue(forKey: id) ?? []).dropFirst() }

    // MARK: The database and the stream

    mutating func restore(_ answer: WirePlaybackAnswerRecord, to id: String) { answers[id] = answer }

    /// An alert as it is stored.
    func change(_ id: String) -> WireChange {
        // The answer to it is on its way, and must not find it stored again behind it.
        guard pending[id] == nil, let record = standing[id] else { return .deleting("alert", id) }
        return .putting("alert", id, record)
    }

    var everything: [WireChange] {
        standing.keys.sorted().map(change)
            + answers.sorted { $0.key < $1.key }.map { .putting("answer", $0.key, $0.value) }
    }

    var retained: [Publication] {
        standing.sorted { $0.key < $1.key }.map {
            Publication(.put, .alert(.playback, $0.key), $0.value.alert.wireBytes)
        }
    }
}
