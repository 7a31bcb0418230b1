public import PodcastModel
import SwiftProtobuf
import WireMessages

/// Commands that answer alerts.
public struct AlertsClient: Sendable {
    let fleet: Fleet

    /// Answers an alert with one of its actions.
    ///
    /// - Returns: the action that takes effect.
    /// - Throws: `notFound` if the alert no longer exists; `invalidArgument` for an action that it doesn’t have.
    @discardableResult
    public func answer(_ alert: AlertID, of owner: ServiceName, _ action: String) async throws(Failure) -> String {
        guard let service = ServiceCatalog[owner], let request = service.request else {
            throw Failure(.notFound, "The alert \(alert) belongs to the unknown service “\(owner)”.")
        }
        let answer = WireAnswerAlert.with {
            $0.alert = alert.text
            $0.action = action
        }
        return DisplayText.sanitised(try await send(answer, to: service, request).action)
    }

    private func send<Request: ServiceRequest>(
        _ answer: WireAnswerAlert, to service: ServiceDescription, _: Request.Type
    ) async throws(Failure) -> WireAlertAnswered {
        let request = Request.with { $0.answerAlert = answer }
        return try await fleet.ask(
            service.name, request, reply: Request.Reply.self, within: service.replyLimit
        ).alertAnswered
    }
}
