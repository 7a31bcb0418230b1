import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that the server’s answer to a probe decides about a failed stream, whenever the answer arrives.
struct PlaybackProbeTests {
    private let rig = PlayerRig()
    private static let address = "https://a/e1.mp3"
    /// The part of the engine library’s failure report that never varies.
    private static let vague = Failure(.streamFailed, "a does not answer.")

    /// The time of the server’s answer relative to the engine’s failure.
    enum Moment: CaseIterable { case before, after, never }

    private func load(_ audio: SimulatedEngine.Audio, _ answer: ProbeAnswer, paused: Bool = false) throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(audio)
        rig.answers[Self.address] = answer
        try rig.load(episode, at: 100, paused: paused)
    }

    private func fail(_ answer: ProbeAnswer, _ moment: Moment, paused: Bool = false) throws {
        rig.holdsProbes = moment != .before
        try load(.broken(Self.vague), answer, paused: paused)
        guard moment != .before else { return }
        #expect(rig.state.status == .loading && rig.state.willPlay != paused && !rig.state.hasRetry)
        try rig.advance(14.9)
        #expect(rig.state.status == .loading && !rig.state.hasRetry && rig.alerts.isEmpty)
        if moment == .after { try rig.releaseProbes() } else { try rig.advance(0.2) }
    }

    @Test(arguments: [Moment.before, .after])
    func `a 404 response is a permanent failure no matter when it arrives`(_ moment: Moment) throws {
        try fail(.refused(404), moment)
        #expect(rig.state.status == .failed && rig.state.error.code == "episodeUnavailable")
        #expect(rig.position == 100 && rig.alerts.map(\.code) == ["episodeUnavailable"])
        #expect(!rig.states.contains { $0.hasRetry })
        #expect(rig.opens == 1)
    }

    @Test func `a late 404 ends the retries`() throws {
        try fail(.refused(404), .never)
        #expect(rig.state.status == .loading && rig.state.retry.attempt == 1)
        #expect(rig.state.retry.error.message == Self.vague.message)
        try rig.releaseProbes()
        #expect(rig.state.status == .failed && rig.state.error.code == "episodeUnavailable" && rig.opens == 1)
    }

    @Test(arguments: Moment.allCases)
    func `a 503 response is retried no matter when it arrives`(_ moment: Moment) throws {
        try fail(.refused(503), moment)
        #expect(rig.state.status == .loading && rig.state.willPlay && rig.state.retry.attempt == 1)
        #expect(rig.state.retry.error.message.contains("503") == (moment != .never))
        rig.holdsProbes = false
        try rig.advance(17.5)
        #expect(rig.state.status == .failed && rig.state.error.code == "streamFailed" && rig.position == 100)
        #expect(rig.state.error.message.contains("503") && rig.opens == 4)
    }

    @Test(arguments: Moment.allCases)
    func `a failed connection is retried, and the probe gives the reason`(_ moment: Moment) throws {
        try fail(.unanswered(Failure(.streamFailed, "a cannot be reached: no route to host.")), moment)
        #expect(rig.state.retry.attempt == 1)
        #expect(rig.state.retry.error.message.contains("no route") == (moment != .never))
    }

    @Test(arguments: [Moment.before, .after])
    func `a redirect loop is reported at once and not retried`(_ moment: Moment) throws {
        let circles = Failure(code: "streamFailed", message: "a redirects in circles.", retry: false)
        try fail(.unanswered(circles), moment)
        #expect(rig.state.status == .failed && rig.state.error.message == circles.message)
        #expect(!rig.states.contains { $0.hasRetry } && rig.opens == 1)
    }

    @Test(arguments: [Self.vague, Failure(.decoderFailed, "The data from a contains no playable audio.")])
    func `the failure names the kind of data that a server sends instead of audio`(engine: Failure) throws {
        let page = Failure(.decoderFailed, "a sent a web page instead of audio.")
        try load(.broken(engine), .notAudio(page))
        #expect(rig.state.status == .failed && rig.state.error.message == page.message)
        #expect(rig.alerts.map(\.code) == ["decoderFailed"] && rig.position == 100)
        #expect(!rig.states.contains { $0.hasRetry } && rig.opens == 1)
    }

    @Test func `undecodable audio fails with the engine’s reason if its server calls it audio`() throws {
        let broken = Failure(.decoderFailed, "The data from a contains no playable audio.")
        try load(.broken(broken), .audio(AudioTag(etag: "a", size: 1)))
        #expect(rig.state.status == .failed && rig.state.error.message == broken.message)
    }

    @Test(arguments: [404, 503])
    func `an episode paused before it was open stays paused unless the failure is permanent`(status: Int) throws {
        try fail(.refused(status), .after, paused: true)
        #expect(rig.state.status == (status == 404 ? .failed : .paused) && !rig.state.hasRetry)
    }

    @Test(arguments: [true, false])
    func `a stream that breaks off during playback is probed again`(isGone: Bool) throws {
        try load(SimulatedEngine.Audio(length: 600), .audio(AudioTag(etag: "a", size: 1)))
        try rig.advance(10)
        rig.answers[Self.address] = isGone ? .refused(404) : .refused(503)
        rig.holdsProbes = true
        rig.engine.breakOff(Self.vague)
        try rig.advance(1)
        #expect(rig.probes.count == 2)
        #expect(rig.state.status == .loading && rig.state.willPlay && !rig.state.hasRetry)
        #expect(!rig.state.anchor.running && abs(rig.position - 110) < 0.1)
        try rig.releaseProbes()
        #expect(rig.state.status == (isGone ? .failed : .loading) && rig.state.hasRetry == !isGone)
        #expect(abs(rig.position - 110) < 0.1 && abs(rig.stored().position - 110) < 0.1)
    }

    @Test func `a cut stream keeps its own failure unless the server no longer has the audio`() throws {
        try load(SimulatedEngine.Audio(length: 110, declared: 600, cut: true), .audio(AudioTag(etag: "a", size: 1)))
        try rig.advance(10.1)
        #expect(rig.state.retry.attempt == 1 && rig.state.retry.error.code == "endedEarly")
        rig.answers[Self.address] = .refused(410)
        rig.setStream(.broken(Self.vague))
        try rig.advance(2)
        #expect(rig.state.status == .failed && rig.state.error.code == "episodeUnavailable")
        #expect(abs(rig.position - 110) < 0.1)
    }

    @Test func `a stale response of the server is ignored`() throws {
        rig.holdsProbes = true
        try load(SimulatedEngine.Audio(length: 600), .refused(404))
        try rig.advance(10)
        let load = try #require(LoadID("l1"))
        let first = try #require(rig.machine.session?.recovery.probeSerial)
        rig.engine.breakOff(Self.vague)
        try rig.advance(0.1)
        try rig.report(.probed(load, serial: first, .refused(404)))
        #expect(rig.state.status == .loading && !rig.state.hasRetry)
        try rig.report(.probed(load, serial: try #require(rig.machine.session?.recovery.probeSerial), .refused(503)))
        #expect(rig.state.retry.attempt == 1)
    }

    @Test(arguments: 0..<4)
    func `a command during the wait for the server takes effect and ends the retries`(_ way: Int) throws {
        rig.holdsProbes = true
        try load(.broken(Self.vague), .refused(503))
        switch way {
        case 0: try rig.setPaused(true)
        case 1: try rig.send { $0.stop = WireStopPlayback() }
        case 2: try rig.load(rig.episode("e2"), as: "l2")
        default: try rig.send { $0.unload.loadID = "l1" }
        }
        let (status, opens) = (rig.state.status, rig.opens)
        try rig.releaseProbes()
        try rig.advance(20)
        #expect(rig.state.status == status && rig.opens == opens && !rig.state.hasRetry)
        guard way < 2 else { return }
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.setPaused(false)
        #expect(rig.state.status == .playing)
    }

    @Test func `seeking while waiting for the server moves the position of the retry`() throws {
        rig.holdsProbes = true
        try load(.broken(Self.vague), .refused(503))
        try rig.seek(300)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.releaseProbes()
        #expect(rig.state.retry.attempt == 1)
        try rig.advance(3)
        #expect(rig.state.status == .playing && abs(rig.position - 301) < 0.2)
    }

    @Test func `a crash while waiting for the server keeps the position, and the retries start over`() throws {
        rig.holdsProbes = true
        try load(SimulatedEngine.Audio(length: 600), .refused(503))
        try rig.advance(8)
        rig.engine.breakOff(Self.vague)
        try rig.advance(0.1)
        try rig.start()
        #expect(rig.state.status == .loading || rig.state.status == .playing)
        #expect(abs(rig.position - 108) < 0.3)
    }
}
