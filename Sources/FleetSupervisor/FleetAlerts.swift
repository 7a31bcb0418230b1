import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The supervisor's alerts, and the answers to them. They last as long as their causes, which end with the supervisor at
/// the latest; so nothing of them is kept on disk.
struct FleetAlerts: Sendable {
    /// The outcome of an answer.
    struct Answering: Sendable {
        /// The reply to whoever answered.
        var result: Result<[UInt8], Failure>
        /// The publications that precede the reply.
        var publications: [Publication] = []
        /// A service that is to be tried again.
        var retries: String?
    }

    private var alerts = OwnerAlerts(.supervisor)
    /// The concern about each service, also where somebody has dismissed it.
    private var occurrences: [String: WireAlert] = [:]

    /// Every alert that waits for an answer.
    var publications: [Publication] { alerts.retained }

    /// Updates the alert of a service; nil: it needs no attention any more.
    mutating func update(_ concern: FleetConcern?, of service: String, at now: Timestamp) -> [Publication] {
        guard let concern else { return end(service) }
        if var known = occurrences[service], known.code == concern.code {
            known.describe(concern, of: service)
            occurrences[service] = known
            return alerts.isAnswered(known.id) ? [] : alerts.raise(known).publications
        }
        var alert = WireAlert()
        alert.id = AlertID.derived(from: "\(concern.code) \(service) \(now.milliseconds)").text
        alert.code = concern.code
        alert.owner = ServiceName.supervisor.text
        alert.raisedAt = now.milliseconds
        alert.describe(concern, of: service)
        let gone = end(service)
        occurrences[service] = alert
        return gone + alerts.raise(alert).publications
    }

    /// The first answer wins; the same one again is answered alike, another one is refused.
    mutating func answer(_ request: [UInt8], at now: Timestamp) -> Answering {
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
        var reply = WireSupervisorReply()
        var answering: Answering
        do throws(Failure) {
            let change = try alerts.answer(answer, at: now)
            reply.alertAnswered = answer.answered(changed: change != nil)
            answering = Answering(result: .success(reply.wireBytes))
            guard let change else { return answering }
            answering.publications = change.publications
        } catch {
            return Answering(result: .failure(error))
        }
        // A dismissed alert stays so while it is the same occurrence; that of a service that is retried may come back.
        if answer.action == Self.retry, let service = occurrences.first(where: { $0.value.id == answer.alert })?.key {
            occurrences[service] = nil
            answering.retries = service
        }
        return answering
    }

    fileprivate static let retry = "retry"

    private mutating func end(_ service: String) -> [Publication] {
        guard let gone = occurrences.removeValue(forKey: service) else { return [] }
        return alerts.end { $0.id == gone.id }.publications
    }
}

extension WireAlert {
    /// Describes the concern in words.
    fileprivate mutating func describe(_ concern: FleetConcern, of service: String) {
        switch concern {
        case .restartsOften(let count, let last):
            severity = .warning
            title = "\(service) keeps restarting"
            message =
                "\(service) was restarted \(count) times within an hour (last: \(last)). See `lockstep logs \(service)` and `lockstep doctor`."
            actions = ["dismiss"]
        case .doesNotStart(let sentence):
            severity = .error
            title = "\(service) doesn’t start"
            message = sentence + " It is retried automatically; “retry” does so now."
            actions = [FleetAlerts.retry, "dismiss"]
        }
    }
}
