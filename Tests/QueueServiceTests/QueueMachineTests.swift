import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

struct QueueMachineTests {
    @Test func `adding to play next moves entries that the queue holds, except the current one`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3, 4, 5)
        queue.play(2)
        let reply = queue.send {
            $0.add.episodes = [5, 2, 9, 1].map(QueueRig.episode)
            $0.add.next = true
        }
        let answer = try reply?.get() ?? WireQueueReply()
        #expect(queue.numbers == [2, 5, 9, 1, 3, 4] && queue.current == 2)
        #expect(answer.moved == [5, 1].map(QueueRig.episode) && answer.alreadyThere == [QueueRig.episode(2)])
        #expect(answer.entries.map(\.episode.id) == [QueueRig.episode(9)])
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3, 4, 5] && queue.current == 2)
    }

    @Test func `entries are added at the end and after the current entry`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.add(3)
        queue.add(4, 5, next: true)
        #expect(queue.numbers == [1, 4, 5, 2, 3])
        #expect(queue.current == 1)
    }

    @Test func `a queue contains an episode once`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        let revision = queue.machine.main.queue.revision
        let reply = try answer(queue.add(2))
        #expect(!reply.changed)
        #expect(reply.alreadyThere == [QueueRig.episode(2)])
        #expect(queue.machine.main.queue.revision == revision)
        let twice = try answer(queue.add(3, 3, 1))
        #expect(twice.alreadyThere == [QueueRig.episode(1)])
        #expect(queue.numbers == [1, 2, 3])
    }

    @Test func `requests that arrive during a lookup share the next lookup`() throws {
        let queue = QueueRig()
        queue.libraryAnswers = false
        let ids = (1...5).map { RequestID(high: 9, low: $0) }
        func ask(_ index: Int, _ episodes: Int...) {
            queue.send(id: ids[index]) { $0.add.episodes = episodes.map(QueueRig.episode) }
        }
        ask(0, 1)
        ask(1, 2, 3)
        ask(2, 99)
        ask(3, 4)
        #expect(queue.owner.heldCalls.count == 1)
        queue.releaseCalls(first: 1)
        #expect(queue.numbers == [1])
        #expect(queue.owner.heldCalls.count == 1)
        ask(4, 5)
        queue.releaseCalls(first: 1)
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(failure(queue.reply(to: ids[2])) == .notFound)
        queue.releaseCalls(as: .failure(Failure(.storageFailed, "broken")), first: 1)
        #expect(failure(queue.reply(to: ids[4])) == .storageFailed)
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(ids.allSatisfy { queue.reply(to: $0) != nil } && queue.owner.heldCalls.isEmpty)
    }

    @Test func `an unknown episode is refused and nothing is added`() throws {
        let queue = QueueRig(episodes: 3)
        let refused1 = queue.add(1, 99)
        #expect(failure(refused1) == .notFound)
        #expect(queue.numbers.isEmpty)
        #expect(queue.published.isEmpty)
    }

    @Test func `a play command for a new episode inserts it before the interrupted one`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(2)
        queue.play(9)
        #expect(queue.numbers == [1, 9, 2, 3])
        #expect(queue.current == 9)
        #expect(queue.player.episode.id == QueueRig.episode(9))
    }

    @Test func `a play command with a position loads the episode at that position, even if it is playing`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        for (number, place) in [(1, 50.0), (1, 60), (2, 70), (3, 0)] {
            let before = queue.playerRequests.count
            let reply = try answer(
                queue.send {
                    $0.play.episode = QueueRig.episode(number)
                    $0.play.position = place
                })
            let asked = queue.playerRequests.dropFirst(before)
            #expect(asked.map(\.load.position) == [place] && asked.map(\.load.hasPosition) == [true])
            #expect(
                asked.map(\.load.loadID) == [reply.loadID] && queue.player.episode.id == QueueRig.episode(number))
        }
        #expect(queue.numbers == [1, 3, 2])
        queue.play(1)
        #expect(queue.playerRequests.last?.load.hasPosition == false)
    }

    @Test func `an invalid position is refused and nothing changes`() {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        let (before, revision) = (queue.playerRequests, queue.machine.main.queue.revision)
        let plays: [(inout WirePlay) -> Void] = [
            { ($0.episode, $0.position) = (QueueRig.episode(2), -1) },
            { ($0.episode, $0.position) = (QueueRig.episode(2), .infinity) },
            { ($0.resume, $0.position) = (true, 10) },
        ]
        for play in plays { #expect(failure(queue.send { play(&$0.play) }) == .invalidArgument) }
        #expect(queue.playerRequests == before && queue.machine.main.queue.revision == revision)
    }

    @Test func `a start position survives a crash before the player accepts the load`() {
        let queue = QueueRig()
        queue.add(1)
        queue.playerAnswers = false
        queue.send {
            $0.play.episode = QueueRig.episode(1)
            $0.play.position = 42
        }
        queue.playerAnswers = true
        queue.restart()
        #expect(queue.playerRequests.map(\.load.position) == [42])
    }

    @Test func `a resume command after the end of an entry that remains plays the next one`() {
        for (mode, expected) in [(WireRepeat.off, 2), (.all, 2), (.one, 1)] {
            let queue = QueueRig()
            queue.send { $0.setModes.consume = false }
            queue.add(1)
            queue.play(1)
            queue.playerChanges { $0.status = .finished }
            queue.send { $0.setModes.repeat = mode }
            queue.add(2)
            queue.send { $0.play.resume = true }
            #expect(queue.current == expected, "repeat \(mode)")
        }
        let alone = QueueRig()
        alone.send { $0.setModes.consume = false }
        alone.add(1)
        alone.play(1)
        alone.playerChanges { $0.status = .finished }
        let before = alone.playerRequests.count
        alone.send { $0.play.resume = true }
        #expect(alone.current == 1 && alone.playerRequests.count == before + 1)
    }

    @Test func `a command that resumes a paused episode is a change, one for a playing episode isn’t`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0.status = .paused }
        #expect(try queue.send { $0.play.resume = true }?.get().changed == true)
        queue.playerChanges { $0.status = .playing }
        #expect(try queue.send { $0.play.resume = true }?.get().changed == false)
    }

    @Test func `a finished entry is removed and the next one plays`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
        #expect(queue.player.episode.id == QueueRig.episode(2))
        #expect(queue.player.status == .playing)
    }

    @Test func `a repeated report of an end is handled once`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerAnswers = false
        queue.playerChanges { $0.status = .finished }
        queue.observe(.put, .playbackState, queue.player.wireBytes)
        queue.observe(.put, .playbackState, queue.player.wireBytes)
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
    }

    @Test func `the end of the last entry removes it and loads nothing`() throws {
        let queue = QueueRig()
        queue.play(1)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.numbers.isEmpty)
        #expect(queue.current == nil)
        let refused2 = queue.send { $0.play.resume = true }
        #expect(failure(refused2) == .queueEmpty)
    }

    @Test func `next and previous change the current entry and playback stays paused`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        let first = queue.entry(1)
        let gone = try answer(queue.send { $0.next.from = first })
        #expect(gone.changed)
        #expect(queue.current == 2)
        #expect(queue.numbers == [1, 2, 3])
        #expect(queue.player.status == .playing)
        queue.playerChanges { $0.status = .paused }
        queue.send { $0.next = WireNext() }
        #expect(queue.current == 3)
        #expect(queue.player.status == .paused)
        let refused3 = queue.send { $0.next = WireNext() }
        #expect(failure(refused3) == .atEdge)
        queue.send { $0.previous = WirePrevious() }
        queue.send { $0.previous = WirePrevious() }
        let refused4 = queue.send { $0.previous = WirePrevious() }
        #expect(failure(refused4) == .atEdge)
        #expect(queue.current == 1)
    }

    @Test(arguments: [1, 3, 100]) func `a next command during a load requests the newest entry afterwards`(times: Int)
        throws
    {
        let queue = QueueRig(episodes: 110)
        queue.send { $0.add.episodes = (1...110).map(QueueRig.episode) }
        queue.play(1)
        queue.playerAnswers = false
        queue.send { $0.next = WireNext() }
        for _ in 0..<times { queue.send { $0.next = WireNext() } }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.current == times + 2)
        #expect(queue.player.episode.id == QueueRig.episode(times + 2))
        #expect(queue.player.status == .playing)
        #expect(queue.playerRequests.count == 3)
    }

    @Test func `a load that the player lost in a crash is requested again`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.playerAnswers = false
        queue.send { $0.next = WireNext() }
        // The load was started and published, but not durable when the player crashed, so it couldn’t be restored.
        queue.playerReady(false)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.playerAnswers = true
        queue.releaseCalls(as: .failure(Failure(.unavailable, "playback is not running")))
        queue.playerReady(true)
        #expect(queue.player.episode.id == QueueRig.episode(2))
    }

    @Test func `an accepted load that the player loses later isn’t requested again`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.restart()
        #expect(queue.player.status == .idle)
        #expect(queue.playerRequests.count == 1)
    }

    @Test func `a next command while the last entry loads doesn’t stop playback`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.send { $0.next = WireNext() }
        queue.playerChanges {
            $0.status = .loading
            $0.willPlay = true
        }
        queue.send { $0.next = WireNext() }
        #expect(queue.player.status == .playing)
        #expect(queue.player.episode.id == QueueRig.episode(3))
    }

    @Test func `a play command for the old entry supersedes an in-flight load of the next one`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        let first = queue.entry(1)
        queue.playerAnswers = false
        queue.send { $0.next = WireNext() }
        queue.send { $0.play.entry = first }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.current == 1)
        #expect(queue.player.episode.id == QueueRig.episode(1))
    }

    @Test func `an episode’s end during an in-flight next command loads the next entry once`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        queue.playerAnswers = false
        queue.send { $0.next = WireNext() }
        queue.playerChanges { $0.status = .finished }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.numbers == [2, 3])
        #expect(queue.current == 2)
        #expect(queue.player.episode.id == QueueRig.episode(2))
        #expect(queue.playerRequests.count == 2)
    }

    @Test func `a next command from an entry that is no longer current is refused`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(1)
        let first = queue.entry(1)
        queue.send { $0.next.from = first }
        let refused5 = queue.send { $0.next.from = first }
        #expect(failure(refused5) == .revisionMismatch)
        #expect(queue.current == 2)
    }

    @Test func `the entry after a removed current one becomes current`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.play(2)
        let playing = queue.entry(2)
        queue.send { $0.remove.entries = [playing] }
        #expect(queue.current == nil)
        #expect(queue.player.status == .playing)
        queue.playerChanges { $0.status = .finished }
        #expect(queue.current == 3)
        #expect(queue.numbers == [1, 3])
    }

    @Test func `a clear command doesn’t remove the playing entry, and undo restores the others`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3, 4)
        queue.play(2)
        queue.send { $0.clear = WireClearQueue() }
        #expect(queue.numbers == [2])
        let undone = try answer(queue.send { $0.undo = WireUndo() })
        #expect(undone.description_p == "Cleared 3 entries")
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(queue.current == 2)
        queue.send { $0.redo = WireRedo() }
        #expect(queue.numbers == [2])
    }

    @Test(arguments: [
        (0, [3, 1, 2, 4]), (1, [1, 3, 2, 4]), (2, [1, 2, 3, 4]), (3, [1, 2, 4, 3]),
    ]) func `an entry moves to a position`(place: Int, result: [Int]) throws {
        let queue = QueueRig()
        queue.add(1, 2, 3, 4)
        queue.play(3)
        let third = queue.entry(3)
        queue.send {
            $0.move.entry = third
            $0.move.index = UInt32(place)
        }
        #expect(queue.numbers == result)
        #expect(queue.current == 3)
        guard place != 2 else { return }
        // The playing entry remains current after a move.
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3, 4] && queue.current == 3)
        queue.send { $0.redo = WireRedo() }
        #expect(queue.numbers == result && queue.current == 3)
    }

    @Test func `an entry moves before and after another`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        let (first, third) = (queue.entry(1), queue.entry(3))
        queue.send {
            $0.move.entry = third
            $0.move.before = first
        }
        #expect(queue.numbers == [3, 1, 2])
        queue.send {
            $0.move.entry = third
            $0.move.after = first
        }
        #expect(queue.numbers == [1, 3, 2])
        let itself = queue.send {
            $0.move.entry = first
            $0.move.after = first
        }
        #expect(failure(itself) == .notApplicable)
        let beyond = queue.send {
            $0.move.entry = first
            $0.move.index = 3
        }
        #expect(failure(beyond) == .notApplicable)
    }

    @Test func `a change based on another revision is refused`() throws {
        let queue = QueueRig()
        queue.add(1)
        let result = queue.send {
            $0.ifRevision = 7
            $0.clear = WireClearQueue()
        }
        #expect(failure(result) == .revisionMismatch)
        #expect(queue.numbers == [1])
    }

    @Test func `a refused change is rolled back with all later ones`() throws {
        let queue = QueueRig()
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

    @Test func `an advance that couldn’t be saved is retried`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.holdsCommits = true
        queue.playerChanges { $0.status = .finished }
        queue.refuse()
        #expect(queue.numbers == [1, 2])
        queue.holdsCommits = false
        queue.fireTimers()
        #expect(queue.numbers == [2])
        #expect(queue.player.episode.id == QueueRig.episode(2))
    }

    @Test func `a crash at any step of an advance neither loses nor repeats it`() throws {
        // 0: before the commit; 1: after it, before the player received the load; 2: after that.
        for step in 0...2 {
            let queue = QueueRig()
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
            #expect(queue.player.episode.id == QueueRig.episode(2), "a crash at step \(step)")
            let ids = Set(queue.playerRequests.dropFirst(loads).map(\.load.loadID))
            #expect(ids.count == 1, "a crash at step \(step)")
        }
    }

    @Test func `a full queue refuses new entries and removes none`() throws {
        let rig = QueueRig(episodes: Queue.limit + 1)
        rig.send { $0.add.episodes = (1...Queue.limit).map(QueueRig.episode) }
        let before = rig.machine.main.queue.entries.map(\.id)
        #expect(before.count == Queue.limit)
        let refused6 = rig.add(Queue.limit + 1)
        #expect(failure(refused6) == .limitReached)
        rig.send { $0.clear = WireClearQueue() }
        #expect(rig.numbers.isEmpty)
        rig.send { $0.undo = WireUndo() }
        let isBack = rig.machine.main.queue.entries.map(\.id) == before
        #expect(isBack)
    }

    @Test func `malformed and unknown commands are refused`() throws {
        let queue = QueueRig()
        let refused7 = queue.send { _ in }
        #expect(failure(refused7) == .unknownCommand)
        #expect(failure(queue.send(payload: [0xff, 0xff])) == .malformed)
        let refused8 = queue.send { $0.remove.entries = ["q1"] }
        #expect(failure(refused8) == .notFound)
        let refused9 = queue.send { $0.play.episode = "e99999" }
        #expect(failure(refused9) == .notFound)
        let refused10 = queue.send {
            $0.queue = "nowhere"; $0.clear = WireClearQueue()
        }
        #expect(failure(refused10) == .notFound)
    }

    @Test func `play is refused at once while the player is down`() throws {
        let queue = QueueRig()
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
