import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests several queues, their order, modes and history.
struct QueueListTests {
    @Test func `queues can be created and deleted, and survive a restart`() throws {
        let queue = QueueRig()
        #expect(try ask(queue, "later") { $0.create = WireCreateQueue() }.changed)
        #expect(try !ask(queue, "later") { $0.create = WireCreateQueue() }.changed)
        try ask(queue, "later") { $0.add.episodes = [QueueRig.episode(4)] }
        queue.add(1)
        queue.restart()
        #expect(queue.machine.queues.keys.sorted() == ["later", "main"])
        #expect(refusal(queue, "later") { $0.delete = WireDeleteQueue() } == .notApplicable)
        try ask(queue, "later") { $0.clear = WireClearQueue() }
        try ask(queue, "later") { $0.delete = WireDeleteQueue() }
        #expect(queue.published.last == Publication(.delete, .queue("later")))
        queue.restart()
        #expect(queue.machine.queues.keys.sorted() == ["main"])
        #expect(queue.numbers == [1])
        #expect(refusal(queue, "main") { $0.delete = WireDeleteQueue() } == .notApplicable)
    }

    @Test(arguments: ["", "1st", "with space", "../up", "ä", String(repeating: "x", count: 41)])
    func `an invalid queue name is refused`(name: String) throws {
        let queue = QueueRig()
        // An empty name means the default queue, which exists.
        let expected: FailureCode? = name.isEmpty ? nil : .invalidArgument
        #expect(refusal(queue, name) { $0.create = WireCreateQueue() } == expected)
    }

    @Test func `the number of queues is limited, and the refusal of an unknown one suggests a name`() throws {
        let queue = QueueRig()
        for number in 1..<QueueMachine.queueLimit { try ask(queue, "q\(number)") { $0.create = WireCreateQueue() } }
        #expect(refusal(queue, "more") { $0.create = WireCreateQueue() } == .limitReached)
        let result = queue.send {
            $0.queue = "none"
            $0.clear = WireClearQueue()
        }
        guard case .failure(let failure) = result else { return #expect(Bool(false), "it was not refused") }
        #expect(failure.known == .notFound && failure.message.contains("`lockstep queues`"))
    }

    @Test func `playback stays in the queue of the loaded entry`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        try ask(queue, "later") { $0.create = WireCreateQueue() }
        try ask(queue, "later") { $0.add.episodes = [4, 5, 6].map(QueueRig.episode) }
        queue.play(1)
        queue.play(4)
        #expect(queue.player.episode.id == QueueRig.episode(4))
        #expect(queue.current == 1)
        queue.send { $0.next = WireNext() }
        #expect(queue.player.episode.id == QueueRig.episode(5))
        queue.playerChanges { $0.status = .finished }
        #expect(queue.player.episode.id == QueueRig.episode(6))
        #expect(numbers(queue, "later") == [4, 6])
        #expect(queue.numbers == [1, 2])
        // The same holds if the playing entry was removed before its end.
        let entry = queue.player.queueEntry
        try ask(queue, "later") { $0.add.episodes = [QueueRig.episode(7)] }
        try ask(queue, "later") { $0.remove.entries = [entry] }
        queue.restart()
        queue.playerChanges { $0.status = .finished }
        #expect(queue.player.episode.id == QueueRig.episode(7))
        #expect(queue.numbers == [1, 2])
    }

    @Test func `a load that fails again is skipped again`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(1)
        func skip(_ alert: String) {
            queue.playerChanges {
                $0.status = .failed
                $0.skip = true
                $0.skippedAlert = alert
            }
        }
        skip("a1")
        #expect(queue.player.episode.id == QueueRig.episode(1))
        queue.add(2)
        queue.restart()
        #expect(queue.player.episode.id == QueueRig.episode(1))
        queue.playerChanges {
            $0.status = .playing
            $0.skip = false
            $0.skippedAlert = ""
        }
        skip("a2")
        #expect(queue.player.episode.id == QueueRig.episode(2) && queue.numbers == [1, 2])
    }

    @Test func `the end of an episode advances only one queue`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        try ask(queue, "later") { $0.create = WireCreateQueue() }
        try ask(queue, "later") { $0.add.episodes = [4, 5].map(QueueRig.episode) }
        queue.play(4)
        queue.playerAnswers = false
        queue.playerChanges { $0.status = .finished }
        queue.restart()
        queue.playerAnswers = true
        queue.releaseCalls()
        queue.playerChanges { _ in }
        #expect(queue.player.episode.id == QueueRig.episode(5))
        #expect(numbers(queue, "later") == [5] && queue.numbers == [1, 2])
    }

    @Test func `the newest load of all queues supersedes the others`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        try ask(queue, "a") { $0.create = WireCreateQueue() }
        try ask(queue, "a") { $0.add.episodes = [QueueRig.episode(4)] }
        try ask(queue, "z") { $0.create = WireCreateQueue() }
        try ask(queue, "z") { $0.add.episodes = [QueueRig.episode(5)] }
        queue.play(1)
        queue.playerAnswers = false
        queue.play(4)
        queue.play(5)
        queue.play(2)
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.player.episode.id == QueueRig.episode(2))
        #expect(queue.machine.queues.values.allSatisfy { $0.pending == nil })
    }

    @Test func `a load whose entry was removed isn’t restored with the entry`() {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        let second = queue.entry(2)
        queue.playerAnswers = false
        queue.send { $0.play.entry = second }
        queue.send { $0.remove.entries = [second] }
        queue.releaseCalls(as: .failure(Failure(.unavailable, "The player is busy.")))
        queue.playerAnswers = true
        queue.send { $0.undo = WireUndo() }
        queue.playerChanges { _ in }
        #expect(queue.numbers == [1, 2])
        #expect(queue.player.episode.id == QueueRig.episode(1))
    }

    // Clients undid the changes of others: playing an entry of the queue increments the revision without a change.
    @Test func `an undo of one change is refused if it isn’t the newest one`() throws {
        let queue = QueueRig()
        let first = try #require(try queue.add(1, 2)?.get()).undo
        #expect(first != 0)
        let played = try #require(try queue.play(1)?.get())
        #expect(played.changed && played.undo == 0)
        let modes = try ask(queue) { $0.setModes.consume = false }
        #expect(modes.undo == 0)
        let second = try #require(try queue.add(3)?.get()).undo
        let third = try #require(try queue.play(4)?.get()).undo
        #expect(first < second && second < third && queue.numbers == [4, 1, 2, 3])
        for change in [first, second, third + 1] {
            #expect(refusal(queue) { $0.undo.change = change } == .revisionMismatch)
        }
        for change in [third, second] {
            let undone = try ask(queue) { $0.undo.change = change }
            #expect(undone.changed && undone.undo == 0)
        }
        let redone = try ask(queue) { $0.redo = WireRedo() }
        #expect(redone.undo == second)
        #expect(refusal(queue) { $0.undo.change = first } == .revisionMismatch)
        try ask(queue) { $0.undo.change = second }
        queue.restart()
        try ask(queue) { $0.undo.change = first }
        #expect(queue.numbers.isEmpty)
    }

    @Test func `a sort is one change that can be undone`() throws {
        let queue = QueueRig()
        for number in 1...4 {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = ["b", "A", "d", "C"][number - 1]
                $0.duration = [30, 0, 10, 20][number - 1]
                $0.published = [1, 4, 2, 3][number - 1]
            }
        }
        queue.add(1, 2, 3, 4)
        queue.play(3)
        try ask(queue) { $0.sort.by = .title }
        #expect(queue.numbers == [2, 1, 4, 3])
        #expect(queue.current == 3)
        let again = try ask(queue) { $0.sort.by = .title }
        #expect(!again.changed)
        try ask(queue) {
            $0.sort.by = .published
            $0.sort.descending = true
        }
        #expect(queue.numbers == [2, 4, 3, 1])
        try ask(queue) { $0.sort.by = .duration }
        #expect(queue.numbers == [3, 4, 1, 2])
        queue.restart()
        #expect(queue.numbers == [3, 4, 1, 2])
        for _ in 0..<3 { try ask(queue) { $0.undo = WireUndo() } }
        #expect(queue.numbers == [1, 2, 3, 4])
        #expect(refusal(queue) { $0.sort.by = .unknown } == .invalidArgument)
    }

    @Test func `deduplication removes later duplicates but not the playing entry`() throws {
        let queue = QueueRig()
        let addresses = ["http://a.b/x.mp3?t=1", "http://a.b/y.mp3", "http://a.b/x.mp3?t=2", "http://a.b/x.mp3"]
        for number in 1...4 {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = number == 2 ? "Another" : "One"
                $0.enclosureURL = addresses[number - 1]
            }
        }
        queue.add(1, 2, 3, 4)
        queue.play(3)
        try ask(queue) { $0.deduplicate = WireRemoveDuplicates() }
        #expect(queue.numbers == [2, 3])
        try ask(queue) { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3, 4])
    }

    @Test(
        arguments: [
            "https://a.example/download.php?file=ep%.mp3", "https://a.example/listen?id=%", "https://a.example/?p=%",
            "https://a.example/audio.mp3?episode=%", "https://a.example/v1.2/play?n=%",
        ], [0.0, 60])
    func `different episodes aren’t duplicates if only the queries of their addresses differ`(
        address: String, step: Double
    ) throws {
        let queue = QueueRig()
        for number in 1...3 {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = "T\(number)"
                $0.duration = 1_000 + Double(number) * step
                $0.enclosureURL = address.replacing("%", with: "\(number)")
            }
        }
        queue.add(1, 2, 3)
        let reply = try ask(queue) { $0.deduplicate = WireRemoveDuplicates() }
        #expect(!reply.changed && queue.numbers == [1, 2, 3])
    }

    @Test func `episodes of two feeds with the same address are duplicates, even with different titles`() throws {
        let queue = QueueRig()
        for number in 1...2 {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.title = "T\(number)"
                $0.enclosureURL = "https://a.example/download.php?file=ep12#t=\(number)"
            }
        }
        queue.add(1, 2)
        try ask(queue) { $0.deduplicate = WireRemoveDuplicates() }
        #expect(queue.numbers == [1])
    }

    @Test func `an episode without audio is refused and playback continues`() throws {
        let queue = QueueRig()
        queue.withoutAudio = [QueueRig.episode(2)]
        queue.details[QueueRig.episode(3)] = .with {
            $0.id = QueueRig.episode(3)
            $0.title = "Third"
            $0.enclosureURL = "ftp://a.example/3.mp3"
        }
        queue.add(1)
        queue.play(1)
        let loads = queue.playerRequests.count
        #expect(queue.add(4, 2)?.failure?.known == .episodeUnavailable)
        #expect(queue.play(2)?.failure?.known == .episodeUnavailable)
        #expect(queue.add(3)?.failure?.known == .badURL)
        #expect(queue.play(3)?.failure?.message.hasPrefix("“Third” can’t be played; nothing was changed.") == true)
        #expect(queue.numbers == [1] && queue.playerRequests.count == loads)
    }

    @Test func `a play command for an entry without audio is refused`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.withoutAudio = [QueueRig.episode(2)]
        let news = WireEpisodesChanged.with {
            $0.podcast = "p1"
            $0.updated = [QueueRig.episode(2)]
        }
        queue.observe(.event, .episodes(of: "p1"), news.wireBytes)
        #expect(queue.play(2)?.failure?.known == .episodeUnavailable)
        #expect(queue.current == 1)
    }

    @Test func `one entry or the whole queue repeats, and played entries can remain`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        try ask(queue) { $0.setModes.repeat = .one }
        let first = queue.player.loadID
        queue.playerChanges { $0.status = .finished }
        #expect(queue.player.loadID != first && queue.player.episode.id == QueueRig.episode(1))
        #expect(queue.numbers == [1, 2])
        try ask(queue) {
            $0.setModes.repeat = .all
            $0.setModes.consume = false
        }
        queue.restart()
        for expected in [2, 1, 2] {
            queue.playerChanges { $0.status = .finished }
            #expect(queue.player.episode.id == QueueRig.episode(expected))
        }
        try ask(queue) { $0.setModes.repeat = .off }
        queue.playerChanges { $0.status = .finished }
        #expect(queue.player.status == .finished)
        #expect(queue.numbers == [1, 2] && queue.current == 2)
        let state = try #require(queue.published.last { $0.kind == .put && $0.topic == .queue("main") })
        #expect(try WireQueueState(wireBytes: state.payload).modes.keep)
    }

    @Test func `a limit applies to new entries but not to restored ones`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        let second = queue.entry(2)
        queue.send { $0.remove.entries = [second] }
        try ask(queue) { $0.setModes.limit = 2 }
        #expect(code(queue.add(4)) == .limitReached)
        #expect(code(queue.play(5)) == .limitReached)
        try ask(queue) { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3])
        #expect(refusal(queue) { $0.setModes.limit = 10_001 } == .invalidArgument)
        #expect(refusal(queue) { $0.setModes.repeat = .UNRECOGNIZED(9) } == .invalidArgument)
    }

    @Test func `every revision of the history can be restored`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        let whole = queue.machine.main.queue.revision
        queue.play(2)
        queue.send { $0.clear = WireClearQueue() }
        queue.add(4)
        let later = queue.machine.main.queue.revision
        let reply = try ask(queue) { $0.restore.revision = whole }
        #expect(reply.changed && queue.numbers == [1, 2, 3] && queue.current == 2)
        try ask(queue) { $0.restore.revision = later }
        #expect(queue.numbers == [2, 4] && queue.current == 2)
        try ask(queue) { $0.restore.revision = 0 }
        #expect(queue.numbers.isEmpty && queue.player.status == .playing)
        try ask(queue) { $0.restore.revision = whole }
        #expect(queue.numbers == [1, 2, 3] && queue.current == 2)
        try ask(queue) { $0.undo = WireUndo() }
        #expect(queue.numbers.isEmpty)
        #expect(refusal(queue) { $0.restore.revision = 999 } == .notFound)
        let history = try ask(queue) { $0.history = WireHistoryQuery() }.history
        #expect(history.allSatisfy { $0.origin == "test" && $0.at > 0 })
        #expect(history.last?.entries == 3)
    }

    @Test(arguments: ["undo", "restore"]) func `undo and restore omit entries of a forgotten podcast`(by way: String)
        throws
    {
        let gone = PodcastID.derived(from: "gone")
        let queue = QueueRig()
        for number in 1...5 {
            queue.details[QueueRig.episode(number)] = .with {
                $0.id = QueueRig.episode(number)
                $0.podcastID = number == 2 ? gone.text : "stays"
            }
        }
        queue.add(1, 2, 3, 4)
        let before = queue.machine.main.queue.revision
        let going = [queue.entry(1), queue.entry(2), queue.entry(3)]
        queue.send { $0.remove.entries = going }
        queue.add(5)
        queue.send { $0.undo = WireUndo() }
        queue.handle(.podcastForgotten(gone))
        queue.restart()
        // An episode that the library lacks but whose podcast isn’t forgotten, as after a recovery, is restored.
        queue.library = []
        queue.details = [:]
        let back = try #require(
            try queue.send { if way == "undo" { $0.undo = WireUndo() } else { $0.restore.revision = before } }?.get())
        #expect(queue.numbers == [1, 3, 4])
        #expect(back.description_p.hasSuffix("; 1 entry of a forgotten podcast wasn’t restored"))
        guard way == "restore" else { return }
        // The podcast is added again, so its episodes can be restored.
        let third = queue.entry(3)
        queue.send { $0.remove.entries = [third] }
        queue.observe(.put, .podcast(gone.text), WirePodcast.with { $0.id = gone.text }.wireBytes)
        queue.restart()
        queue.send { $0.restore.revision = before }
        #expect(queue.numbers == [1, 2, 3, 4])
    }

    @Test func `an entry that is selected after an episode’s end plays`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0.status = .finished }
        queue.add(2)
        queue.send { $0.next = WireNext() }
        #expect(queue.player.status == .playing && queue.player.episode.id == QueueRig.episode(2))
    }

    @Test func `an episode that is played again at a position before its end is reported plays`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        let first = queue.entry(1)
        queue.playerAnswers = false
        queue.send {
            $0.play.entry = first
            $0.play.position = 50
        }
        queue.playerChanges { $0.status = .finished }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.numbers == [1, 2] && queue.current == 1)
        #expect(queue.playerRequests.last?.load.queueEntry == first && queue.playerRequests.last?.load.position == 50)
        #expect(queue.player.status == .playing)
        // The end of this load advances the queue.
        queue.playerChanges { $0.status = .finished }
        #expect(queue.numbers == [2] && queue.current == 2)
    }

    @Test func `a skip of a failed episode plays the next one and doesn’t remove the entry`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.playerChanges { $0.status = .failed }
        #expect(queue.current == 1)
        queue.playerChanges { $0.skip = true }
        queue.playerChanges { $0.skip = false }
        #expect(queue.numbers == [1, 2] && queue.current == 2)
        #expect(queue.player.episode.id == QueueRig.episode(2))
    }

    @Test func `an entry that is added after a skip of the last one doesn’t play automatically`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(1)
        queue.playerChanges { $0.status = .failed }
        queue.playerChanges { $0.skip = true }
        queue.add(2)
        let asked = queue.playerRequests.count
        queue.playerChanges { $0.volume = 50 }
        #expect(queue.playerRequests.count == asked && queue.current == 1)
    }

    @Test func `the player prepares the load that the advance will request`() throws {
        let queue = QueueRig()
        queue.add(1, 2)
        queue.play(1)
        queue.playerChanges { _ in }
        let told = try #require(queue.preparations.last)
        #expect(told.afterLoad == queue.player.loadID && told.load.episode.id == QueueRig.episode(2))
        let count = queue.preparations.count
        queue.playerChanges { $0.anchor.position = 9 }
        #expect(queue.preparations.count == count)
        queue.add(3, next: true)
        let changed = try #require(queue.preparations.last)
        #expect(changed.load.episode.id == QueueRig.episode(3))
        queue.playerChanges { $0.status = .finished }
        #expect(queue.playerRequests.last?.load == changed.load)
        queue.send { $0.clear = WireClearQueue() }
        queue.playerChanges { _ in }
        #expect(queue.preparations.last?.hasLoad == false)
    }

    @Test func `chapters are fetched once for each load`() throws {
        let queue = QueueRig()
        queue.observe(.put, .service(.feeds), WireServiceStatus.with { $0.state = .ready }.wireBytes)
        queue.add(1, 2)
        queue.play(1)
        queue.playerChanges { _ in }
        queue.playerChanges { $0.status = .paused }
        #expect(queue.chapterFetches == [QueueRig.episode(1)])
        let news = WireEpisodesChanged.with { $0.updated = [QueueRig.episode(1), QueueRig.episode(2)] }
        queue.observe(.event, .episodes(of: "p1"), news.wireBytes)
        #expect(queue.refreshes == [QueueRig.episode(1)])
    }

    @Test func `each entry has the reason why it was added`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.play(2)
        #expect(queue.machine.main.queue.entries.map(\.wire.reason) == ["Played by test", "Added by test"])
    }

    @Test func `the limit applies to a restored revision but not to undo`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        let revision = queue.machine.main.queue.revision
        let going = [queue.entry(2), queue.entry(3)]
        queue.send { $0.remove.entries = going }
        queue.send { $0.setModes.limit = 2 }
        let answer = queue.send { $0.restore.revision = revision }
        guard case .failure(let failure) = answer else {
            Issue.record("it was restored")
            return
        }
        #expect(failure.known == .limitReached && queue.numbers == [1])
        queue.send { $0.undo = WireUndo() }
        #expect(queue.numbers == [1, 2, 3])
    }

    // MARK: -

    @discardableResult
    private func ask(
        _ queue: QueueRig, _ name: String = "", _ fill: (inout WireQueueRequest) -> Void
    ) throws -> WireQueueReply {
        try #require(
            queue.send {
                $0.queue = name
                fill(&$0)
            }
        ).get()
    }

    private func refusal(
        _ queue: QueueRig, _ name: String = "", _ fill: (inout WireQueueRequest) -> Void
    ) -> FailureCode? {
        code(
            queue.send {
                $0.queue = name
                fill(&$0)
            })
    }

    private func code(_ result: Result<WireQueueReply, Failure>?) -> FailureCode? {
        guard case .failure(let failure) = result else { return nil }
        return failure.known
    }

    private func numbers(_ queue: QueueRig, _ name: String) -> [Int] {
        queue.numbers(of: name)
    }
}
