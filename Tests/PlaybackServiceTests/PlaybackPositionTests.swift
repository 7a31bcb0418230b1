import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that the position is kept for any source, length and state of the library.
struct PlaybackPositionTests {
    private let rig = PlayerRig()

    @Test func `a seek during a repeated lookup is kept when something else is loaded`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.send { $0.stop = WireStopPlayback() }
        rig.holdsLookups = true
        try rig.setPaused(false)
        #expect(try rig.seek(300)?.reply != nil)
        try rig.send {
            $0.setPlayed.episode = "e1"
            $0.setPlayed.played = true
        }
        #expect(rig.stored().position == 300 && rig.stored().played)
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.releaseLookups()
        #expect(rig.stored("e1").position == 300 && rig.stored("e1").played)
    }

    @Test
    func
        `audio shorter than half of the heard part isn’t accepted as the episode, even without a recorded length`()
        throws
    {
        try rig.start()
        let episode = rig.episode(length: 20, announced: 3_600, position: 1_800)
        try rig.load(episode)
        try rig.advance(30)
        #expect(rig.state.status == .failed && rig.state.error.code == "endedEarly")
        #expect(rig.state.error.message.contains("was left at 30:00"))
        #expect(rig.stored().position == 1_800 && !rig.stored().played && rig.position == 1_800)
        try rig.answer(try #require(rig.alerts.first).id, "accept")
        try rig.advance(25)
        #expect(rig.state.status == .finished)
    }

    @Test(arguments: [(600.0, ""), (600, "https://a/e1.mp3"), (0, "")])
    func `an episode stored at its end starts from the beginning, and an alert says so`(
        length: Double, address: String
    ) throws {
        try rig.start()
        let episode = address.isEmpty ? rig.episode(position: 599.2) : rig.streamedEpisode()
        if !address.isEmpty { rig.setStream(SimulatedEngine.Audio(length: 600)) }
        rig.library["e1"]?.state.position = 599.2
        rig.library["e1"]?.state.duration = length
        try rig.load(episode)
        try rig.advance(2)
        #expect(rig.state.status == .playing && rig.position < 3)
        let alert = try #require(rig.alerts.first)
        #expect(alert.code == "startsOver" && alert.message.contains("played to its end at 9:59"))
        #expect(alert.severity == .info && alert.actions == ["dismiss"] && rig.alerts.count == 1)
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a position beyond the declared end plays if there is audio, also after a restart`()
        throws
    {
        try rig.start()
        let episode = rig.episode(announced: 0, position: 2_505)
        rig.setFile("e1", SimulatedEngine.Audio(length: 2_540, declared: 2_400))
        try rig.load(episode)
        try rig.advance(12)
        #expect(rig.state.status == .playing && abs(rig.position - 2_517) < 0.5)
        try rig.start()
        try rig.advance(1)
        #expect(rig.state.status == .playing && rig.position > 2_507)
        try rig.advance(40)
        #expect(rig.state.status == .finished)
    }

    @Test(arguments: [false, true])
    func `a position far beyond the end fails without retries, and the failure says what to do`(accepts: Bool)
        throws
    {
        try rig.start()
        let episode = rig.streamedEpisode(announced: 0)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.library["e1"]?.state.position = 100_000
        try rig.load(episode)
        #expect(rig.state.status == .failed && rig.state.error.code == "endedEarly" && !rig.state.error.retry)
        let message = rig.state.error.message
        #expect(message.contains("10:00") && message.contains("27:46:40") && message.contains("`lockstep seek 0`"))
        let alert = try #require(rig.alerts.first)
        #expect(rig.alerts.count == 1 && alert.message.contains("`accept`") && alert.actions.contains("accept"))
        if accepts {
            try rig.answer(alert.id, "accept")
        } else {
            try rig.seek(0)
            try rig.setPaused(false)
        }
        try rig.advance(2)
        #expect(rig.state.status == .playing && rig.position < 3 && rig.alerts.isEmpty)
    }

    @Test func `when the original audio returns, positions beyond its accepted replacement play`() throws {
        try rig.start()
        let episode = rig.episode(length: 20, announced: 3_600, position: 1_800)
        try rig.load(episode)
        try rig.advance(2)
        try rig.answer(try #require(rig.alerts.first).id, "accept")
        try rig.advance(5)
        #expect(rig.state.duration == 20)
        rig.setFile("e1", SimulatedEngine.Audio(length: 3_600))
        try rig.load(episode, as: "l2", at: 60)
        try rig.advance(2)
        #expect(rig.state.status == .playing && abs(rig.position - 62) < 0.5 && rig.state.duration == 3_600)
    }

    @Test func `if nothing follows the declared end, the last half minute plays`() throws {
        try rig.start()
        try rig.load(rig.episode(length: 2_400, announced: 0, position: 2_505))
        try rig.advance(2)
        #expect(rig.state.status == .playing && abs(rig.position - 2_371.5) < 1)
        try rig.advance(40)
        #expect(rig.state.status == .finished)
    }

    @Test func `an unplayable episode keeps its alert when it is retried`() throws {
        try rig.start()
        var episode = rig.episode()
        episode.enclosureURL = ""
        try rig.load(episode)
        #expect(rig.state.status == .failed && rig.alerts.count == 1)
        try rig.answer(try #require(rig.alerts.first).id, "retry")
        #expect(rig.state.status == .failed && rig.alerts.map(\.actions) == [["retry", "skip", "dismiss"]])
        try rig.setPaused(false)
        #expect(rig.state.status == .failed && rig.alerts.count == 1)
    }

    @Test func `a seek that gets no data shows buffering, and is retried`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.advance(2)
        let serial = rig.serial
        rig.engine.setStalled(true)
        try rig.seek(400)
        // The engine has not completed the seek: it reports the previous one.
        func wait(_ seconds: Int) throws {
            for _ in 0..<seconds {
                let load = try #require(LoadID("l1"))
                let place = try #require(PlaybackPosition(seconds: 400))
                rig.advanceClocks(by: 1)
                try rig.report(
                    .progress(
                        load,
                        EngineProgress(
                            position: place, at: rig.now.monotonic, running: false, buffering: true, serial: serial)))
            }
        }
        try wait(3)
        #expect(rig.state.status == .playing && rig.state.buffering && rig.position == 400)
        try wait(60)
        #expect(rig.state.status == .loading && rig.state.retry.attempt == 1 && rig.position == 400)
    }

    @Test func `the stored state isn’t overwritten before a late lookup, which then adds the progress`() throws {
        try rig.start()
        let episode = rig.episode(position: 100)
        rig.library["e1"]?.state.audioTag = "etag:a"
        rig.library["e1"]?.state.reason = "heard once"
        rig.lookupFailure = Failure(.unavailable, "too slow")
        try rig.load(episode, at: 100)
        try rig.advance(25)
        #expect(rig.state.status == .playing && rig.stored().reason == "heard once" && rig.stored().position == 100)
        #expect(abs((rig.session?.position ?? 0) - 120) < 1)
        try rig.releaseLookups()
        #expect(rig.stored().reason == "heard once" && rig.stored().audioTag == "etag:a")
        #expect(abs(rig.stored().position - 125) < 1)
    }

    @Test func `a stream that is rejected before it is audible doesn’t overwrite an unknown stored state`() throws {
        try rig.start()
        let episode = rig.streamedEpisode(announced: 3_600)
        rig.library["e1"]?.state.position = 1_200
        rig.lookupFailure = Failure(.unavailable, "too slow")
        rig.setStream(SimulatedEngine.Audio(length: 20))
        try rig.load(episode, at: 600)
        try rig.advance(1)
        #expect(rig.opens == 1 && rig.state.hasRetry)
        try rig.load(rig.episode("e2"), as: "l2")
        try rig.releaseLookups()
        #expect(rig.stored("e1").position == 1_200)
    }

    @Test func `playback starts at a requested position near the end; resuming rewinds after a retry wait`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.library["e1"]?.state.duration = 600
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 599.2)
        #expect(rig.position > 598.9)
        rig.setStream(SimulatedEngine.Audio(length: 130, declared: 600, cut: true))
        try rig.load(episode, as: "l2", at: 100)
        try rig.advance(31)
        #expect(rig.state.hasRetry)
        try rig.setPaused(true)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.rest(3_600)
        try rig.setPaused(false)
        #expect(rig.position < 129)
    }

    @Test func `an episode that is paused before it fails to open stays paused, without an alert`() throws {
        try rig.start()
        var silent = SimulatedEngine.Audio(length: 600)
        silent.opens = false
        let episode = rig.streamedEpisode()
        rig.setStream(silent)
        try rig.load(episode, at: 100)
        try rig.setPaused(true)
        try rig.advance(300)
        #expect(rig.state.status == .paused && rig.alerts.isEmpty && rig.opens == 1 && rig.position == 100)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }

    @Test func `a replacement’s tag doesn’t become the episode’s`() throws {
        try rig.start()
        let episode = rig.streamedEpisode(announced: 3_600)
        rig.library["e1"]?.state.position = 1_800
        rig.library["e1"]?.state.audioTag = "etag:\"hour\""
        rig.tags["https://a/e1.mp3"] = AudioTag(etag: "\"notice\"", size: 1)
        rig.setStream(SimulatedEngine.Audio(length: 20))
        try rig.load(episode)
        try rig.advance(60)
        #expect(rig.state.status == .failed && rig.alerts.map(\.code) == ["endedEarly"])
        #expect(rig.stored().position == 1_800 && rig.stored().audioTag == "etag:\"hour\"")
        rig.tags["https://a/e1.mp3"] = AudioTag(etag: "\"hour\"", size: 1)
        rig.setStream(SimulatedEngine.Audio(length: 3_600))
        try rig.answer(try #require(rig.alerts.first).id, "retry")
        try rig.advance(12)
        #expect(rig.state.status == .playing && rig.position > 1_800 && rig.alerts.isEmpty)
    }

    @Test(arguments: [true, false])
    func `an episode that was downloaded since it was loaded resumes from its file`(byRetry: Bool)
        throws
    {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.advance(12)
        if byRetry {
            rig.setStream(.broken(Failure(.episodeUnavailable, "gone")))
            try rig.send { $0.stop = WireStopPlayback() }
            try rig.setPaused(false)
            #expect(rig.state.status == .failed)
        } else {
            try rig.send { $0.stop = WireStopPlayback() }
        }
        rig.download("e1", SimulatedEngine.Audio(length: 600))
        if byRetry {
            try rig.answer(try #require(rig.alerts.first).id, "retry")
        } else {
            try rig.setPaused(false)
        }
        #expect(rig.state.status == .playing && rig.state.local && abs(rig.position - 112) < 0.5)
    }
}
