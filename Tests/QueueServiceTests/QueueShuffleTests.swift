import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests the shuffling and the renaming of a queue.
@Suite struct QueueShuffleTests {
    private func filled(_ count: Int = 20) -> QueueRig {
        let queue = QueueRig()
        for number in 1...count { queue.add(number) }
        return queue
    }

    @Test func `a shuffle is one change of the entries after the current one, and can be undone`() throws {
        let queue = filled()
        queue.play(3)
        queue.playerChanges { _ in }
        let revision = queue.machine.main.queue.revision
        let reply = try #require(queue.send { $0.shuffle.seed = 7 }?.reply)
        #expect(reply.changed && queue.machine.main.queue.revision == revision + 1)
        #expect(Array(queue.numbers.prefix(3)) == [1, 2, 3] && queue.current == 3)
        #expect(queue.numbers != Array(1...20) && queue.numbers.sorted() == Array(1...20))
        queue.restart()
        let shuffled = queue.numbers
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == Array(1...20))
        queue.send { $0.shuffle.seed = 7 }
        #expect(queue.numbers == shuffled)
    }

    @Test func `a queue without entries to shuffle isn’t changed`() throws {
        let queue = QueueRig()
        #expect(queue.send { $0.shuffle = WireShuffleQueue() }?.reply?.changed == false)
        queue.add(1)
        #expect(queue.send { $0.shuffle = WireShuffleQueue() }?.reply?.changed == false)
    }

    private func rename(_ queue: QueueRig, _ name: String, to new: String) -> Result<WireQueueReply, Failure>? {
        queue.send {
            $0.queue = name
            $0.rename.name = new
        }
    }

    @Test func `a renamed queue keeps its entries, history, modes, playback and settings`() throws {
        let queue = QueueRig()
        queue.send {
            $0.queue = "evening"
            $0.create = WireCreateQueue()
        }
        for number in 1...3 {
            queue.send {
                $0.queue = "evening"
                $0.add.episodes = [QueueRig.episode(number)]
            }
        }
        queue.send {
            $0.queue = "evening"
            $0.setModes.limit = 9
        }
        let podcast = PodcastID.derived(from: "x").text
        queue.send {
            $0.setSetting.podcast = podcast
            $0.setSetting.key = SettingKey.autoEnqueueQueue.rawValue
            $0.setSetting.value = "evening"
        }
        queue.send {
            $0.queue = "evening"
            $0.play.resume = true
        }
        queue.playerChanges { _ in }
        #expect(rename(queue, "evening", to: "night")?.reply?.changed == true)
        #expect(queue.retained[.queue("evening")] == nil && queue.retained[.queue("night")] != nil)
        #expect(queue.player.queue == "night")
        queue.restart()
        #expect(queue.machine.queues["evening"] == nil && queue.numbers(of: "night") == [1, 2, 3])
        #expect(queue.machine.queues["night"]?.modes.limit == 9)
        #expect(queue.machine.rules.settings.value(.autoEnqueueQueue, podcast: podcast) == "night")
        // The queue plays on.
        queue.playerChanges { $0.status = .finished }
        queue.playerChanges { _ in }
        #expect(queue.player.episode.id == QueueRig.episode(2))
        queue.send {
            $0.queue = "night"
            $0.undo = WireUndo()
        }
        #expect(queue.machine.queues["night"]?.history.newest(9).isEmpty == false)
    }

    @Test func `a renamed queue plays on after its playing entry was removed`() {
        let queue = QueueRig()
        queue.send {
            $0.queue = "evening"
            $0.create = WireCreateQueue()
        }
        queue.add(9)
        queue.send {
            $0.queue = "evening"
            $0.add.episodes = [QueueRig.episode(1), QueueRig.episode(2)]
        }
        queue.send {
            $0.queue = "evening"
            $0.play.resume = true
        }
        queue.playerChanges { _ in }
        queue.send {
            $0.queue = "evening"
            $0.remove.texts = ["1"]
        }
        _ = rename(queue, "evening", to: "night")
        _ = rename(queue, "night", to: "late")
        queue.playerChanges { _ in }
        queue.playerChanges { $0.status = .finished }
        queue.playerChanges { _ in }
        #expect(queue.player.episode.id == QueueRig.episode(2), "\(queue.player.episode.id)")
    }

    @Test func `a queue with the ID of a playlist gets another name at the start`() throws {
        let queue = QueueRig()
        queue.send {
            $0.queue = "evening"
            $0.create = WireCreateQueue()
        }
        for number in 1...2 {
            queue.send {
                $0.queue = "evening"
                $0.add.episodes = [QueueRig.episode(number)]
            }
        }
        // As an earlier version has stored it.
        let name = PlaylistName.favourites
        let header = queue.records["queue"]?.removeValue(forKey: "evening")
        queue.records["queue"]?[name] = header
        for kind in ["entry", "history"] {
            queue.records["\(kind)/\(name)"] = queue.records.removeValue(forKey: "\(kind)/evening")
        }
        queue.restart()
        #expect(queue.machine.queues[PlaylistName.favourites] == nil && queue.machine.playlists.count == 1)
        #expect(queue.numbers(of: "favourites-queue") == [1, 2])
        queue.restart()
        #expect(queue.numbers(of: "favourites-queue") == [1, 2] && queue.machine.queues.count == 2)
        #expect(queue.machine.queues["favourites-queue"]?.history.newest(9).count == 2)
    }

    @Test func `a queue isn’t renamed to an invalid or existing name, and Up Next never`() {
        let queue = QueueRig()
        for name in ["a", "b"] {
            queue.send {
                $0.queue = name
                $0.create = WireCreateQueue()
            }
        }
        #expect(rename(queue, "main", to: "x")?.failure?.known == .notApplicable)
        #expect(rename(queue, "a", to: "b")?.failure?.known == .invalidArgument)
        #expect(rename(queue, "a", to: "main")?.failure?.known == .invalidArgument)
        #expect(rename(queue, "a", to: "no name")?.failure?.known == .invalidArgument)
        #expect(rename(queue, "c", to: "d")?.failure?.known == .notFound)
        #expect(rename(queue, "a", to: "a")?.reply?.changed == false)
        #expect(queue.machine.queues["a"] != nil && queue.machine.queues["b"] != nil)
    }
}
