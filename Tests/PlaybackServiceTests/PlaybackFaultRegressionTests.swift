import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Regression tests for faults that the fault simulation has found.
struct PlaybackFaultRegressionTests {
    private let rig = PlayerRig()

    @Test(arguments: [true, false])
    func `the removal of a sound device doesn’t resume playback`(isListedFirst: Bool) throws {
        try rig.start()
        rig.engine.setDevices(
            [OutputDevice(name: "a", description: "A"), OutputDevice(name: "b", description: "B")], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        let left = [OutputDevice(name: "a", description: "A")]
        if isListedFirst { rig.engine.setDevices(left, works: false) }
        rig.engine.setSilent(true)
        if !isListedFirst { rig.engine.setDevices(left, works: false) }
        try rig.advance(5)
        #expect(rig.state.status == .paused && abs(rig.position - 52.5) < 0.2)
        rig.engine.setDevices(left + [OutputDevice(name: "c", description: "C")], works: true)
        try rig.advance(5)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test func `a stream that ends before the saved position keeps that position`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 100, declared: 600, cut: true))
        try rig.load(episode, at: 320)
        #expect(rig.state.hasRetry && rig.position == 320)
        try rig.advance(20)
        #expect(rig.state.status == .failed && rig.position == 320 && rig.stored().position == 320)
    }

    @Test func `the alert about a device that returns but doesn’t work stays until playback resumes`() throws {
        try rig.start()
        rig.engine.setDevices([], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        rig.engine.setSilent(true)
        try rig.advance(1)
        rig.engine.setDevices([OutputDevice(name: "a", description: "A")], works: true)
        rig.engine.setStalled(true)
        try rig.advance(5)
        #expect(rig.state.status == .paused && rig.alerts.map(\.code) == ["noSoundDevice"])
        rig.engine.setStalled(false)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test(arguments: [true, false])
    func `an episode stopped before its lookup resumes at its stored position`(resumesFirst: Bool) throws {
        try rig.start()
        var episode = rig.episode(position: 300, played: true)
        // The queue possibly wasn’t notified yet.
        (episode.position, episode.played) = (20, false)
        rig.holdsLookups = true
        try rig.load(episode)
        try rig.send { $0.stop = WireStopPlayback() }
        #expect(rig.state.status == .paused)
        if resumesFirst { try rig.setPaused(false) }
        try rig.releaseLookups()
        if !resumesFirst { try rig.setPaused(false) }
        #expect(rig.state.status == .playing && rig.position == 300 && rig.opens == 1)
        try rig.advance(20)
        #expect(rig.stored().played && rig.stored().position > 300)
    }

    @Test(arguments: [nil, 70.0])
    func `a load that was stored before its lookup is looked up by the next process`(sought: Double?) throws {
        try rig.start()
        var episode = rig.episode(position: 300, played: true)
        (episode.position, episode.played) = (20, false)
        rig.library["e1"]?.state.updatedAt = 1
        rig.holdsLookups = true
        try rig.load(episode)
        if let sought { try rig.seek(sought) } else { try rig.setPaused(true) }
        #expect(rig.session?.loadID == "l1")
        rig.holdsLookups = false
        try rig.start()
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && abs(rig.position - (sought ?? 300)) < 1)
        try rig.advance(20)
        #expect(rig.stored().played)
    }

    @Test(arguments: [true, false])
    func `a pause or stop prevails over an answer that is not durable yet`(stops: Bool) throws {
        try rig.start()
        rig.setFile("e1", .broken(Failure(.decoderFailed, "broken")))
        var episode = rig.episode()
        rig.setFile("e1", .broken(Failure(.decoderFailed, "broken")))
        episode.duration = 600
        try rig.load(episode, at: 100)
        rig.setFile("e1", SimulatedEngine.Audio(length: 600))
        let alert = try #require(rig.alerts.first)
        rig.holdsCommits = true
        try rig.answer(alert.id, "retry")
        if stops { try rig.send { $0.stop = WireStopPlayback() } } else { try rig.setPaused(true) }
        try rig.releaseCommits()
        #expect(rig.state.status == .failed && rig.session?.status == .failed)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }

    @Test func `stale progress from before a file was reopened is ignored`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        let load = try #require(LoadID("l1"))
        try rig.send { $0.stop = WireStopPlayback() }
        try rig.seek(400)
        try rig.setPaused(false)
        let place = PlaybackPosition(clamping: 53)
        try rig.report(.progress(load, EngineProgress(position: place, at: rig.now.monotonic, running: true)))
        #expect(abs(rig.position - 400) < 0.01)
    }

    @Test func `a lookup that is answered with an older state than the stored one changes nothing`() throws {
        try rig.start()
        let episode = rig.episode()
        try rig.load(episode)
        try rig.seek(400)
        rig.holdsCommits = true
        rig.holdsLookups = true
        try rig.advance(5)
        try rig.load(episode, as: "l2")
        try rig.setPaused(false)
        try rig.releaseCommits()
        try rig.releaseLookups()
        #expect(abs(rig.position - 405) < 0.2)
    }

    @Test func `an alert that is answered before it is saved doesn’t return after a restart`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.download("e1", SimulatedEngine.Audio(length: 600))
        rig.refusal = Failure(.diskFull, "full")
        try rig.load(episode, at: 100)
        rig.engine.breakOff(Failure(.decoderFailed, "broken"))
        try rig.advance(0.1)
        let alert = try #require(rig.alerts.first)
        rig.refusal = nil
        rig.holdsCommits = true
        try rig.answer(alert.id, "dismiss")
        try rig.send { $0.setSleep.seconds = 100 }
        try rig.releaseCommits()
        #expect(rig.alerts.isEmpty && (rig.records["alert"] ?? [:]).isEmpty)
    }

    @Test func `a problem that returns while its alert is being answered raises a new alert`() throws {
        try rig.start()
        try rig.load(rig.episode())
        try rig.advance(1)
        rig.engine.setSilent(true)
        try rig.advance(0.1)
        let alert = try #require(rig.alerts.first)
        rig.holdsCommits = true
        try rig.answer(alert.id, "dismiss")
        rig.engine.setSilent(false)
        try rig.advance(2)
        rig.engine.setSilent(true)
        try rig.advance(0.1)
        try rig.releaseCommits()
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"] && rig.alerts.first?.id != alert.id)
    }
}
