import SwiftProtobuf
import Testing
import WireMessages

/// Tests how observers apply a queue's deltas.
struct QueueDeltaTests {
    private static func insert(_ id: Int, after: Int?) -> WireQueueStep {
        .with {
            $0.insert.entry.id = "e\(id)"
            $0.insert.after = after.map { "e\($0)" } ?? ""
        }
    }

    private static func state(_ ids: some Sequence<Int>) -> WireQueueState {
        .with { $0.entries = ids.map { id in .with { $0.id = "e\(id)" } } }
    }

    private func ids(_ state: WireQueueState) -> [String] { state.entries.map(\.id) }

    /// Deltas that only append, and deltas that also move, insert after an unknown entry, or remove.
    static let deltas: [[WireQueueStep]] = [
        (100..<300).map { insert($0, after: $0 - 1) },
        // These move an existing entry, insert elsewhere or after an unknown entry, or remove one.
        (100..<200).map { insert($0, after: $0 - 1) } + [insert(3, after: 199)]
            + (200..<300).map { insert($0, after: $0 == 200 ? 3 : $0 - 1) },
        (100..<200).map { insert($0, after: $0 - 1) } + [insert(500, after: 5), insert(501, after: 9_999)],
        (100..<200).map { insert($0, after: $0 - 1) } + [.with { $0.remove = "e199" }, insert(200, after: 198)],
    ]

    @Test(arguments: deltas) func `a long delta has the same result as its individual steps`(steps: [WireQueueStep]) {
        var whole = Self.state(0..<100)
        var single = whole
        let isWholeConsistent = whole.apply(.with { $0.steps = steps })
        var isSingleConsistent = true
        for step in steps { isSingleConsistent = single.apply(.with { $0.steps = [step] }) && isSingleConsistent }
        #expect(ids(whole) == ids(single))
        #expect(isWholeConsistent == isSingleConsistent)
    }

    @Test func `messages are assembled from encoded parts`() throws {
        let beginning = WireQueueState.with {
            $0.name = "main"
            $0.current = "e2"
        }
        let entries = (0..<3).map { number in
            WireQueueEntry.with {
                $0.id = "e\(number)"
                $0.reason = String(repeating: "x", count: [0, 100, 20_000][number])
            }
        }
        var fields = WireFields(beginning)
        for entry in entries { fields.append(3, entry.wireBytes) }
        let whole = try WireQueueState(wireBytes: fields.bytes)
        #expect(whole.entries == entries)
        #expect(whole.name == "main" && whole.current == "e2")
    }

    @Test(arguments: [0, 1, 100, 127, 128, 16_383, 16_384, 100_000])
    func `nested messages have the announced length`(count: Int) throws {
        let entry = WireQueueEntry.with { $0.reason = String(repeating: "x", count: count) }
        let insert = WireFields.size(of: entry.wireBytes.count) + WireFields.size(of: 2)
        var fields = WireFields()
        fields.begin(2, count: WireFields.size(of: insert))
        fields.begin(1, count: insert)
        fields.append(1, entry.wireBytes)
        fields.append(2, "e1")
        let delta = try WireQueueDelta(wireBytes: fields.bytes)
        #expect(delta.steps.map(\.insert.entry) == [entry] && delta.steps.map(\.insert.after) == ["e1"])
    }
}
