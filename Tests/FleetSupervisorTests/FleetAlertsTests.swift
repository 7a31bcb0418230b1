import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import FleetSupervisor

@Suite struct FleetAlertsTests {
    private var alerts = FleetAlerts()
    private let now = Timestamp(milliseconds: 1_700_000_000_000)

    private func answer(_ alert: String, _ action: String) -> [UInt8] {
        var request = WireSupervisorRequest()
        request.answerAlert.alert = alert
        request.answerAlert.action = action
        return request.wireBytes
    }

    private func alert(_ publications: [Publication]) throws -> WireAlert {
        try WireAlert(wireBytes: try #require(publications.last { $0.kind == .put }).payload)
    }

    @Test mutating func `an alert is put once for each occurrence and deleted with its cause`() throws {
        let first = try alert(alerts.update(.doesNotStart("queue doesn’t start: x."), of: "queue", at: now))
        #expect(first.owner == "supervisor" && first.code == "serviceFailed" && first.severity == .error)
        let later = Timestamp(milliseconds: now.milliseconds + 60_000)
        let again = try alert(alerts.update(.doesNotStart("queue doesn’t start: y."), of: "queue", at: later))
        #expect(again.id == first.id && again.raisedAt == first.raisedAt)
        #expect(again.message.hasPrefix("queue doesn’t start: y."))
        let gone = alerts.update(nil, of: "queue", at: later)
        #expect(gone.map(\.kind) == [.delete] && gone.map(\.topic) == [.alert(.supervisor, first.id)])
        #expect(alerts.publications.isEmpty)
    }

    @Test mutating func `another concern of the same service replaces the first`() throws {
        let first = try alert(alerts.update(.restartsOften(10, last: "killed by SIGKILL"), of: "feeds", at: now))
        let publications = alerts.update(.doesNotStart("feeds doesn’t start: x."), of: "feeds", at: now)
        #expect(publications.map(\.kind) == [.delete, .put])
        #expect(publications[0].topic == .alert(.supervisor, first.id))
        #expect(alerts.publications.count == 1)
    }

    @Test mutating func `a dismissed alert stays deleted until its cause occurs again`() throws {
        let first = try alert(alerts.update(.restartsOften(10, last: "exited with 1"), of: "feeds", at: now))
        let answering = alerts.answer(answer(first.id, "dismiss"), at: now)
        #expect(answering.publications.map(\.kind) == [.delete] && answering.retries == nil)
        #expect(try WireSupervisorReply(wireBytes: answering.result.get()).alertAnswered.action == "dismiss")
        #expect(alerts.update(.restartsOften(11, last: "exited with 1"), of: "feeds", at: now).isEmpty)
        #expect(alerts.update(nil, of: "feeds", at: now).isEmpty)
        let later = Timestamp(milliseconds: now.milliseconds + 1)
        #expect(
            try alert(alerts.update(.restartsOften(10, last: "exited with 1"), of: "feeds", at: later)).id != first.id)
    }

    @Test mutating func `the first answer wins`() throws {
        let first = try alert(alerts.update(.doesNotStart("queue doesn’t start: x."), of: "queue", at: now))
        #expect(alerts.answer(answer(first.id, "retry"), at: now).retries == "queue")
        #expect(throws: Never.self) { try alerts.answer(answer(first.id, "retry"), at: now).result.get() }
        #expect(alerts.answer(answer(first.id, "retry"), at: now).retries == nil)
        #expect(code(alerts.answer(answer(first.id, "dismiss"), at: now)) == .alreadyAnswered)
    }

    @Test mutating func `only the newest 64 answers are kept`() throws {
        var ids: [String] = []
        for number in 0..<66 {
            let later = Timestamp(milliseconds: now.milliseconds + Int64(number))
            let alert = try alert(alerts.update(.restartsOften(10, last: "exited with 1"), of: "feeds", at: later))
            #expect(throws: Never.self) { try alerts.answer(answer(alert.id, "dismiss"), at: later).result.get() }
            _ = alerts.update(nil, of: "feeds", at: later)
            ids.append(alert.id)
        }
        #expect(ids.prefix(2).allSatisfy { code(alerts.answer(answer($0, "dismiss"), at: now)) == .notFound })
        #expect(ids.dropFirst(2).allSatisfy { code(alerts.answer(answer($0, "dismiss"), at: now)) == nil })
    }

    @Test mutating func `a request that isn’t an answer to an alert is refused`() throws {
        let first = try alert(alerts.update(.restartsOften(10, last: "exited with 1"), of: "feeds", at: now))
        #expect(code(alerts.answer(answer(first.id, "retry"), at: now)) == .invalidArgument)
        #expect(code(alerts.answer(answer("a0", "dismiss"), at: now)) == .notFound)
        #expect(code(alerts.answer([], at: now)) == .unknownCommand)
        #expect(code(alerts.answer([0xff, 0xff, 0xff], at: now)) == .unknownCommand)
        #expect(alerts.publications.count == 1)
    }

    private func code(_ answering: FleetAlerts.Answering) -> FailureCode? {
        guard case .failure(let failure) = answering.result else { return nil }
        return failure.known
    }
}
