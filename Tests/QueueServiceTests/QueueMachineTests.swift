import BusKit
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

struct QueueMachineTests {
    @Test func `adds at the end and behind the current entry`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        queue.add(3)
        queue.add(4, 5, next: true)
        #expect(queue.numbers == [1, 4, 5, 2, 3])
        #expect(queue.current == 1)
    }

    @Test func `an episode stands in it once`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        let revision = queue.machine.main.queue.revision
        let reply = try answer(queue.add(2))
        #expect(!reply.changed)
        #expect(reply.alreadyThere == [QueueHarness.episode(2)])
        #expect(queue.machine.main.queue.revision == revision)
        let twice = try answer(queue.add(3, 3, 1))
        #expect(twice.alreadyThere == [QueueHarness.episode(1)])
        #expect(queue.numbers == [1, 2, 3])
    }

    @Test func `while the library is asked those that come wait and are asked for together`() throws {
        var queue = QueueHarness()
        queue.libraryAnswers = false
        let ids = (1...5).map { RequestID(high: 9, low: $0) }
        func ask(_ index: Int, _ episodes: Int...) {
            queue.ask(id: ids[index]) { $0.add.episodes = episodes.map(QueueHarness.episode) }
        }
        ask(0, 1)
        ask(1, 2, 3)
        ask(2, 99)
        ask(3, 4)
        #expect(queue.libraryCalls.count == 1)
        queue.answerLibrary()
        #expect(queue.numbers == [1])
        #expect(queue.libraryCalls.count == 1)
        ask(4, 5)
        queue.answerLibrary()
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(failure(queue.answers[ids[2]]) == .notFound)
        queue.answerLibrary(Failure(.storageFailed, "broken"))
        #expect(failure(queue.answers[ids[4]]) == .storageFailed)
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(ids.allSatisfy { queue.answers[$0] != nil } && queue.libraryCalls.isEmpty)
    }

    @Test func `an unknown episode is refused and nothing is added`() throws {
        var queue = QueueHarness(episodes: 3)
        let refused1 = queue.add(1, 99)
        #expect(failure(refused1) == .notFound)
        #expect(queue.numbers.isEmpty)
        #expect(queue.published.isEmpty)
    }

    @Test func `playing an episode puts it in front of the interrupted one`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(2)
        queue.play(9)
        #expect(queue.numbers == [1, 9, 2, 3])
        #expect(queue.current == 9)
        #expect(queue.player.episode.id == QueueHarness.episode(9))
    }

    @Test func `playing at a place loads it there at once whatever plays`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        for (number, place) in [(1, 50.0), (1, 60), (2, 70), (3, 0)] {
            let before = queue.playerRequests.count
            let reply = try answer(
                queue.ask {
                    $0.play.episode = QueueHarness.episode(number)
                    $0.play.position = place
                })
            let asked = queue.playerRequests.dropFirst(before)
            #expect(asked.map(\.load.position) == [place] && asked.map(\.load.hasPosition) == [true])
            #expect(
                asked.map(\.load.loadID) == [reply.loadID] && queue.player.episode.id == QueueHarness.episode(number))
        }
        #expect(queue.numbers == [1, 3, 2])
        queue.play(1)
        #expect(queue.playerRequests.last?.load.hasPosition == false)
    }

    @Test func `a place that makes no sense is refused and nothing changes`() {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        let (before, revision) = (queue.playerRequests, queue.machine.main.queue.revision)
        let plays: [(inout WirePlay) -> Void] = [
            { ($0.episode, $0.position) = (QueueHarness.episode(2), -1) },
            { ($0.episode, $0.position) = (QueueHarness.episode(2), .infinity) },
            { ($0.resume, $0.position) = (true, 10) },
        ]
        for play in plays { #expect(failure(queue.ask { play(&$0.play) }) == .invalidArgument) }
        #expect(queue.playerRequests == before && queue.machine.main.queue.revision == revision)
    }

    @Test func `a place survives a crash before the player has the load`() {
        var queue = QueueHarness()
        queue.add(1)
        queue.playerAnswers = false
        queue.ask {
            $0.play.episode = QueueHarness.episode(1)
            $0.play.position = 42
        }
        queue.playerAnswers = true
        queue.restart()
        #expect(queue.playerRequests.map(\.load.position) == [42])
    }

    @Test func `playing on behind an entry that has ended and stays plays the next one`() {
        for (mode, expected) in [(WireRepeat.off, 2), (.all, 2), (.one, 1)] {
            var queue = QueueHarness()
            queue.ask { $0.setModes.consume = false }
            queue.add(1)
            queue.play(1)
            queue.playerChanges { $0.status = .finished }
            queue.ask { $0.setModes.repeat = mode }
            queue.add(2)
            queue.ask { $0.play.resume = true }
            #expect(queue.current == expected, "repeat \(mode)")
        }
        var alone = QueueHarness()
        alone.ask { $0.setModes.consume = false }
        alone.add(1)
        alone.play(1)
        alone.playerChanges { $0.status = .finished }
        let before = alone.playerRequests.count
        alone.ask { $0.play.resume = true }
        #expect(alone.current == 1 && alone.playerRequests.count == before + 1)
    }

    @Test func `resuming what is paused is answered as a change, and asking for what plays is not`() throws {
        var queue = QueueHarness()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0.status = .paused }
        #expect(try queue.ask { $0.play.resume = true }?.get().changed == true)
        queue.playerChanges { $0.status = .playing }
        #expect(try queue.ask { $0.play.resume = true }?.get().changed == false)
    }

    @Test func `a finished entry leaves and the next one plays`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
        #expect(queue.player.episode.id == QueueHarness.episode(2))
        #expect(queue.player.status == .playing)
    }

    @Test func `the same end is dealt with once`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerAnswers = false
        queue.playerChanges { $0.status = .finished }
        queue.observe(.put, .playbackState, queue.player.wireBytes)
        queue.observe(.put, .playbackState, queue.player.wireBytes)
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
    }

    @Test func `the end of the last entry leaves an empty queue`() throws {
        var queue = QueueHarness()
        queue.play(1)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.numbers.isEmpty)
        #expect(queue.current == nil)
        let refused2 = queue.ask { $0.play.resume = true }
        #expect(failure(refused2) == .queueEmpty)
    }

    @Test func `next and previous move the mark and keep paused paused`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        let first = queue.entry(1)
        let gone = try answer(queue.ask { $0.next.from = first })
        #expect(gone.changed)
        #expect(queue.current == 2)
        #expect(queue.numbers == [1, 2, 3])
        #expect(queue.player.status == .playing)
        queue.playerChanges { $0.status = .paused }
        queue.ask { $0.next = WireNext() }
        #expect(queue.current == 3)
        #expect(queue.player.status == .paused)
        let refused3 = queue.ask { $0.next = WireNext() }
        #expect(failure(refused3) == .atEdge)
        queue.ask { $0.previous = WirePrevious() }
        queue.ask { $0.previous = WirePrevious() }
        let refused4 = queue.ask { $0.previous = WirePrevious() }
        #expect(failure(refused4) == .atEdge)
        #expect(queue.current == 1)
    }

    @Test(arguments: [1, 3, 100]) func `next during a load is followed by the load of the newest entry`(times: Int)
        throws
    {
        var queue = QueueHarness(episodes: 110)
        queue.ask { $0.add.episodes = (1...110).map(QueueHarness.episode) }
        queue.play(1)
        queue.playerAnswers = false
        queue.ask { $0.next = WireNext() }
        for _ in 0..<times { queue.ask { $0.next = WireNext() } }
        queue.playerAnswers = true
        queue.answerHeldCalls()
        #expect(queue.current == times + 2)
        #expect(queue.player.episode.id == QueueHarness.episode(times + 2))
        #expect(queue.player.status == .playing)
        #expect(queue.playerRequests.count == 3)
    }

    @Test func `a load that the player lost in a crash is asked for again`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        queue.playerAnswers = false
        queue.ask { $0.next = WireNext() }
        // It was begun and shown, but not durable when the player died; its session could not be taken up again.
        queue.playerReady(false)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.playerAnswers = true
        queue.failHeldCalls(Failure(.unavailable, "playback is not running"))
        queue.playerReady(true)
        #expect(queue.player.episode.id == QueueHarness.episode(2))
    }

    @Test func `a load that was accepted is not repeated when the player forgets it later`() throws {
        var queue = QueueHarness()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.restart()
        #expect(queue.player.status == .idle)
        #expect(queue.playerRequests.count == 1)
    }

    @Test func `next while the last one loads plays on`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.ask { $0.next = WireNext() }
        queue.playerChanges {
            $0.status = .loading
            $0.willPlay = true
        }
        queue.ask { $0.next = WireNext() }
        #expect(queue.player.status == .playing)
        #expect(queue.player.episode.id == QueueHarness.episode(3))
    }

    @Test func `playing the old entry again while the next one is on its way wins`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        let first = queue.entry(1)
        queue.playerAnswers = false
        queue.ask { $0.next = WireNext() }
        queue.ask { $0.play.entry = first }
        queue.playerAnswers = true
        queue.answerHeldCalls()
        #expect(queue.current == 1)
        #expect(queue.player.episode.id == QueueHarness.episode(1))
    }

    @Test func `an end while next is on its way loads the next entry once`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerAnswers = false
        queue.ask { $0.next = WireNext() }
        queue.playerChanges { $0.status = .finished }
        queue.playerAnswers = true
        queue.answerHeldCalls()
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
        #expect(queue.player.episode.id == QueueHarness.episode(2))
        #expect(queue.playerRequests.count == 2)
    }

    @Test func `next from an entry that is no longer current is refused`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(1)
        let first = queue.entry(1)
        queue.ask { $0.next.from = first }
        let refused5 = queue.ask { $0.next.from = first }
        #expect(failure(refused5) == .revisionMismatch)
        #expect(queue.current == 2)
    }

    @Test func `removing the current entry lets the next one follow`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        queue.play(2)
        let playing = queue.entry(2)
        queue.ask { $0.remove.entries = [playing] }
        #expect(queue.current == nil)
        #expect(queue.player.status == .playing)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.current == 3)
        #expect(queue.numbers == [1, 3])
    }

    @Test func `clearing keeps what plays and undo brings the rest back`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3, 4)
        queue.play(2)
        queue.ask { $0.clear = WireClearQueue() }
        #expect(queue.numbers == [2])
        let undone = try answer(queue.ask { $0.undo = WireUndo() })
        #expect(undone.description_p == "Cleared 3 entries")
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(queue.current == 2)
        queue.ask { $0.redo = WireRedo() }
        #expect(queue.numbers == [2])
    }

    @Test(arguments: [
        (0, [3, 1, 2, 4]), (1, [1, 3, 2, 4]), (2, [1, 2, 3, 4]), (3, [1, 2, 4, 3]),
    ]) func `moves to a place`(place: Int, result: [Int]) throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3, 4)
        queue.play(3)
        let third = queue.entry(3)
        queue.ask {
            $0.move.entry = third
            $0.move.index = UInt32(place)
        }
        #expect(queue.numbers == result)
        #expect(queue.current == 3)
        guard place != 2 else { return }
        // What plays keeps its mark, whichever way it is moved.
        queue.ask { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3, 4] && queue.current == 3)
        queue.ask { $0.redo = WireRedo() }
        #expect(queue.numbers == result && queue.current == 3)
    }

    @Test func `moves before and after another`() throws {
        var queue = QueueHarness()
        queue.add(1, 2, 3)
        let (first, third) = (queue.entry(1), queue.entry(3))
        queue.ask {
            $0.move.entry = third
            $0.move.before = first
        }
        #expect(queue.numbers == [3, 1, 2])
        queue.ask {
            $0.move.entry = third
            $0.move.after = first
        }
        #expect(queue.numbers == [1, 3, 2])
        let itself = queue.ask {
            $0.move.entry = first
            $0.move.after = first
        }
        #expect(failure(itself) == .invalidArgument)
        let beyond = queue.ask {
            $0.move.entry = first
            $0.move.index = 3
        }
        #expect(failure(beyond) == .invalidArgument)
    }

    @Test func `a change of another revision is refused`() throws {
        var queue = QueueHarness()
        queue.add(1)
        let result = queue.ask {
            $0.ifRevision = 7
            $0.clear = WireClearQueue()
        }
        #expect(failure(result) == .revisionMismatch)
        #expect(queue.numbers == [1])
    }

    @Test func `a refusal in the middle undoes it and all behind it`() throws {
        var queue = QueueHarness()
        queue.add(1)
        queue.holdsCommits = true
        queue.add(2)
        queue.add(3)
        queue.add(4)
        #expect(queue.numbers == [1, 2, 3, 4])
        queue.settle()
        queue.refuse()
        #expect(queue.numbers == [1, 2])
        queue.holdsCommits = false
        queue.add(5)
        #expect(queue.numbers == [1, 2, 5])
        queue.restart()
        #expect(queue.numbers == [1, 2, 5])
    }

    @Test func `an advance that could not be saved is made up for`() throws {
        var queue = QueueHarness()
        queue.add(1, 2)
        queue.play(1)
        queue.holdsCommits = true
        queue.playerChanges { $0.status = .finished }
        queue.refuse()
        #expect(queue.numbers == [1, 2])
        queue.holdsCommits = false
        queue.fireTimers()
        #expect(queue.numbers == [2])
        #expect(queue.player.episode.id == QueueHarness.episode(2))
    }

    @Test func `a crash at every step of an advance loses and doubles nothing`() throws {
        // 0: before the commit; 1: after it, before the player heard; 2: after the player heard.
        for step in 0...2 {
            var queue = QueueHarness()
            queue.add(1, 2, 3)
            queue.play(1)
            let loads = queue.playerRequests.count
            queue.holdsCommits = step == 0
            queue.playerAnswers = step == 2
            queue.playerChanges { $0.status = .finished }
            queue.holdsCommits = false
            queue.playerAnswers = true
            queue.restart()
            #expect(queue.numbers == [2, 3], "a crash at step \(step)")
            #expect(queue.current == 2, "a crash at step \(step)")
            #expect(queue.player.episode.id == QueueHarness.episode(2), "a crash at step \(step)")
            let ids = Set(queue.playerRequests.dropFirst(loads).map(\.load.loadID))
            #expect(ids.count == 1, "a crash at step \(step)")
        }
    }

    @Test func `a limit refuses instead of dropping`() throws {
        var queue = Queue()
        for number in 0..<Queue.limit {
            let entry = WireQueueEntry.with {
                $0.id = "q\(number)"
                $0.episode.id = QueueHarness.episode(number + 1)
            }
            _ = queue.apply([.inserting(entry, after: queue.entries.last?.id ?? "")])
        }
        #expect(queue.entries.count == Queue.limit)
        var harness = QueueHarness(episodes: Queue.limit + 1)
        harness.machine.queues = SpeculativeState([
            "main": NamedQueue(
                name: "main", header: WireQueueHeaderRecord(), entries: Array(queue.entries), history: QueueHistory())
        ])
        let refused6 = harness.add(Queue.limit + 1)
        #expect(failure(refused6) == .limitReached)
        harness.ask { $0.clear = WireClearQueue() }
        #expect(harness.numbers.isEmpty)
        harness.ask { $0.undo = WireUndo() }
        let isBack = harness.machine.main.queue.entries.map(\.id) == queue.entries.map(\.id)
        #expect(isBack)
    }

    @Test func `garbage and unknown commands are refused`() throws {
        var queue = QueueHarness()
        let refused7 = queue.ask { _ in }
        #expect(failure(refused7) == .unknownCommand)
        queue.perform(
            queue.machine.handle(
                .command(Command(id: RequestID(high: 1, low: 1), origin: "test", payload: [0xff, 0xff])), now: queue.now
            ))
        #expect(failure(queue.answers[RequestID(high: 1, low: 1)]) == .malformed)
        let refused8 = queue.ask { $0.remove.entries = ["q1"] }
        #expect(failure(refused8) == .notFound)
        let refused9 = queue.ask { $0.play.episode = "e99999" }
        #expect(failure(refused9) == .notFound)
        let refused10 = queue.ask {
            $0.queue = "nowhere"; $0.clear = WireClearQueue()
        }
        #expect(failure(refused10) == .notFound)
    }

    @Test func `play is refused at once while the player is down`() throws {
        var queue = QueueHarness()
        queue.add(1)
        queue.playerReady(false)
        let refused11 = queue.play(1)
        #expect(failure(refused11) == .unavailable)
        #expect(queue.current == nil)
    }

    private func answer(_ result: Result<WireQueueReply, Failure>?) throws -> WireQueueReply {
        try #require(result).get()
    }

    private func failure(_ result: Result<WireQueueReply, Failure>?) -> FailureCode? {
        guard case .failure(let failure) = result else { return nil }
        return failure.known
    }
}
