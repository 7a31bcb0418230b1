import OwnerKit
import SwiftProtobuf
import Testing
import WireMessages

struct KeyedRecordsTests {
    private func record(_ action: String, at time: Int64) -> WireAlertAnswerRecord {
        .with {
            $0.action = action
            $0.at = time
        }
    }

    @Test func `the oldest record is evicted, but neither the new one nor a kept one`() {
        var records = KeyedRecords<WireAlertAnswerRecord>("answer", limit: 2) { $0.at == 0 ? nil : $0.at }
        var changes: [WireChange] = []
        records.put("b", record("x", at: 2), &changes)
        records.put("a", record("x", at: 3), &changes)
        changes = []
        records.put("c", record("x", at: 1), &changes)
        #expect(records.keys == ["a", "c"])
        #expect(changes == [.putting("answer", "c", record("x", at: 1)), .deleting("answer", "b")])
        records.put("d", record("x", at: 4), keeping: ["c"], &changes)
        #expect(records.keys == ["c", "d"])
        records.put("c", record("y", at: 0), &changes)
        records.put("e", record("x", at: 5), &changes)
        #expect(records.keys == ["c", "e"])
    }

    @Test func `all stored records are restored, in order of their keys`() throws {
        var records = KeyedRecords<WireAlertAnswerRecord>("answer")
        var changes: [WireChange] = []
        for key in ["b", "a"] { records.put(key, record(key, at: 1), &changes) }
        #expect(
            records.everything == [
                .putting("answer", "a", record("a", at: 1)), .putting("answer", "b", record("b", at: 1)),
            ])
        var restored = KeyedRecords<WireAlertAnswerRecord>("answer")
        for (key, value) in records.sorted {
            #expect(try restored.restore(StoredRecord(collection: "answer", key: key, value: value.wireBytes)))
        }
        #expect(try !restored.restore(StoredRecord(collection: "alert", key: "c", value: [])))
        #expect(restored.values == records.values)
        #expect(throws: (any Error).self) {
            try restored.restore(StoredRecord(collection: "answer", key: "d", value: [0xff]))
        }
    }

    @Test func `removing a missing record writes nothing`() {
        var records = KeyedRecords<WireAlertAnswerRecord>("answer")
        var changes: [WireChange] = []
        #expect(records.remove("a", &changes) == nil && changes.isEmpty)
        records.put("a", record("x", at: 1), &changes)
        #expect(records.remove("a", &changes)?.action == "x")
        #expect(changes.last == .deleting("answer", "a") && records.change("a") == .deleting("answer", "a"))
    }
}
