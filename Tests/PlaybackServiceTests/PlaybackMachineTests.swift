import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

struct PlaybackMachineTests {
    private let rig = PlayerRig()

    private func playing(_ length: Double = 600, from position: Double? = nil) throws {
        try rig.start()
        try rig.load(rig.episode(length: length), at: position)
        try #require(rig.state.status == .playing)
    }

    @Test(arguments: 0..<3)
    func `with nothing loaded the player is idle, and refuses commands that need an episode`(_ command: Int) throws {
        try rig.start()
        #expect(rig.state.status == .idle)
        #expect(!rig.state.hasEpisode)
        let reply = try [
            { try self.rig.setPaused(true) }, { try self.rig.setPaused(false) }, { try self.rig.seek(3) },
        ][command]()
        #expect(reply?.failure?.known == .nothingLoaded)
    }

    @Test func `a load changes from loading to playing, and is durable before the engine opens the file`() throws {
        try rig.start()
        rig.holdsCommits = true
        let episode = rig.episode()
        #expect(try rig.load(episode) == nil)
        #expect(rig.state.status == .loading)
        #expect(rig.state.episode.id == "e1")
        #expect(rig.state.queueEntry == "q1")
        #expect(rig.engine.performed.isEmpty)
        try rig.releaseCommits()
        #expect(rig.engine.open == LoadID("l1"))
        #expect(rig.state.status == .playing)
        #expect(rig.state.anchor.running)
        #expect(rig.state.duration == 600)
        #expect(rig.session?.status == .playing)
    }

    @Test(arguments: [
        (saved: 120.0, expected: 120.0), (0, 0), (599.5, 0), (700, 570),
    ])
    func `without a position an episode resumes at its stored position`(saved: Double, expected: Double) throws {
        try rig.start()
        try rig.load(rig.episode(position: saved))
        #expect(rig.position == expected || saved == 700)
        // Only playback reveals audio beyond the end.
        try rig.advance(0.1)
        #expect(abs(rig.position - expected) < 0.2)
    }

    @Test func `a repeated load changes nothing and is answered with the current state`() throws {
        try playing()
        try rig.advance(3)
        let opened = rig.engine.performed.count
        let reply = try rig.load(rig.episode(), at: 0)
        #expect(reply?.reply?.state.loadID == "l1")
        #expect(rig.engine.performed.count == opened)
        #expect(abs(rig.position - 3) < 0.1)
    }

    @Test(arguments: [
        ("", FailureCode.episodeUnavailable), ("ftp://example.org/a.mp3", .badURL), ("lavfi://sine", .badURL),
        ("edl://%0", .badURL), ("file://elsewhere/a.mp3", .badURL), ("relative.mp3", .badURL),
    ])
    func `an episode without playable audio fails with its alert, and the engine opens nothing`(
        url: String, code: FailureCode
    ) throws {
        try playing()
        var episode = rig.episode("e2")
        episode.enclosureURL = url
        #expect(try rig.load(episode, as: "l2")?.reply != nil)
        #expect(rig.state.loadID == "l2" && rig.state.status == .failed)
        #expect(rig.state.error.code == code.rawValue && !rig.state.error.retry)
        #expect(rig.alerts.map(\.actions) == [["retry", "skip", "dismiss"]])
        let opened = rig.engine.performed.filter { if case .open = $0 { true } else { false } }
        #expect(opened.count == 1)
    }

    @Test func `arguments outside their range are refused and change nothing`() throws {
        try playing()
        let before = rig.states.count
        let refused = [
            try rig.seek(-1), try rig.seek(.nan), try rig.seek(.infinity),
            try rig.send { $0.setSpeed.speed = 99 }, try rig.send { $0.setSpeed.speed = .nan },
            try rig.send { $0.setVolume.volume = -1 }, try rig.send { $0.setVolume.volume = 101 },
            try rig.load(rig.episode("e2"), as: "nonsense"), try rig.load(rig.episode("e2"), as: "l2", at: -4),
        ]
        #expect(refused.map { $0?.failure?.known } == Array(repeating: .invalidArgument, count: refused.count))
        #expect(try rig.seek(601)?.failure?.known == .notApplicable)
        #expect(try rig.send { _ in }?.failure?.known == .unknownCommand)
        #expect(rig.states.count == before)
    }

    @Test func `a pause stops the position at once, and saves it in the session and the episode’s state`() throws {
        try playing(from: 100)
        try rig.advance(5)
        let reply = try rig.setPaused(true)
        #expect(reply?.reply?.state.status == .paused)
        #expect(abs(rig.stored().position - 105) < 0.1)
        #expect(abs((rig.session?.position ?? 0) - 105) < 0.1)
        try rig.advance(5)
        #expect(abs(rig.position - 105) < 0.1)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
        try rig.advance(2)
        #expect(abs(rig.position - 107) < 0.1)
    }

    @Test func `playback saves the position every ten seconds`() throws {
        try playing()
        for _ in 0..<60 {
            try rig.advance(1)
            #expect(rig.position - rig.stored().position <= 10.2)
        }
        #expect(rig.owner.committed.count < 10)
    }

    @Test func `a minute of undisturbed playback publishes nothing`() throws {
        try playing()
        let before = rig.states.count
        try rig.advance(60)
        #expect(rig.states.count == before)
        #expect(abs(rig.position - 60) < 0.06)
    }

    @Test(arguments: [
        (0.04, false), (0.06, true), (-0.06, true),
    ])
    func `a difference of more than 50 ms publishes a new anchor, a smaller one doesn’t`(
        by difference: Double, publishes: Bool
    ) throws {
        try playing(from: 10)
        try rig.advance(1)
        let before = rig.states.count
        try rig.report(
            .progress(
                try #require(LoadID("l1")),
                EngineProgress(
                    position: try PlaybackPosition(rig.position + difference), at: rig.now.monotonic, running: true,
                    serial: rig.serial)))
        #expect((rig.states.count > before) == publishes)
    }

    @Test func `a pause is published at once, and the settled position later`() throws {
        try playing(from: 10)
        try rig.advance(1)
        let before = rig.states.count
        let sampled = rig.samples
        try rig.setPaused(true)
        let paused = rig.position
        func rest(at position: Double) throws {
            try rig.report(
                .progress(
                    try #require(LoadID("l1")),
                    EngineProgress(
                        position: try PlaybackPosition(position), at: rig.now.monotonic, running: false,
                        serial: rig.serial)))
        }
        try rest(at: paused + 0.1)
        #expect(rig.states.count == before + 1)
        #expect(rig.position == paused)
        try rig.advance(0.3)
        #expect(rig.samples == sampled + 1)
        try rest(at: paused + 0.1)
        #expect(rig.states.count == before + 2)
        #expect(rig.position == paused + 0.1)
        #expect(rig.stored().position == paused + 0.1)
        try rig.advance(5)
        #expect(rig.samples == sampled + 1)
    }

    @Test func `a seek moves the position at once within the load that it names, and never in another`() throws {
        try playing()
        #expect(try rig.seek(300, load: "l1")?.reply != nil)
        #expect(abs(rig.position - 300) < 0.1)
        #expect(rig.stored().position == 300)
        #expect(try rig.seek(10, load: "l0")?.failure?.known == .nothingLoaded)
        #expect(abs(rig.position - 300) < 0.1)
    }

    @Test func `progress from before a seek isn’t mistaken for its outcome`() throws {
        try playing()
        try rig.seek(300)
        try rig.report(
            .progress(
                try #require(LoadID("l1")),
                EngineProgress(
                    position: try PlaybackPosition(4), at: rig.now.monotonic, running: true, serial: 0)))
        #expect(rig.position >= 300)
    }

    @Test(arguments: [0.5, 1.5, 3.5])
    func `the speed changes how the position moves, and survives a restart`(_ factor: Double) throws {
        try playing()
        #expect(try rig.send { $0.setSpeed.speed = factor }?.reply?.state.speed == factor)
        try rig.advance(20)
        #expect(abs(rig.position - 20 * factor) < 0.2)
        try rig.start()
        #expect(rig.state.speed == factor)
    }

    @Test func `volume and output device survive a restart`() throws {
        try playing()
        try rig.send { $0.setVolume.volume = 35 }
        #expect(try rig.send { $0.setOutput.device = "simulated" }?.reply?.output.chosen == "simulated")
        #expect(try rig.send { $0.setOutput.device = "loft" }?.failure?.known == .notFound)
        try rig.start()
        #expect(rig.state.volume == 35)
        #expect(rig.state.output == "simulated")
        #expect(rig.machine.output.wire.devices.map(\.name) == ["simulated"])
    }

    @Test func `stop closes the engine’s file, and resuming opens it again at the same position`() throws {
        try playing(from: 50)
        try rig.advance(4)
        #expect(try rig.send { $0.stop = WireStopPlayback() }?.reply?.state.status == .paused)
        #expect(rig.engine.open == nil)
        #expect(abs(rig.stored().position - 54) < 0.1)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
        #expect(abs(rig.position - 54) < 0.1)
    }

    @Test func `unload removes the session that it names, and no other`() throws {
        try playing(from: 50)
        try rig.send { $0.unload.loadID = "l0" }
        #expect(rig.state.status == .playing)
        try rig.send { $0.unload.loadID = "l1" }
        #expect(rig.state.status == .idle)
        #expect(rig.session == nil)
        #expect(abs(rig.stored().position - 50) < 0.1)
    }

    @Test func `another load saves the position of the previous one, whose late events are ignored`() throws {
        try playing(from: 50)
        try rig.advance(4)
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(abs(rig.stored("e1").position - 54) < 0.1)
        let first = try #require(rig.states.firstIndex { $0.episode.id == "e2" })
        #expect(rig.states[first...].allSatisfy { $0.episode.id == "e2" })
        #expect(rig.state.status == .playing)
    }

    @Test func `a load that is superseded during its lookup is answered, and only the last one is opened`()
        throws
    {
        try rig.start()
        rig.holdsCommits = true
        try rig.load(rig.episode("e1"), as: "l1")
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.releaseCommits()
        #expect(rig.engine.open == LoadID("l2"))
        #expect(rig.replies.count == 2)
        #expect(rig.session?.loadID == "l2")
    }

    @Test func `no position is saved at the very start or at the end`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 600), paused: true)
        try rig.setPaused(true)
        #expect(rig.stored().updatedAt == 0)
        try rig.seek(600)
        #expect(rig.stored().position == 0)
        #expect(rig.stored().updatedAt == 0)
    }

    @Test func `the loaded episode and others can be marked as played or unplayed, and the marks are saved`() throws {
        try playing()
        _ = rig.episode("e2", position: 30)
        let other = try rig.send {
            $0.setPlayed.episode = "e2"; $0.setPlayed.played = true
        }
        #expect(other?.reply?.episodeState.played == true)
        #expect(rig.stored("e2").played && rig.stored("e2").position == 0)
        try rig.send {
            $0.setPlayed.episode = "e1"; $0.setPlayed.played = true
        }
        #expect(rig.stored("e1").played)
        try rig.setPaused(true)
        #expect(rig.stored("e1").played)
        try rig.send {
            $0.setPlayed.episode = "e1"; $0.setPlayed.played = false
        }
        #expect(!rig.stored("e1").played)
        #expect(try rig.send { $0.setPlayed.episode = "e9" }?.failure?.known == .notFound)
    }

    @Test func `many episodes, including the loaded one, are marked in one commit or not at all`() throws {
        try playing()
        let others = (2...40).map { "e\($0)" }
        for id in others { _ = rig.episode(id, position: 30) }
        let refused = try rig.send {
            $0.setPlayed.episodes = ["e1"] + others + ["e99"]
            $0.setPlayed.played = true
        }
        #expect(refused?.failure?.known == .notFound && !rig.stored("e1").played)
        let reply = try rig.send {
            $0.setPlayed.episodes = ["e1"] + others + ["e2"]
            $0.setPlayed.played = true
        }?.reply?.episodeStates
        #expect(reply?.changed == Array(repeating: true, count: 40))
        #expect((["e1"] + others).allSatisfy { rig.stored($0).played })
        #expect(rig.stored("e2").position == 0 && rig.stored("e2").reason == "marked as played by test")
        try rig.setPaused(true)
        #expect(rig.stored("e1").played)
        let again = try rig.send {
            $0.setPlayed.episodes = others
            $0.setPlayed.played = true
        }?.reply?.episodeStates
        #expect(again?.changed.contains(true) == false)
    }

    @Test(arguments: [false, true])
    func `an older state that could not be saved doesn’t overwrite a mark`(isBulk: Bool) throws {
        try playing()
        // The save of e1’s position is refused when e2 is loaded, and is retried later.
        try rig.advance(20)
        rig.refusal = Failure(.diskFull, "The disk is full.")
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.advance(0.1)
        rig.refusal = nil
        try rig.send {
            if isBulk { $0.setPlayed.episodes = ["e1"] } else { $0.setPlayed.episode = "e1" }
            $0.setPlayed.played = true
        }
        #expect(rig.stored("e1").played)
        try rig.advance(90)
        #expect(rig.stored("e1").played, "the retry wrote the older state")
    }
}
