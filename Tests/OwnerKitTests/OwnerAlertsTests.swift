import BusKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import OwnerKit

struct OwnerAlertsTests {
    private func alert(_ id: String) -> WireAlert {
        .with {
            $0.id = id
            $0.actions = ["retry", "dismiss"]
        }
    }

    private func answer(_ id: String, _ action: String = "dismiss") -> WireAnswerAlert {
        .with {
            $0.alert = id
            $0.action = action
        }
    }

    @Test func `only the first answer takes effect, and its repeat changes nothing`() throws {
        var alerts = OwnerAlerts(.queue)
        _ = alerts.raise(alert("a"))
        let change = try alerts.answer(answer("a"), at: Timestamp(milliseconds: 1))
        #expect(change?.changes.count == 2 && change?.publications.map(\.kind) == [.delete])
        #expect(try alerts.answer(answer("a"), at: Timestamp(milliseconds: 2)) == nil)
        #expect(throws: Failure.self) { try alerts.answer(answer("a", "retry"), at: Timestamp(milliseconds: 3)) }
        #expect(throws: Failure.self) { try alerts.answer(answer("b"), at: Timestamp(milliseconds: 3)) }
    }

    @Test func `the oldest answer is evicted first, including after a restart`() throws {
        var alerts = OwnerAlerts(.queue)
        // The IDs have another order than the times.
        let ids = (0..<OwnerAlerts.answerLimit + 2).map { "\(($0 * 37) % 100 + 100)" }
        for (time, id) in ids.enumerated() {
            if time == 40 {
                var restored = OwnerAlerts(.queue)
                for case .put(let record)? in alerts.everything.map(\.change) {
                    let stored = StoredRecord(
                        collection: record.collection, key: record.key, value: Array(record.value))
                    #expect(try restored.restore(stored))
                }
                alerts = restored
            }
            _ = alerts.raise(alert(id))
            let change = try alerts.answer(answer(id), at: Timestamp(milliseconds: Int64(time)))
            let forgotten = (change?.changes ?? []).compactMap { change -> String? in
                guard case .delete(let key)? = change.change, key.collection == "answer" else { return nil }
                return key.key
            }
            let count = time + 1 - OwnerAlerts.answerLimit
            #expect(forgotten == (count > 0 ? [ids[count - 1]] : []))
        }
    }

    @Test func `answers in the queue’s older format are decoded`() throws {
        var alerts = OwnerAlerts(.queue)
        let old = WireAlertAnswered.with {
            $0.alert = "a"
            $0.action = "dismiss"
        }
        #expect(try alerts.restore(StoredRecord(collection: "answer", key: "a", value: old.wireBytes)))
        #expect(try alerts.answer(answer("a"), at: Timestamp(milliseconds: 1)) == nil)
        #expect(throws: Failure.self) { try alerts.answer(answer("a", "retry"), at: Timestamp(milliseconds: 1)) }
    }

    // MARK: Subjects

    private func alert(_ code: String, about subject: String, named name: String) -> WireAlert {
        WireAlert(
            code, of: .queue, named: name, title: "", message: "", subject: subject, at: Timestamp(milliseconds: 1))
    }

    @Test func `an alert with the code and subject of an active one isn’t raised`() {
        var alerts = OwnerAlerts(.queue)
        #expect(!alerts.raise(unlessActive: alert("x", about: "a", named: "1")).isEmpty)
        #expect(alerts.raise(unlessActive: alert("x", about: "a", named: "2")).isEmpty)
        #expect(!alerts.raise(unlessActive: alert("x", about: "b", named: "3")).isEmpty)
        #expect(alerts.active.count == 2)
    }

    @Test func `only the alerts that match the condition end`() {
        var alerts = OwnerAlerts(.queue)
        for (code, subject) in [("x", "a"), ("y", "a"), ("x", "b")] {
            _ = alerts.raise(alert(code, about: subject, named: code + subject))
        }
        let change = alerts.end { $0.subject == "a" && $0.code != "y" }
        #expect(change.changes.count == 1 && change.publications.map(\.kind) == [.delete])
        #expect(alerts.active.values.map { $0.code + $0.subject }.sorted() == ["xb", "ya"])
    }

    // MARK: Durable answers

    @Test func `an alert is active until its answer is durable, and other answers wait until then`() throws {
        var alerts = OwnerAlerts(.queue)
        _ = alerts.raise(alert("a"))
        var pending = PendingAnswers<Int>()
        guard
            case .commit(let change) = try pending.begin(answer("a"), by: 1, to: alerts, at: Timestamp(milliseconds: 1))
        else {
            Issue.record("not begun")
            return
        }
        #expect(change.changes.count == 2 && change.publications.count == 1)
        guard case .joined = try pending.begin(answer("a", "retry"), by: 2, to: alerts, at: Timestamp(milliseconds: 2))
        else {
            Issue.record("not joined")
            return
        }
        #expect(alerts.active["a"] != nil && pending.contains("a"))
        let done = pending.committed("a", in: &alerts)
        #expect(done.alert?.id == "a" && done.requests == [2])
        #expect(alerts.active.isEmpty && alerts.isAnswered("a") && pending.alerts.isEmpty)
        guard case .repeated = try pending.begin(answer("a"), by: 3, to: alerts, at: Timestamp(milliseconds: 3)) else {
            Issue.record("not repeated")
            return
        }
        #expect(throws: Failure.self) {
            try pending.begin(answer("a", "retry"), by: 2, to: alerts, at: Timestamp(milliseconds: 3))
        }
    }

    @Test func `an alert whose answer can’t be saved accepts the next answer`() throws {
        var alerts = OwnerAlerts(.queue)
        _ = alerts.raise(alert("a"))
        var pending = PendingAnswers<Int>()
        _ = try pending.begin(answer("a"), by: 1, to: alerts, at: Timestamp(milliseconds: 1))
        _ = try pending.begin(answer("a", "retry"), by: 2, to: alerts, at: Timestamp(milliseconds: 1))
        #expect(pending.refused("a") == [2])
        #expect(alerts.active["a"] != nil && !alerts.isAnswered("a"))
        guard case .commit = try pending.begin(answer("a", "retry"), by: 2, to: alerts, at: Timestamp(milliseconds: 2))
        else {
            Issue.record("not begun")
            return
        }
    }

    @Test func `an answer that becomes durable after its alert has ended is recorded`() throws {
        var alerts = OwnerAlerts(.playback)
        _ = alerts.raise(alert("a"))
        var pending = PendingAnswers<Int>()
        _ = try pending.begin(answer("a"), by: 1, to: alerts, at: Timestamp(milliseconds: 1))
        _ = alerts.end { _ in true }
        #expect(pending.committed("a", in: &alerts).alert == nil && alerts.isAnswered("a"))
    }
}
