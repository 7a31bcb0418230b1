import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests an engine that hangs, as with a sound server that doesn’t respond.
struct PlaybackHangTests {
    private let rig = PlayerRig()
    private let speaker = OutputDevice(name: "pulse/speaker", description: "Speaker")
    /// The number of seconds within which a hung engine must be detected.
    private static let notice = Double(EngineLiveness.limit) + 3
    private let unlisted = OutputDevice(name: "auto", description: "Autoselect device")

    /// Plays for 3 s from 50 s, then hangs until the process must end.
    private func hang() throws {
        try rig.start()
        rig.engine.setDevices([speaker], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        try hangAgain()
    }

    private func hangAgain() throws {
        let before = rig.endings.count
        rig.engine.hang()
        try rig.advance(Self.notice)
        try #require(rig.endings.count == before + 1)
    }

    /// Starts another process, whose engine lists these devices.
    private func restart(listing devices: [OutputDevice]) throws {
        rig.advanceClocks(by: 0.5)
        rig.devices = devices
        try rig.start()
    }

    @Test func `a hang pauses playback at the last played position, and the process ends once that is saved`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        rig.engine.hang()
        rig.holdsCommits = true
        for _ in 0..<80 where rig.state.status == .playing { try rig.advance(0.2) }
        #expect(rig.state.status == .paused && rig.state.pausedBy == .soundDevice)
        #expect(rig.position > 51.5 && rig.position < 53)
        #expect(rig.alerts.map(\.message) == ["The sound system doesn’t respond; playback is paused."])
        #expect(rig.endings.isEmpty)
        try rig.releaseCommits()
        #expect(rig.session.map { abs($0.position - rig.position) < 0.01 } == true)
        #expect(rig.endings.count == 1)
        try rig.advance(5)
        #expect(rig.endings.count == 1)
    }

    @Test func `only what the engine has reported counts as heard when it hangs`() throws {
        try hang()
        let session = try #require(rig.playSessions.values.first)
        #expect(abs(session.heard - (rig.position - 50)) < 0.01 && session.heard < 3.1, "\(session)")
        #expect(abs(session.leftAt - rig.position) < 0.01 && abs(session.wall - session.heard) < 0.01)
        #expect(session.ended - session.started < 3_100)
    }

    @Test func `a position that doesn’t advance is a hang unless playback waits for data or is paused`() throws {
        try rig.start()
        rig.engine.setDevices([speaker], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        rig.engine.setStalled(true)
        try rig.advance(15)
        rig.engine.setStalled(false)
        try rig.setPaused(true)
        try rig.advance(15)
        try rig.setPaused(false)
        #expect(rig.endings.isEmpty)
        rig.engine.stick()
        try rig.advance(15)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .soundDevice && rig.endings.count == 1)
    }

    @Test func `a hung engine ends the process even if nothing can be saved`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        try rig.advance(3)
        rig.engine.hang()
        rig.holdsCommits = true
        try rig.advance(Self.notice + 3)
        #expect(rig.endings.count == 1)
    }

    @Test func `after a hang the next process resumes when the sound servers list a device`() throws {
        try hang()
        let place = rig.position
        try restart(listing: [unlisted])
        try rig.advance(10)
        #expect(rig.opens == 0 && rig.machine.state.status == .paused && rig.machine.state.pausedBy == .soundDevice)
        #expect(rig.alerts.map(\.code) == ["noSoundDevice"])
        rig.engine.setDevices([unlisted, speaker], works: true)
        try rig.advance(6)
        #expect(rig.state.status == .playing && rig.position > place && rig.position < place + 6)
        try rig.advance(2)
        #expect(rig.alerts.isEmpty && rig.endings.count == 1)
    }

    @Test func `after a hang a device that can’t be opened is awaited like any lost device`() throws {
        try hang()
        let place = rig.position
        try restart(listing: [speaker])
        rig.engine.setSilent(true)
        try rig.advance(5)
        #expect(rig.state.status == .paused && rig.state.pausedBy == .soundDevice && abs(rig.position - place) < 0.01)
        rig.engine.repair()
        try rig.advance(8)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test func `after a hang only the chosen device resumes playback`() throws {
        let headset = OutputDevice(name: "pulse/headset", description: "Headset")
        try rig.start()
        rig.engine.setDevices([speaker, headset], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.send { $0.setOutput.device = "pulse/headset" }
        try rig.advance(3)
        try hangAgain()
        try restart(listing: [speaker])
        try rig.advance(10)
        #expect(rig.opens == 0)
        rig.engine.setDevices([speaker, headset], works: true)
        try rig.advance(12)
        #expect(rig.state.status == .playing && rig.state.output == "pulse/headset" && rig.alerts.isEmpty)
    }

    @Test func `a stream that opens slowly after a hang gets the full time limit`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.engine.setDevices([speaker], works: true)
        try rig.load(episode, at: 50)
        try rig.advance(3)
        try hangAgain()
        var slow = SimulatedEngine.Audio(length: 600)
        slow.stalls = true
        rig.setStream(slow)
        try restart(listing: [speaker])
        try rig.advance(10)
        #expect(rig.opens == 1 && rig.state.status == .loading && rig.state.willPlay)
        rig.engine.setStalled(false)
        try rig.advance(3)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test func `an episode that is paused after a hang stays paused`() throws {
        try hang()
        try restart(listing: [])
        try rig.advance(2)
        try rig.setPaused(true)
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(20)
        #expect(rig.opens == 0 && rig.state.status == .paused && rig.state.pausedBy == .somebody)
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test func `a sound device that returns more than a minute after a hang doesn’t resume playback`() throws {
        try hang()
        try restart(listing: [])
        try rig.advance(61)
        #expect(rig.state.pausedBy == .somebody && rig.alerts.map(\.code) == ["noSoundDevice"])
        rig.engine.setDevices([speaker], works: true)
        try rig.advance(20)
        #expect(rig.opens == 0)
    }

    @Test func `a second hang within a minute leaves playback paused, with an alert that resumes it`() throws {
        try hang()
        try restart(listing: [speaker])
        try rig.advance(3)
        #expect(rig.state.status == .playing)
        try hangAgain()
        try restart(listing: [speaker])
        try rig.advance(20)
        #expect(rig.opens == 0 && rig.state.status == .paused && rig.state.pausedBy == .somebody)
        let alert = try #require(rig.alerts.first { $0.code == "playbackCrashed" })
        try rig.answer(alert.id, "resume")
        #expect(rig.state.status == .playing)
    }

    @Test func `an engine that hangs during a pause ends the process, and nothing resumes`() throws {
        try rig.start()
        rig.engine.setDevices([speaker], works: true)
        try rig.load(rig.episode(), at: 50)
        try rig.setPaused(true)
        try rig.advance(3)
        rig.engine.hang()
        try rig.advance(20)
        #expect(rig.endings.isEmpty, "an engine without commands isn’t checked")
        try rig.seek(70)
        try rig.advance(Self.notice)
        #expect(rig.endings.count == 1 && rig.alerts.isEmpty)
        try restart(listing: [speaker])
        try rig.advance(10)
        #expect(rig.opens == 0 && rig.machine.state.status == .paused && abs(rig.position - 70) < 0.01)
    }

    @Test func `after a restart of the fleet the player doesn’t wait for a device`() throws {
        try hang()
        rig.context.fleetRun = "run2"
        try restart(listing: [speaker])
        try rig.advance(10)
        #expect(rig.opens == 0 && rig.machine.state.pausedBy == .somebody)
    }

    // MARK: The checks

    @Test func `a late answer of the engine isn’t a hang`() {
        var liveness = EngineLiveness()
        liveness.record(.open(EngineLoad(id: .random(), source: .file(path: "/a"))))
        for round in 1...20 {
            liveness.record(.sample)
            guard case .asks(let number) = liveness.check() else { return #expect(Bool(false), "round \(round)") }
            for _ in 1..<EngineLiveness.limit { #expect(liveness.check() == .isAlive) }
            liveness.answer(number)
            #expect(!liveness.isWaiting)
        }
    }

    @Test func `an engine that never opened a file isn’t pinged`() {
        var liveness = EngineLiveness()
        liveness.record(.listOutputs)
        liveness.record(.setVolume(.full))
        #expect(!liveness.isWaiting && liveness.check() == .isAlive)
    }

    @Test func `an unusable engine isn’t pinged`() throws {
        try rig.start()
        try rig.load(rig.episode(), at: 50)
        rig.engine.hang()
        try rig.report(.unusable(Failure(.internalError, "There is no libmpv.")))
        try rig.advance(20)
        #expect(rig.endings.isEmpty)
    }
}
