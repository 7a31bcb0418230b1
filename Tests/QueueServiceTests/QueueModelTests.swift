import BusKit
import OwnerHarness
import PodcastModel
import TestSupport
import Testing
import WireMessages

@testable import QueueService

/// Compares the effects of random commands with a model: the database, the stream and the machine always have the same
/// state, even after refusals and restarts.
struct QueueModelTests {
    @Test(arguments: 1...60) func `the database, the stream and the machine have the same state`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let queue = QueueRig(episodes: 40)
        for _ in 0..<150 {
            act(queue, &random)
        }
        queue.holdsCommits = false
        while !queue.owner.heldTransactions.isEmpty { queue.settle() }
        queue.fireTimers()
        try check(queue)
        let before = queue.numbers
        queue.restart()
        #expect(queue.numbers == before, "after a restart, seed \(seed)")
        try check(queue)
    }

    @Test(arguments: 1...20) func `undo restores the initial state, and redo the final one`(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed &* 977)
        let queue = QueueRig(episodes: 40)
        queue.add(1, 2, 3, 4, 5, 6)
        let start = queue.numbers
        var changes = 0
        for _ in 0..<40 {
            let revision = queue.machine.main.queue.revision
            edit(queue, &random)
            if queue.machine.main.queue.revision != revision { changes += 1 }
        }
        let end = queue.numbers
        for _ in 0..<changes { queue.send { $0.undo = WireUndo() } }
        #expect(queue.numbers == start)
        for _ in 0..<changes { queue.send { $0.redo = WireRedo() } }
        #expect(queue.numbers == end)
    }

    @Test func `a thousand insertions at one position are in order`() throws {
        let queue = QueueRig(episodes: 1_002)
        queue.add(1, 2)
        queue.play(1)
        for number in 3...1_002 { queue.add(number, next: true) }
        #expect(queue.numbers == [1] + (3...1_002).reversed() + [2])
        queue.restart()
        #expect(queue.numbers == [1] + (3...1_002).reversed() + [2])
    }

    private func act(_ queue: QueueRig, _ random: inout SeededGenerator) {
        switch random.below(12) {
        case 0: queue.holdsCommits.toggle()
        case 1: queue.settle()
        case 2: queue.refuse()
        case 3:
            // Changes that aren’t durable are lost in a restart; durable ones must be restored.
            queue.holdsCommits = false
            queue.restart()
        case 4: queue.play(1 + random.below(40))
        case 5: queue.send { $0.next = WireNext() }
        case 6 where !queue.player.loadID.isEmpty: queue.playerChanges { $0.status = .finished }
        default: edit(queue, &random)
        }
        if !queue.holdsCommits { while !queue.owner.heldTransactions.isEmpty { queue.settle() } }
    }

    private func edit(_ queue: QueueRig, _ random: inout SeededGenerator) {
        let entries = queue.machine.main.queue.entries.map(\.id)
        switch random.below(6) {
        case 0, 1: queue.add(1 + random.below(40), 1 + random.below(40), next: random.below(2) == 0)
        case 2 where !entries.isEmpty:
            queue.send {
                $0.remove.entries = [entries[random.below(entries.count)], entries[random.below(entries.count)]]
            }
        case 3 where random.below(8) == 0: queue.send { $0.clear = WireClearQueue() }
        case 4 where queue.machine.main.history.newest(1).first?.undone == true:
            queue.send { $0.redo = WireRedo() }
        default:
            guard !entries.isEmpty else { return }
            queue.send {
                $0.move.entry = entries[random.below(entries.count)]
                $0.move.index = UInt32(random.below(entries.count))
            }
        }
    }

    /// Checks that the stream and the database contain the machine’s state.
    private func check(_ queue: QueueRig) throws {
        let machine = queue.machine.main.queue
        var seen: WireQueueState?
        var deltas = 0
        for publication in queue.published where publication.topic == .queue("main") {
            if publication.kind == .put {
                seen = try WireQueueState(wireBytes: publication.payload)
                deltas = 0
            } else {
                deltas += 1
                #expect(deltas <= 256)
                seen?.apply(try WireQueueDelta(wireBytes: publication.payload))
            }
        }
        if let seen {
            #expect(seen.entries.map(\.id) == machine.entries.map(\.id))
            #expect(seen.current == machine.current ?? "")
            #expect(seen.revision == machine.revision)
        }
        let stored = try (queue.records["entry/main"] ?? [:]).values.map { try WireQueueEntryRecord(wireBytes: $0) }
        #expect(stored.sorted { $0.rank < $1.rank }.map(\.entry.id) == machine.entries.map(\.id))
        #expect(Set(machine.entries.map(\.episode)).count == machine.entries.count)
    }
}
