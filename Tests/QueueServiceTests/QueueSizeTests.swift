import BusKit
import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Measures changes of a queue of 10,000 entries in the service, with commits and publications. The figures are
/// printed, not checked: they depend on the machine and the build.
struct QueueSizeTests {
    @Test func `changes of a long queue are deltas and a restart restores it completely`() throws {
        let queue = QueueRig(episodes: 10_100)
        for start in stride(from: 1, to: 10_000, by: 500) {
            queue.send { $0.add.episodes = (start..<min(start + 500, 9_900)).map(QueueRig.episode) }
        }
        let clock = ContinuousClock()
        var times: [String: [Duration]] = [:]
        let published = queue.published.count
        for number in 0..<100 {
            times["add", default: []].append(clock.measure { queue.add(9_900 + number, next: number % 2 == 0) })
            let entry = queue.entry(1 + number * 90)
            times["move", default: []].append(
                clock.measure {
                    queue.send {
                        $0.move.entry = entry
                        $0.move.index = UInt32(number * 7)
                    }
                })
            times["undo", default: []].append(clock.measure { queue.send { $0.undo = WireUndo() } })
        }
        let puts = queue.published.dropFirst(published).count { $0.kind == .put }
        #expect(puts <= 300 / 40)
        let before = queue.numbers
        times["restore"] = [clock.measure { queue.restart() }]
        #expect(queue.numbers == before && before.count == 9_999)
        for (name, durations) in times.sorted(by: { $0.key < $1.key }) {
            let sorted = durations.sorted()
            print("10 000 entries, \(name): p50 \(sorted[sorted.count / 2]), p99 \(sorted[sorted.count * 99 / 100])")
        }
    }

    /// Returns a queue of `count` entries with addresses as long as signed ones.
    private func signed(_ count: Int) -> QueueRig {
        let queue = QueueRig(episodes: 1)
        for number in 1...count {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = "Episode \(count - number)"
                $0.enclosureURL = "https://a.b/\(number).mp3?token=" + String(repeating: "x", count: 4_500)
            }
        }
        for start in stride(from: 1, through: count, by: 500) {
            queue.send { $0.add.episodes = (start..<min(start + 500, count + 1)).map(QueueRig.episode) }
        }
        return queue
    }

    @Test func `no record and no message exceeds the bus’s limit`() throws {
        let queue = signed(2_500)
        let all = queue.numbers
        #expect(all.count == 2_500)
        queue.published = []
        queue.send { $0.clear = WireClearQueue() }
        #expect(queue.numbers.isEmpty)
        queue.restart()
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == all)
        queue.send { $0.sort.by = .title }
        #expect(queue.numbers == all.sorted { "\(2_500 - $0)" < "\(2_500 - $1)" })
        queue.restart()
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == all)
        for collection in queue.records.values {
            for record in collection.values { #expect(record.count <= 512 << 10) }
        }
        var deltas = 0
        for publication in queue.published {
            #expect(publication.payload.count <= 1 << 20)
            deltas = publication.kind == .put ? 0 : deltas + 1
            #expect(deltas <= 256)
        }
    }

    @Test func `the deltas after a put are no larger than the put`() {
        let queue = signed(200)
        queue.send { $0.clear = WireClearQueue() }
        queue.published = []
        let ids = (1...200).map(QueueRig.episode)
        for _ in 0..<10 {
            queue.send { $0.add.episodes = ids }
            queue.send { $0.undo = WireUndo() }
        }
        // The last put and the deltas after it stay below 2 MB together.
        var held = 0
        for publication in queue.published {
            held = publication.payload.count + (publication.kind == .put ? 0 : held)
            #expect(held < 2_000_000)
        }
    }

    @Test func `a history of large changes evicts the oldest ones and never the newest one`() throws {
        let queue = signed(1_200)
        let all = queue.numbers
        for _ in 0..<4 {
            queue.send { $0.clear = WireClearQueue() }
            let revision = queue.machine.main.queue.revision
            queue.send { $0.restore.revision = revision - 1 }
            #expect(queue.numbers == all)
        }
        let stored = queue.records["history/main", default: [:]].values.reduce(0) { $0 + $1.count }
        #expect(stored < 32 << 20)
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers.isEmpty)
        queue.restart()
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == all)
        queue.send { $0.redo = WireRedo() }
        #expect(queue.numbers.isEmpty)
    }

    @Test func `a hundred texts are matched in a full queue, and a search beyond the limit is refused`() throws {
        func full(_ title: String) -> QueueRig {
            let queue = QueueRig()
            for number in 1...10_000 {
                let id = QueueRig.episode(number)
                queue.details[id] = .with { ($0.id, $0.title) = (id, "\(number): \(title)") }
            }
            queue.send { $0.add.episodes = (1...10_000).map(QueueRig.episode) }
            return queue
        }
        let queue = full("Überall, a title of an ordinary length")
        let texts = (9_901...10_000).map { "\($0): ÜBERALL" }
        #expect(try queue.send { $0.remove.texts = texts }?.get().count == 100)
        #expect(queue.numbers.last == 9_900)
        let long = full(String(repeating: "very long ", count: 60))
        let beginnings = (9_901...10_000).map { "\($0): very long" }
        #expect(long.send { $0.remove.texts = beginnings }?.failure?.known == .limitReached)
        #expect(long.numbers.count == 10_000)
    }
}
