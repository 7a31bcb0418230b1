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

    @Test func `the first answer wins, and the same one again changes nothing`() throws {
        var alerts = OwnerAlerts(.queue)
        _ = alerts.raise(alert("a"))
        let change = try alerts.answer(answer("a"), at: Timestamp(milliseconds: 1))
        #expect(change?.changes.count == 2 && change?.publications.map(\.kind) == [.delete])
        #expect(try alerts.answer(answer("a"), at: Timestamp(milliseconds: 2)) == nil)
        #expect(throws: Failure.self) { try alerts.answer(answer("a", "retry"), at: Timestamp(milliseconds: 3)) }
        #expect(throws: Failure.self) { try alerts.answer(answer("b"), at: Timestamp(milliseconds: 3)) }
    }

    @Test func `the oldest answer is forgotten first, also after a restart`() throws {
        var alerts = OwnerAlerts(.queue)
        // Ids in another order than time.
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

    @Test func `answers in the queue’s older form are read`() throws {
        var alerts = OwnerAlerts(.queue)
        let old = WireAlertAnswered.with {
            $0.alert = "a"
            $0.action = "dismiss"
        }
        #expect(try alerts.restore(StoredRecord(collection: "answer", key: "a", value: old.wireBytes)))
        #expect(try alerts.answer(answer("a"), at: Timestamp(milliseconds: 1)) == nil)
        #expect(throws: Failure.self) { try alerts.answer(answer("a", "retry"), at: Timestamp(milliseconds: 1)) }
    }
}
