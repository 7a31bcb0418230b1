import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests the queue’s replies and its searches for clients.
struct QueueAnswerTests {
    private func reply(_ result: Result<WireQueueReply, Failure>?) throws -> WireQueueReply {
        try #require(result).get()
    }

    /// Up Next with 1 to 3, of which 1 is playing, and a queue “evening” with 4 to 6.
    private static var two: QueueRig {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        queue.send { ($0.queue, $0.create) = ("evening", WireCreateQueue()) }
        queue.send {
            $0.queue = "evening"
            $0.add.episodes = (4...6).map(QueueRig.episode)
        }
        queue.play(1)
        return queue
    }

    // MARK: - Toggle

    @Test func `toggle forwards to the player if an episode is loaded, and returns its reply`() throws {
        let queue = Self.two
        let id = RequestID(high: 3, low: 3)
        let paused = try reply(queue.send(id: id) { $0.toggle = WireTogglePlayback() })
        #expect(paused.changed && paused.player.status == .paused && paused.queue == "main" && paused.loadID.isEmpty)
        #expect(queue.playerRequests.last?.command == .togglePaused(WireTogglePaused()))
        #expect(queue.callsToPlayer.last?.request == id.derived("toggle"), "a repeat must be the same request there")
        let resumed = try reply(queue.send { $0.toggle = WireTogglePlayback() })
        #expect(resumed.changed && resumed.player.status == .playing)
    }

    @Test(arguments: [WirePlaybackState.Status.idle, .finished])
    func `toggle starts the queue if nothing is loaded`(_ status: WirePlaybackState.Status) throws {
        let queue = QueueRig()
        queue.send { $0.setModes.consume = false }
        queue.add(1)
        if status == .finished { queue.play(1) }
        queue.playerChanges { $0.status = status }
        queue.add(2)
        let started = try reply(queue.send { $0.toggle = WireTogglePlayback() })
        #expect(started.changed && !started.loadID.isEmpty && !started.hasPlayer)
        #expect(queue.player.status == .playing)
    }

    @Test func `toggle starts the queue when the player replies that nothing is loaded`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let id = RequestID(high: 3, low: 4)
        queue.send(id: id) { $0.toggle = WireTogglePlayback() }
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.playerAnswers = true
        queue.releaseCalls(as: .failure(Failure(.nothingLoaded, "Nothing is loaded.")))
        #expect(try reply(queue.reply(to: id)).changed)
        #expect(queue.player.episode.id == QueueRig.episode(1) && queue.player.status == .playing)
    }

    @Test func `toggle is refused for an empty queue and without a player`() {
        let queue = QueueRig()
        #expect(queue.send { $0.toggle = WireTogglePlayback() }?.failure?.known == .queueEmpty)
        queue.playerReady(false)
        #expect(queue.send { $0.toggle = WireTogglePlayback() }?.failure?.known == .unavailable)
    }

    @Test func `toggle pauses a pending load, and a second one resumes it`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        queue.send { $0.next = WireNext() }
        let paused = try reply(queue.send { $0.toggle = WireTogglePlayback() })
        #expect(paused.changed && paused.entries.map(\.episode.id) == [QueueRig.episode(2)])
        queue.send { $0.toggle = WireTogglePlayback() }
        queue.send { $0.toggle = WireTogglePlayback() }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.player.episode.id == QueueRig.episode(2) && queue.player.status == .paused)
    }

    private static let ended = Failure(.nothingLoaded, "“Episode e1001” has been heard to its end.")

    @Test func `toggle at the end of an episode pauses the next one`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let id = RequestID(high: 3, low: 5)
        queue.send(id: id) { $0.toggle = WireTogglePlayback() }
        queue.playerChanges { $0.status = .finished }
        queue.releaseCalls(as: .failure(Self.ended), first: 1)
        let paused = try reply(queue.reply(to: id))
        #expect(paused.changed && paused.entries.map(\.id) == [queue.entry(2)])
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.player.episode.id == QueueRig.episode(2) && queue.player.status == .paused)
    }

    @Test func `toggle waits for a newer state if the player’s known state is outdated`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let id = RequestID(high: 3, low: 6)
        queue.send(id: id) { $0.toggle = WireTogglePlayback() }
        queue.releaseCalls(as: .failure(Self.ended))
        #expect(queue.reply(to: id) == nil)
        queue.playerAnswers = true
        queue.playerChanges { $0.status = .finished }
        #expect(try reply(queue.reply(to: id)).changed)
        #expect(queue.player.episode.id == QueueRig.episode(2) && queue.player.status == .paused)
    }

    @Test(arguments: [true, false])
    func `toggle is refused while the player disconnects or still shows the ended load`(_ goes: Bool) throws {
        let queue = Self.two
        queue.playerAnswers = false
        let id = RequestID(high: 3, low: 7)
        queue.send(id: id) { $0.toggle = WireTogglePlayback() }
        queue.releaseCalls(as: .failure(Self.ended))
        if goes { queue.playerReady(false) } else { queue.fireTimers() }
        #expect(queue.reply(to: id)?.failure?.known == (goes ? .unavailable : .nothingLoaded))
        queue.playerChanges { $0.status = .finished }
        #expect(queue.reply(to: id)?.failure != nil)
    }

    @Test(arguments: [true, false])
    func `toggle has the same queue and revision when it is executed again`(isOutdated: Bool) throws {
        let queue = Self.two
        queue.playerAnswers = false
        let id = RequestID(high: 3, low: 8)
        let revision = queue.machine.queues.named("evening").queue.revision
        queue.send(id: id) { ($0.queue, $0.toggle, $0.ifRevision) = ("evening", WireTogglePlayback(), revision) }
        if isOutdated { queue.send { ($0.queue, $0.remove.texts) = ("evening", ["3"]) } }
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        queue.playerAnswers = true
        queue.releaseCalls(as: .failure(Failure(.nothingLoaded, "Nothing is loaded.")))
        if isOutdated {
            #expect(queue.reply(to: id)?.failure?.known == .revisionMismatch)
        } else {
            #expect(try reply(queue.reply(to: id)).queue == "evening")
            #expect(queue.player.episode.id == QueueRig.episode(4))
        }
    }

    @Test(arguments: [true, false])
    func `toggle pauses at once if a decided load can’t be saved`(isAsked: Bool) throws {
        let queue = Self.two
        // The load is pending, or waits for the database itself.
        queue.playerAnswers = !isAsked
        queue.holdsCommits = !isAsked
        queue.send { $0.next = WireNext() }
        queue.holdsCommits = true
        let id = RequestID(high: 3, low: 9)
        queue.send(id: id) { $0.toggle = WireTogglePlayback() }
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.reply(to: id) == nil && queue.player.status == .paused)
        while !queue.owner.heldTransactions.isEmpty { queue.settle() }
        #expect(try reply(queue.reply(to: id)).changed)
        #expect(queue.player.episode.id == QueueRig.episode(2) && queue.player.status == .paused)
    }

    // MARK: - Reply contents

    @Test func `every reply reports its queue, whether that is playing, its limit and the next entry`() throws {
        let queue = Self.two
        queue.send {
            $0.queue = "evening"
            $0.setModes.limit = 20
        }
        let added = try reply(queue.add(7))
        #expect(added.queue == "main" && added.playing && added.limit == 10_000)
        #expect(added.following.episode.id == QueueRig.episode(2))
        let asked = try reply(queue.send { ($0.queue, $0.history) = ("evening", WireHistoryQuery()) })
        #expect(asked.queue == "evening" && !asked.playing && asked.limit == 20 && !asked.changed)
        #expect(asked.following.episode.id == QueueRig.episode(2))
    }

    @Test func `a play command for the playing episode changes nothing and returns the player’s state`() throws {
        let queue = Self.two
        let plays: [(inout WireQueueRequest) -> Void] = [
            { $0.play.resume = true }, { $0.play.episode = QueueRig.episode(1) }, { $0.playNamed.number = 1 },
        ]
        for play in plays {
            let told = try reply(queue.send(play))
            #expect(!told.changed && told.player == queue.player && told.loadID.isEmpty && told.queue == "main")
        }
        queue.playerChanges { $0.status = .paused }
        let resumed = try reply(queue.send { $0.play.resume = true })
        #expect(resumed.changed && resumed.player.status == .playing)
    }

    @Test func `a move returns the entry’s index, and whether it has changed`() throws {
        let queue = Self.two
        let (first, last) = (queue.entry(1), queue.entry(3))
        let moved = try reply(queue.send { ($0.move.entry, $0.move.after) = (first, last) })
        #expect(moved.changed && moved.index == 2)
        let again = try reply(queue.send { ($0.move.entry, $0.move.index) = (first, 2) })
        #expect(!again.changed && again.index == 2)
    }

    @Test func `an undo without history, the same modes and the same setting are reported as no change`() throws {
        let queue = QueueRig()
        #expect(try !reply(queue.send { $0.undo = WireUndo() }).changed)
        #expect(try !reply(queue.send { $0.setModes.consume = true }).changed)
        func set(_ value: String) throws -> WireQueueReply {
            try reply(queue.send { ($0.setSetting.key, $0.setSetting.value) = ("autoEnqueue", value) })
        }
        let first = try set("top")
        #expect(first.changed && first.setting.changed && first.setting.value == "top" && first.setting.source == .all)
        let same = try set("top")
        #expect(!same.changed && !same.setting.changed && same.setting.value == "top")
        let unset = try set("")
        #expect(unset.setting.changed && unset.setting.value == "off" && unset.setting.source == .default)
    }

    @Test func `undo after a change of modes undoes the last change of entries, names it and keeps the modes`() throws {
        let queue = QueueRig()
        queue.add(1)
        queue.add(2)
        #expect(try reply(queue.send { $0.setModes.repeat = .all }).changed)
        let undone = try reply(queue.send { $0.undo = WireUndo() })
        #expect(undone.description_p == "Added “Episode \(QueueRig.episode(2))”" && queue.numbers == [1])
        #expect(queue.machine.main.modes.repeat == .all)
    }

    @Test func `the refusal of an unknown queue suggests the most similar name`() {
        let queue = Self.two
        let refused = queue.send { ($0.queue, $0.clear) = ("evenning", WireClearQueue()) }?.failure
        #expect(refused?.known == .notFound)
        #expect(refused?.message.contains("Did you mean evening?") == true)
    }

    // MARK: - Naming entries

    @Test func `an entry is named by number, ID, ID prefix, title or part of its title`() throws {
        let texts = ["3", QueueRig.episode(3), "Episode e1003", "EPISODE E1003", "de e1003"]
        for text in texts {
            let queue = Self.two
            let played = try reply(queue.send { $0.playNamed.entryText = text })
            #expect(played.changed && queue.current == 3, "\(text)")
        }
        let queue = Self.two
        let prefix = String(queue.entry(3).prefix(12))
        #expect(try reply(queue.send { $0.playNamed.entryText = prefix }).entries.map(\.id) == [queue.entry(3)])
        let removed = try reply(queue.send { $0.remove.texts = ["1", "e1002", "de e1002"] })
        #expect(removed.count == 2 && queue.numbers == [3])
        let moved = try reply(
            queue.send {
                $0.queue = "evening"
                $0.move.entryText = "de e1006"
                $0.move.beforeText = "1"
            })
        #expect(moved.index == 0 && moved.queue == "evening")
    }

    @Test func `titles match with composed and with decomposed accents`() {
        let queue = QueueRig()
        let titles = [
            "Caf\u{E9} noir", "The\u{301} vert", "\u{C9}t\u{E9}", "E\u{301}te\u{301} indien", "Last",
            "Π\u{387} “one”", "Two · three’s",
        ]
        for (number, title) in zip(1..., titles) {
            let id = QueueRig.episode(number)
            queue.details[id] = .with { ($0.id, $0.title) = (id, title) }
            queue.add(number)
        }
        let searches = [
            ("cafe\u{301} NOIR", 1), ("fe\u{301} n", 1), ("th\u{E9}", 2), ("e\u{301}te\u{301}", 3),
            ("\u{C9}t\u{E9} i", 4), ("π\u{B7} “o", 6), ("two \u{B7} t", 7), ("two \u{387} t", 7),
        ]
        for (text, number) in searches {
            queue.send { $0.playNamed.entryText = text }
            #expect(queue.current == number, "\(text)")
            queue.send { $0.playNamed.number = 5 }
        }
    }

    @Test
    func
        `a number that exists in two queues is ambiguous while the other queue plays, unless the request names a queue`()
        throws
    {
        let queue = Self.two
        queue.send { ($0.queue, $0.playNamed.number) = ("evening", 1) }
        #expect(queue.player.episode.id == QueueRig.episode(4))
        let refused = queue.send { $0.playNamed.number = 2 }?.failure
        #expect(refused?.known == .ambiguous)
        #expect(try WireCandidates(wireBytes: refused?.detail ?? []).candidates.count == 2)
        queue.add(7)
        #expect(try reply(queue.send { $0.playNamed.number = 4 }).queue == "main")
        #expect(queue.current == 7)
    }

    @Test func `entries of episodes with equal titles are distinguished by their numbers`() throws {
        let queue = QueueRig()
        for number in [1, 3] {
            queue.details[QueueRig.episode(number)] = .with { ($0.id, $0.title) = (QueueRig.episode(number), "Waves") }
        }
        for number in 1...3 { queue.add(number) }
        let refused = queue.send { $0.playNamed.entryText = "waves" }?.failure
        let candidates = try WireCandidates(wireBytes: refused?.detail ?? []).candidates
        #expect(candidates.count == 2)
        #expect(candidates.map(\.title) == ["Waves", "Waves"])
        #expect(candidates.first?.detail.hasPrefix("entry 1 of ") == true)
        #expect(candidates.last?.detail.hasPrefix("entry 3 of ") == true)
    }

    @Test func `texts that match no entry, or several entries, are refused and nothing changes`() throws {
        let queue = Self.two
        let revision = queue.machine.main.queue.revision
        let first = queue.entry(1)
        let refusals: [((inout WireQueueRequest) -> Void, FailureCode)] = [
            ({ $0.playNamed.number = 0 }, .notFound), ({ $0.playNamed.number = .max }, .notFound),
            ({ $0.playNamed.entryText = "" }, .notFound), ({ $0.playNamed.entryText = "no such title" }, .notFound),
            ({ $0.playNamed.entryText = "episode" }, .ambiguous),
            ({ $0.playNamed = WirePlayNamed() }, .invalidArgument),
            ({ $0.remove.texts = [String](repeating: "1", count: 101) }, .invalidArgument),
            ({ ($0.remove.texts, $0.remove.entries) = (["1"], ["x"]) }, .invalidArgument),
            ({ $0.remove.texts = ["1", "no such title"] }, .notFound),
            ({ ($0.move.entryText, $0.move.afterText) = ("1", "1") }, .notApplicable),
            ({ ($0.move.entry, $0.move.entryText, $0.move.index) = (first, "2", 0) }, .invalidArgument),
            ({ $0.playNamed.entryText = "+1" }, .notFound), ({ $0.playNamed.entryText = "-1" }, .notFound),
            ({ ($0.queue, $0.playNamed.number) = ("nowhere", 1) }, .notFound),
        ]
        for (index, (ask, code)) in refusals.enumerated() {
            #expect(queue.send(ask)?.failure?.known == code, "case \(index)")
        }
        #expect(queue.machine.main.queue.revision == revision)
    }

    @Test func `an episode plays in the playing queue if that contains it, otherwise in Up Next`() throws {
        let queue = Self.two
        func play(_ number: Int, in name: String = "") throws -> String {
            try reply(queue.send { ($0.queue, $0.playNamed.episode) = (name, QueueRig.episode(number)) }).queue
        }
        #expect(try play(5) == "main")
        #expect(queue.numbers == [5, 1, 2, 3])
        #expect(try play(4, in: "evening") == "evening")
        #expect(try play(6) == "evening")
        #expect(try play(2) == "main")
        #expect(try play(9, in: "evening") == "evening")
        #expect(try play(8) == "main")
        #expect(queue.send { $0.playNamed.episode = "e1099" }?.failure?.known == .notFound)
    }

    @Test func `a resume command for a queue that isn’t playing starts it`() throws {
        let queue = Self.two
        let started = try reply(queue.send { ($0.queue, $0.play.resume) = ("evening", true) })
        #expect(started.changed && started.queue == "evening" && started.playing)
        #expect(queue.player.episode.id == QueueRig.episode(4))
    }

    @Test func `a play command of an unknown form is refused and doesn’t resume`() throws {
        let queue = Self.two
        queue.playerChanges { $0.status = .paused }
        // The request is QueueRequest.play with only field 99.
        let payload: [UInt8] = [0x72, 0x03, 0x98, 0x06, 0x01]
        #expect(queue.send(payload: payload)?.failure?.known == .unknownCommand)
        #expect(queue.player.status == .paused)
    }

    // MARK: - Forgotten podcasts

    @Test
    func `entries of a forgotten podcast are removed from all queues, but not those of a podcast that feeds has lost`()
        throws
    {
        let (first, second) = (PodcastID.derived(from: "1"), PodcastID.derived(from: "2"))
        func queues() -> QueueRig {
            let queue = QueueRig(episodes: 3)
            for (number, podcast) in [(11, first), (12, first), (13, second)] {
                let id = QueueRig.episode(number)
                queue.details[id] = .with { ($0.id, $0.podcastID, $0.title) = (id, podcast.text, "Title \(number)") }
            }
            queue.add(11, 1, 13)
            queue.send { ($0.queue, $0.create) = ("evening", WireCreateQueue()) }
            queue.send { ($0.queue, $0.add.episodes) = ("evening", [12, 2].map(QueueRig.episode)) }
            return queue
        }
        let lost = queues()
        lost.observe(.delete, .podcast(first.text), [])
        #expect(lost.numbers == [11, 1, 13] && lost.numbers(of: "evening") == [12, 2])
        let forgotten = queues()
        #expect(forgotten.machine.knownPodcasts == [first, second])
        forgotten.holdsCommits = true
        forgotten.handle(.podcastForgotten(first))
        forgotten.refuse()
        #expect(forgotten.numbers == [11, 1, 13] && forgotten.machine.knownPodcasts == [first, second])
        forgotten.holdsCommits = false
        forgotten.handle(.podcastForgotten(first))
        #expect(forgotten.numbers == [1, 13] && forgotten.numbers(of: "evening") == [2])
        #expect(forgotten.machine.knownPodcasts == [second])
        let commits = forgotten.owner.committed.count
        forgotten.handle(.podcastForgotten(first))
        #expect(forgotten.owner.committed.count == commits)
        let undone = try reply(forgotten.send { $0.undo = WireUndo() })
        #expect(forgotten.numbers == [1, 13] && undone.description_p.contains("wasn’t restored"))
        let evening = try reply(forgotten.send { ($0.queue, $0.history) = ("evening", WireHistoryQuery()) })
        #expect(evening.history.first?.origin == "feeds" && evening.history.first?.undone == false)
    }

    // MARK: - Next entry

    @Test func `the next entry is published, or the reason why there is none`() throws {
        let queue = QueueRig()
        #expect(queue.machine.next.reason == .nothingLoaded && queue.machine.next.queue == "main")
        queue.add(1, 2, 3)
        queue.play(1)
        #expect(queue.next?.following.id == queue.entry(2) && queue.next?.current.id == queue.entry(1))
        queue.send { $0.setModes.repeat = .one }
        #expect(queue.next?.following.id == queue.entry(1))
        queue.playerChanges { $0.status = .failed }
        #expect(queue.next?.following.id == queue.entry(2), "the failed entry is skipped, not repeated")
        queue.send { $0.setModes.repeat = .off }
        queue.play(3)
        #expect(queue.next?.hasFollowing == false && queue.next?.reason == .lastEntry)
        queue.send { $0.remove.texts = ["1", "2"] }
        #expect(queue.next?.reason == .noOtherEntry)
        queue.playerChanges { $0.status = .finished }
        queue.add(4)
        #expect(queue.next?.hasFollowing == false && queue.next?.reason == .ended)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        #expect(queue.next?.reason == .nothingLoaded)
    }

    @Test func `the next entry is published when it is durable, and again after a refusal`() {
        let queue = Self.two
        let before = queue.next
        queue.holdsCommits = true
        queue.send { $0.next = WireNext() }
        #expect(queue.next == before)
        queue.refuse()
        #expect(queue.next?.current == before?.current && queue.next?.following == before?.following)
        queue.send { $0.next = WireNext() }
        queue.settle()
        #expect(queue.next?.current.episode.id == QueueRig.episode(2))
        queue.restart()
        #expect(queue.next?.current.episode.id == QueueRig.episode(2))
    }

    @Test func `a decided load is the next entry while the player is down, and before its state is known`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let load = try reply(queue.send { ($0.queue, $0.playNamed.number) = ("evening", 2) }).loadID
        queue.playerReady(false)
        #expect(queue.next?.following.episode.id == QueueRig.episode(5) && queue.next?.queue == "evening")
        queue.restart(withPlayer: false)
        #expect(queue.next?.following.episode.id == QueueRig.episode(5) && queue.next?.queue == "evening")
        #expect(queue.outcome(of: load) == .pending)
    }

    @Test func `the next entry is unknown until the player’s state is known`() {
        let queue = Self.two
        queue.restart(withPlayer: false)
        #expect(queue.next?.hasFollowing == false && queue.next?.reason == .unknown)
        queue.playerReady(true)
        queue.playerChanges { $0 = .with { $0.status = .idle } }
        #expect(queue.next?.reason == .nothingLoaded)
    }

    @Test func `the reply to a load doesn’t replace a newer state of the player`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let load = try reply(queue.send { $0.next = WireNext() }).loadID
        let entry = queue.entry(2)
        queue.playerChanges { ($0.loadID, $0.queueEntry, $0.status) = (load, entry, .paused) }
        let late = WirePlaybackReply.with {
            ($0.state.loadID, $0.state.status, $0.state.revision) = (load, .loading, 1)
        }
        queue.releaseCalls(as: .success(late.wireBytes))
        #expect(queue.machine.player?.status == .paused)
        #expect(queue.outcome(of: load) == .accepted)
    }

    @Test func `a rolled-back value that was put at the start of an epoch is corrected`() {
        let queue = Self.two
        let before = queue.next
        queue.holdsCommits = true
        queue.send { $0.remove.texts = ["2"] }
        queue.owner.publish(queue.machine.retained(now: queue.now))
        #expect(queue.next != before)
        queue.refuse()
        #expect(queue.next == before)
    }

    @Test func `a decided load is pending until the player accepts it`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let load = try reply(queue.send { $0.next = WireNext() }).loadID
        #expect(queue.next?.loads.last?.loadID == load && queue.outcome(of: load) == .pending)
        #expect(queue.next?.following.id == queue.entry(2))
        queue.restart()
        #expect(queue.outcome(of: load) == .pending)
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect(queue.outcome(of: load) == .accepted && queue.next?.following.id == queue.entry(3))
        queue.playerChanges { $0.status = .finished }
        #expect(queue.next?.loads.last?.afterLoad == load)
    }

    @Test func `a refused load has the outcome refused, and a superseded one superseded`() throws {
        let queue = Self.two
        queue.playerAnswers = false
        let refused = try reply(queue.send { $0.next = WireNext() }).loadID
        queue.releaseCalls(as: .failure(Failure(.badURL, "No address.")))
        #expect(queue.outcome(of: refused) == .refused)
        #expect(queue.next?.loads.last?.failure.code == "badURL")
        let first = try reply(queue.send { $0.playNamed.number = 3 }).loadID
        let second = try reply(queue.send { ($0.queue, $0.playNamed.number) = ("evening", 1) }).loadID
        #expect(queue.outcome(of: second) == .pending && queue.next?.queue == "evening")
        queue.send { ($0.queue, $0.remove.texts) = ("evening", ["1"]) }
        #expect(queue.outcome(of: second) == .superseded)
        queue.playerAnswers = true
        queue.releaseCalls()
        #expect([.accepted, .superseded].contains(queue.outcome(of: first)))
    }

    @Test func `the outcomes of the newest eight loads are published`() throws {
        let queue = QueueRig()
        queue.add(1, 2, 3)
        var loads: [String] = []
        for number in 1...12 { loads.append(try reply(queue.play(number % 3 + 1)).loadID) }
        #expect(queue.next?.loads.map(\.loadID) == Array(loads.suffix(8)))
        #expect(queue.next?.loads.allSatisfy { $0.outcome == .accepted } == true)
    }
}

extension QueueRig {
    fileprivate func outcome(of load: String) -> WireDecidedLoad.Outcome? {
        next?.loads.last { $0.loadID == load }?.outcome
    }
}
