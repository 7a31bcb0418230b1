import BusKit
import OwnerHarness
import OwnerKit
import PodcastModel
import SwiftProtobuf
import Testing
import WireMessages

@testable import QueueService

/// Tests when the rules of smart playlists are evaluated, and what their results change.
@Suite struct SmartPlaylistTests {
    private let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
    private func time(_ milliseconds: Int64) -> MonotonicTime { start.advanced(by: .milliseconds(milliseconds)) }

    private func next(_ schedule: inout SmartPlaylistSchedule, _ milliseconds: Int64) -> String? {
        schedule.next(now: time(milliseconds))?.playlist
    }

    @Test func `further changes don’t postpone an evaluation`() throws {
        var schedule = SmartPlaylistSchedule()
        #expect(schedule.wake == nil)
        schedule.change("p", now: time(0))
        schedule.change("p", now: time(200))
        #expect(schedule.wake == time(300))
        #expect(next(&schedule, 299) == nil)
        let due = schedule.next(now: time(300))
        let evaluation = try #require(due)
        #expect(evaluation.playlist == "p" && schedule.playlist(of: evaluation.id) == "p")
        #expect(schedule.playlist(of: evaluation.id + 1) == nil)
        // A change during the evaluation requires another one.
        schedule.change("p", now: time(310))
        #expect(schedule.wake == nil)
        #expect(next(&schedule, 900) == nil)
        schedule.ended(rule: try EpisodeRule("played"), now: time(400))
        // The pause is four times the duration.
        #expect(schedule.wake == time(800))
        #expect(next(&schedule, 799) == nil)
        #expect(next(&schedule, 800) == "p")
        schedule.ended(rule: try EpisodeRule("played"), now: time(800))
        #expect(schedule.wake == nil)
    }

    @Test func `one playlist is evaluated at a time, and a failure is retried`() throws {
        var schedule = SmartPlaylistSchedule()
        schedule.change("b", after: .zero, now: time(0))
        schedule.change("a", after: .zero, now: time(0))
        schedule.change("gone", after: .zero, now: time(0))
        schedule.remove("gone")
        #expect(next(&schedule, 0) == "a")
        #expect(next(&schedule, 0) == nil)
        schedule.ended(rule: nil, now: time(10))
        #expect(next(&schedule, 50) == "b")
        schedule.ended(rule: try EpisodeRule("played"), now: time(50))
        #expect(schedule.wake == time(1_010))
    }

    @Test(arguments: [("published < 7d", 3_600), ("published < 1d", 864), ("added > 1h", 60), ("played", nil)])
    func `a rule with ages is evaluated again while time passes`(rule: String, seconds: Int64?) throws {
        var schedule = SmartPlaylistSchedule()
        schedule.change("p", after: .zero, now: time(0))
        _ = schedule.next(now: time(0))
        schedule.ended(rule: try EpisodeRule(rule), now: time(0))
        #expect(schedule.wake == seconds.map { time($0 * 1_000) })
    }

    @Test func `rules name the facts on which they depend`() throws {
        func dependencies(_ rule: String) throws -> EpisodeRule.Dependencies { try EpisodeRule(rule).dependencies }
        #expect(try dependencies("title ~ x and published < 7d and tag news") == [])
        #expect(try dependencies("not (played or downloaded)") == [.marks, .downloads])
        #expect(try dependencies("remaining < 5m and bookmarked") == [.marks, .positions, .bookmarks])
        #expect(try dependencies("new or favourite") == [.marks, .lists])
        #expect(try EpisodeRule("in a or not (in b and queued)").lists == ["a", "b"])
        #expect(try EpisodeRule("published < 7d or added < 2d").shortestAge == 172_800)
    }

    // MARK: The machine

    private func rig(_ rule: String, queue: String = "") -> QueueRig {
        let rig = QueueRig(episodes: 3)
        if !queue.isEmpty {
            rig.send {
                ($0.queue, $0.create) = (queue, WireCreateQueue())
            }
        }
        create(rig, rule, queue)
        return rig
    }

    @discardableResult
    private func create(_ rig: QueueRig, _ rule: String, _ queue: String = "") -> Result<WireQueueReply, Failure>? {
        rig.send {
            $0.playlist.playlist = "p"
            $0.playlist.create.smart.rule = rule
            $0.playlist.create.smart.queue = queue
        }
    }

    private func play(_ rig: QueueRig, _ number: Int, _ isPlayed: Bool) {
        let id = QueueRig.episode(number)
        rig.details[id] = .with { ($0.id, $0.title, $0.state.played) = (id, "Episode \(number)", isPlayed) }
        let state = WireEpisodeState.with { ($0.episode, $0.played) = (id, isPlayed) }
        rig.observe(.event, .episodeState(id), state.wireBytes)
    }

    private func numbers(_ rig: QueueRig) -> [Int] {
        let entries = rig.machine.playlists["p"]?.queue.entries.map(\.episode) ?? []
        return entries.compactMap { Int($0.dropFirst()).map { $0 - 1_000 } }
    }

    private func puts(_ rig: QueueRig) -> Int { rig.published.count { $0.kind == .put && $0.topic == .playlist("p") } }

    @Test func `an episode that begins to meet the rule appears on the stream`() throws {
        let rig = rig("unplayed")
        rig.advance(by: .seconds(1))
        #expect(numbers(rig) == [1, 2, 3])
        rig.published = []
        play(rig, 2, true)
        #expect(numbers(rig) == [1, 2, 3] && puts(rig) == 0)
        rig.advance(by: .milliseconds(300))
        #expect(numbers(rig) == [1, 3] && puts(rig) == 1)
        let put = try #require(rig.retained[.playlist("p")].flatMap { try? WirePlaylist(wireBytes: $0) })
        #expect(put.items == 2 && put.smart.rule == "unplayed")
        // A result with the same episodes is not published.
        play(rig, 2, false)
        play(rig, 2, true)
        rig.observe(.event, .episodes(of: "x"), WireEpisodesChanged().wireBytes)
        rig.advance(by: .seconds(2))
        #expect(puts(rig) == 1)
    }

    @Test func `new matches enter a queue once`() {
        let rig = rig("unplayed and title ~ Episode", queue: "later")
        rig.advance(by: .seconds(1))
        #expect(numbers(rig) == [1, 2, 3])
        #expect(rig.numbers(of: "later") == [], "those that met the rule before aren’t added")
        let id = QueueRig.episode(7)
        rig.details[id] = .with { ($0.id, $0.title) = (id, "Episode 7") }
        rig.observe(.event, .episodes(of: "x"), WireEpisodesChanged().wireBytes)
        rig.advance(by: .seconds(1))
        #expect(rig.numbers(of: "later") == [7])
        // Removed by hand, it doesn’t return; not even after a restart or another match.
        rig.send {
            ($0.queue, $0.remove.episodes) = ("later", [id])
        }
        play(rig, 7, true)
        rig.advance(by: .seconds(1))
        rig.restart()
        play(rig, 7, false)
        rig.advance(by: .seconds(1))
        #expect(numbers(rig) == [1, 2, 3, 7] && rig.numbers(of: "later") == [])
        let deletion = rig.send {
            ($0.queue, $0.delete) = ("later", WireDeleteQueue())
        }
        #expect(throws: Failure.self) { try deletion?.get() }
    }

    @Test func `the rule follows a queue that is renamed`() throws {
        let rig = rig("unplayed and not in later", queue: "later")
        rig.advance(by: .seconds(1))
        rig.send {
            ($0.queue, $0.rename.name) = ("later", "walks")
        }
        rig.restart()
        let smart = try #require(rig.machine.playlists["p"]?.smart)
        #expect(smart.wire.rule == "unplayed and not in walks" && smart.wire.queue == "walks")
        #expect(smart.rule?.lists == ["walks"])
    }

    @Test func `a full queue takes the rest of the matches when it has room`() {
        let rig = rig("unplayed", queue: "later")
        rig.advance(by: .seconds(1))
        rig.send {
            ($0.queue, $0.setModes.limit) = ("later", 1)
        }
        for number in 7...8 {
            let id = QueueRig.episode(number)
            rig.details[id] = .with { ($0.id, $0.title) = (id, "Episode \(number)") }
        }
        rig.observe(.event, .episodes(of: "x"), WireEpisodesChanged().wireBytes)
        rig.advance(by: .seconds(1))
        #expect(rig.numbers(of: "later") == [7])
        rig.send {
            ($0.queue, $0.clear) = ("later", WireClearQueue())
        }
        rig.observe(.event, .episodes(of: "x"), WireEpisodesChanged().wireBytes)
        rig.advance(by: .seconds(1))
        #expect(rig.numbers(of: "later") == [8])
    }

    @Test func `a failed evaluation keeps the items and is repeated`() {
        let rig = rig("unplayed")
        rig.advance(by: .seconds(1))
        rig.libraryAnswers = false
        play(rig, 1, true)
        rig.advance(by: .seconds(1))
        rig.releaseCalls(as: .failure(Failure(.unavailable, "down")))
        #expect(numbers(rig) == [1, 2, 3])
        rig.libraryAnswers = true
        rig.advance(by: .seconds(2))
        #expect(numbers(rig) == [2, 3])
    }

    @Test func `commands wait for the items, and are answered if the playlist is deleted meanwhile`() throws {
        let rig = QueueRig(episodes: 3)
        rig.libraryAnswers = false
        create(rig, "unplayed")
        func items() -> RequestID {
            let id = RequestID.random()
            rig.send(id: id) { $0.playlist = .with { ($0.playlist, $0.items) = ("p", WireItemsQuery()) } }
            return id
        }
        let first = items()
        #expect(rig.reply(to: first) == nil, "a new playlist isn’t taken for an empty one")
        rig.send { $0.playlist = .with { ($0.playlist, $0.delete) = ("p", WireDeletePlaylist()) } }
        #expect(throws: Failure.self) { try rig.reply(to: first)?.get() }
        rig.libraryAnswers = true
        rig.releaseCalls()
        create(rig, "unplayed")
        rig.advance(by: .seconds(1))
        #expect(try rig.reply(to: items())?.get().entries.count == 3)
    }

    @Test func `a list that a rule contains can’t be deleted`() throws {
        let rig = rig("unplayed and not in later", queue: "later")
        rig.send { $0.playlist = .with { ($0.playlist, $0.create) = ("base", WireCreatePlaylist()) } }
        rig.send { $0.playlist = .with { ($0.playlist, $0.change.rule) = ("p", "in base or in later") } }
        let playlist = rig.send { $0.playlist = .with { ($0.playlist, $0.delete) = ("base", WireDeletePlaylist()) } }
        let failure = #expect(throws: Failure.self) { try playlist?.get() }
        #expect(failure?.known == .notApplicable && failure?.message.contains("“p”") == true)
        rig.send { $0.playlist = .with { ($0.playlist, $0.change.queue) = ("p", "") } }
        let queue = rig.send { ($0.queue, $0.delete) = ("later", WireDeleteQueue()) }
        #expect(throws: Failure.self) { try queue?.get() }
    }

    @Test func `a rule that this version can’t read is kept`() throws {
        let rig = rig("unplayed")
        let record = try #require(rig.machine.playlists["p"]?.everything.first)
        var header = try WirePlaylistRecord(serializedBytes: record.put.value)
        header.smart.rule = "colour = blue"
        let smart = SmartList(header)
        #expect(smart.rule == nil && smart.wire.rule == "colour = blue")
    }
}
