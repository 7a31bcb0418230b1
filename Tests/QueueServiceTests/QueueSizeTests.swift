import BusKit
import PodcastModel
import Testing
import WireMessages

@testable import QueueService

/// A queue of 10 000 entries: what changing it takes in the service, what is committed and published included. The figures
/// are printed, not judged: they depend on the machine and on how it was built.
struct QueueSizeTests {
    @Test func changesOfALongQueueAreDeltasAndItComesBackWhole() throws {
        var queue = QueueHarness(episodes: 10_100)
        for start in stride(from: 1, to: 10_000, by: 500) {
            queue.ask { $0.add.episodes = (start..<min(start + 500, 9_900)).map(QueueHarness.episode) }
        }
        let clock = ContinuousClock()
        var times: [String: [Duration]] = [:]
        let published = queue.published.count
        for number in 0..<100 {
            times["add", default: []].append(clock.measure { queue.add(9_900 + number, next: number % 2 == 0) })
            let entry = queue.entry(1 + number * 90)
            times["move", default: []].append(
                clock.measure {
                    queue.ask {
                        $0.move.entry = entry
                        $0.move.index = UInt32(number * 7)
                    }
                })
            times["undo", default: []].append(clock.measure { queue.ask { $0.undo = WireUndo() } })
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
}
