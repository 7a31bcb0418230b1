import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The supervisor’s alerts and their answers. They aren’t stored, because their causes end with the supervisor.
struct FleetAlerts: Sendable {
    /// The outcome of an answer.
    struct Answering: Sendable {
        var result: Result<[UInt8], Failure>
        /// The publications that precede the reply.
        var publications: [Publication] = []
        /// The service to retry.
        var retries: String?
    }

    private var alerts = OwnerAlerts(.supervisor)
    /// The alert about each service, including dismissed ones.
    private var occurrences: [String: WireAlert] = [:]

    /// The alerts without an answer, for the stream.
    var publications: [Publication] { alerts.retained }

    /// Updates the alert about a service; nil if its cause has ended.
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

    /// Answers an alert: the first answer wins; a repeat gets the same reply, another answer is refused.
    mutating func answer(_ request: [UInt8], at now: Timestamp) -> Answering {
        if let failure = RequestLimits.refusal(origin: "", payload: request, service: .supervisor) {
            return Answering(result: .failure(failure))
        }
        guard case .answerAlert(let answer)? = (try? WireSupervisorRequest(wireBytes: request))?.command else {
            let failure = Failure(
                .unknownCommand,
                "On the bus the supervisor only accepts answers to its alerts; use its own socket for other requests.")
            return Answering(result: .failure(failure))
        }
        do throws(Failure) {
            let change = try alerts.answer(answer, at: now)
            var reply = WireSupervisorReply()
            reply.alertAnswered = answer.answered(changed: change != nil)
            var answering = Answering(result: .success(reply.wireBytes), publications: change?.publications ?? [])
            // A dismissed alert stays dismissed during its occurrence; that of a retried service may return.
            if change != nil, answer.action == Self.retry,
                let service = occurrences.first(where: { $0.value.id == answer.alert })?.key
            {
                occurrences[service] = nil
                answering.retries = service
            }
            return answering
        } catch {
            return Answering(result: .failure(error))
        }
    }

    fileprivate static let retry = "retry"

    private mutating func end(_ service: String) -> [Publication] {
        guard let gone = occurrences.removeValue(forKey: service) else { return [] }
        return alerts.end { $0.id == gone.id }.publications
    }
}

extension WireAlert {
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
