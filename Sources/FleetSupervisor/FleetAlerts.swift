import BusKit
import PodcastModel
import WireMessages

/// The supervisor's alerts, and the answers to them. They last as long as their causes, which end with the supervisor at
/// the latest; so nothing of them is kept on disk.
struct FleetAlerts: Sendable {
    /// An alert, and whether somebody has put it away.
    private struct Occurrence: Sendable {
        var alert: WireAlert
        var isAnswered = false
    }

    /// What an answer leads to.
    struct Answering: Sendable {
        /// To whoever answered.
        var result: Result<[UInt8], Failure>
        /// To the stream, before.
        var publications: [Publication] = []
        /// A service that is to be tried again.
        var retries: String?
    }

    private var occurrences: [String: Occurrence] = [:]
    /// The winning answers, by alert.
    private var answers: [String: String] = [:]

    /// Every alert that waits for an answer.
    var publications: [Publication] {
        occurrences.values.filter { !$0.isAnswered }.map(\.alert).sorted { $0.id < $1.id }.map(Self.put)
    }

    /// What needs attention of a service has changed; nil: nothing does any more.
    mutating func note(_ concern: FleetConcern?, of service: String, at now: Timestamp) -> [Publication] {
        guard let concern else { return remove(service) }
        if let known = occurrences[service], known.alert.code == concern.code {
            occurrences[service]?.alert.describe(concern, of: service)
            return known.isAnswered ? [] : occurrences[service].map { [Self.put($0.alert)] } ?? []
        }
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(concern.code) \(service) \(now.milliseconds)").text
        alert.code = concern.code
        alert.owner = ServiceName.supervisor.text
        alert.raisedAt = now.milliseconds
        alert.describe(concern, of: service)
        let gone = remove(service)
        occurrences[service] = Occurrence(alert: alert)
        return gone + [Self.put(alert)]
    }

    /// The first answer wins; the same one again is answered alike, another one is refused.
    mutating func answer(_ request: [UInt8]) -> Answering {
        if let failure = RequestLimits.refusal(origin: "", payload: request, service: .supervisor) {
            return Answering(result: .failure(failure))
        }
        guard case .answerAlert(let answer)? = (try? WireSupervisorRequest(wireBytes: request))?.command else {
            return Answering(
                result: .failure(
                    Failure(
                        .unknownCommand,
                        "On the bus the supervisor takes answers to its alerts only; for the rest it has its own socket."
                    )))
        }
        let waiting = occurrences.first { $0.value.alert.id == answer.alert }
        let isFirst: Bool
        do throws(Failure) {
            isFirst = try answer.isFirst(after: answers[answer.alert], to: waiting?.value.alert)
        } catch {
            return Answering(result: .failure(error))
        }
        guard isFirst, let (service, occurrence) = waiting else {
            return Answering(result: .success(Self.reply(answer)))
        }
        answers[answer.alert] = answer.action
        let publications = remove(service)
        // One that was put away stays so while it is the same occurrence; one that is tried again may come back.
        if answer.action != Self.retry { occurrences[service] = Occurrence(alert: occurrence.alert, isAnswered: true) }
        return Answering(
            result: .success(Self.reply(answer)), publications: publications,
            retries: answer.action == Self.retry ? service : nil)
    }

    fileprivate static let retry = "retry"

    private mutating func remove(_ service: String) -> [Publication] {
        guard let gone = occurrences.removeValue(forKey: service), !gone.isAnswered else { return [] }
        return [Publication(.delete, .alert(.supervisor, gone.alert.id))]
    }

    private static func put(_ alert: WireAlert) -> Publication {
        Publication(.put, .alert(.supervisor, alert.id), alert.wireBytes)
    }

    private static func reply(_ answer: WireAnswerAlert) -> [UInt8] {
        var reply = WireSupervisorReply()
        reply.alertAnswered.alert = answer.alert
        reply.alertAnswered.action = answer.action
        return reply.wireBytes
    }
}

extension WireAlert {
    /// Says the concern in words.
    fileprivate mutating func describe(_ concern: FleetConcern, of service: String) {
        switch concern {
        case .restartsOften(let count, let last):
            severity = .warning
            title = "\(service) restarts again and again"
            message =
                "\(service) was restarted \(count) times within an hour (last: \(last)). See `lockstep logs \(service)` and `lockstep doctor`."
            actions = ["dismiss"]
        case .doesNotStart(let sentence):
            severity = .error
            title = "\(service) does not start"
            message = sentence + " It is tried again by itself; “retry” does so now."
            actions = [FleetAlerts.retry, "dismiss"]
        }
    }
}
