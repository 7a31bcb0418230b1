import BusKit
import OwnerHarness
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests requests with thousands of episodes.
struct QueueBulkTests {
    private func names(_ numbers: some Sequence<Int>) -> [String] { numbers.map(QueueRig.episode) }

    @Test func `a request with 5 000 episodes is one revision, one commit and one undo step`() throws {
        let queue = QueueRig(episodes: 5_000)
        queue.add(7)
        let revision = queue.machine.main.queue.revision
        queue.holdsCommits = true
        let id = RequestID(high: 1, low: 1)
        queue.send(id: id) { $0.add.episodes = names(1...5_000) }
        #expect(queue.owner.heldTransactions.count == 1)
        queue.holdsCommits = false
        queue.settle()
        let reply = try #require(queue.reply(to: id)).get()
        #expect(reply.count == 4_999 && reply.entries.count == 500 && reply.alreadyThere == names([7]))
        #expect(queue.machine.main.queue.revision == revision + 1)
        #expect(queue.numbers == [7] + (1...5_000).filter { $0 != 7 })
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == [7])
    }

    @Test func `a request with one unknown episode among thousands is refused`() {
        let queue = QueueRig(episodes: 2_000)
        #expect(queue.send { $0.add.episodes = names(1...2_001) }?.failure?.known == .notFound)
        #expect(queue.numbers.isEmpty)
    }

    @Test func `a request with more episodes than a queue can hold is refused before the library is queried`() {
        let queue = QueueRig(episodes: 1)
        queue.libraryAnswers = false
        #expect(queue.send { $0.add.episodes = names(1...10_001) }?.failure?.known == .limitReached)
    }
}
