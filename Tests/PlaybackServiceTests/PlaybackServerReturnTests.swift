import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests that a failed stream resumes by itself when its server is available again, unless a command intervenes.
struct PlaybackServerReturnTests {
    private let rig = PlayerRig()
    private static let address = "https://a/e1.mp3"
    private static let away = Failure(.streamFailed, "a cannot be reached: there is no network.")
    private static let whole = SimulatedEngine.Audio(length: 600)

    /// Plays until the network is lost and all retries have failed.
    private func fail() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(Self.whole)
        try rig.load(episode, at: 100)
        try rig.advance(10)
        leave()
        rig.engine.breakOff(Self.away)
        try rig.advance(17.1)
        #expect(rig.state.status == .failed && rig.alerts.map(\.code) == ["streamFailed"])
    }

    private func leave() {
        rig.setStream(.broken(Self.away))
        rig.answers[Self.address] = .unanswered(Self.away)
    }

    private func comeBack(_ audio: SimulatedEngine.Audio = Self.whole) {
        rig.setStream(audio)
        rig.answers[Self.address] = nil
    }

    @Test
    func `a stream that failed without a network resumes when the network is available again, and its alert ends`()
        throws
    {
        try fail()
        let alert = try #require(rig.alerts.first)
        #expect(alert.message.contains("by itself"))
        try rig.advance(29)
        comeBack()
        #expect(rig.state.status == .failed && abs(rig.position - 110) < 0.1)
        try rig.advance(1)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty && abs(rig.position - 110) < 0.3)
        try rig.advance(10)
        #expect(rig.machine.session?.recovery.awaitsServer == false && abs(rig.position - 120) < 0.3)
    }

    @Test
    func `an unreachable server is probed silently after 30 s, 1, 2 and then every 5 min, for half an hour`()
        throws
    {
        try fail()
        let (probes, opens, states) = (rig.probes.count, rig.opens, rig.states.count)
        var asked: [Int] = []
        for second in 1...2_400 {
            let before = rig.probes.count
            try rig.advance(1)
            if rig.probes.count > before { asked.append(second) }
        }
        #expect(asked == [30, 90, 210, 510, 810, 1_110, 1_410, 1_710])
        #expect(rig.probes.count == probes + asked.count && rig.opens == opens && rig.states.count == states + 1)
        comeBack()
        try rig.advance(600)
        #expect(rig.state.status == .failed && rig.alerts.count == 1)
        #expect(rig.alerts.allSatisfy { !$0.message.contains("by itself") })
        try rig.setPaused(false)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test(arguments: 0..<5)
    func `a failed episode doesn’t resume by itself after a command about it`(_ way: Int) throws {
        try fail()
        switch way {
        case 0: try rig.setPaused(true)
        case 1: try rig.send { $0.stop = WireStopPlayback() }
        case 2: try rig.answer(try #require(rig.alerts.first).id, "dismiss")
        case 3:
            try rig.send {
                $0.setPlayed.episode = "e1"
                $0.setPlayed.played = true
            }
        default:
            try rig.send { $0.setSleep.seconds = 20 }
        }
        comeBack()
        let (opens, probes) = (rig.opens, rig.probes.count)
        try rig.advance(400)
        #expect(rig.state.status == .failed && rig.opens == opens && rig.probes.count == probes)
    }

    @Test(arguments: [false, true])
    func `after a seek a failed episode still resumes by itself, at the new position`(isRelative: Bool) throws {
        try fail()
        let failed = try #require(rig.alerts.first)
        if isRelative { try rig.send { $0.seekRelative.by = 90 } } else { try rig.seek(200) }
        #expect(rig.state.status == .failed && rig.alerts == [failed])
        #expect(rig.state.error.message.contains("by itself") && abs(rig.position - 200) < 0.2)
        comeBack()
        try rig.advance(30)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty && abs(rig.position - 200) < 0.5)
        try rig.advance(10)
        #expect(rig.machine.session?.recovery.awaitsServer == false)
    }

    @Test(arguments: [false, true])
    func `an alert that remains until the server is probed again announces automatic resumption again`(seeks: Bool)
        throws
    {
        try fail()
        let alert = try #require(rig.alerts.first)
        #expect(alert.title == "Playback is interrupted")
        // The server answers, but sends no audio.
        rig.answers[Self.address] = nil
        try rig.advance(30.1)
        #expect(rig.state.status == .loading && rig.alerts == [alert])
        if seeks { try rig.seek(200) }
        try rig.send {
            $0.setPlayed.episode = "e1"
            $0.setPlayed.played = true
        }
        #expect(rig.alerts.map(\.title) == ["Playback stopped"] && !rig.alerts[0].message.contains("by itself"))
        try rig.advance(17.1)
        #expect(rig.state.status == .failed && rig.state.error.message.contains("by itself"))
        #expect(rig.alerts == [alert])
    }

    @Test func `the notice of automatic resumption in an alert of an earlier version is removed`() throws {
        try fail()
        var alert = try #require(rig.alerts.first)
        let message = "“Episode e1”: \(Self.away.message)"
        alert.message = "\(message) It plays on by itself if its server is back within 30 min."
        rig.store("alert", alert.id, alert.wireBytes)
        try rig.start()
        #expect(rig.alerts.map(\.message) == [message])
    }

    @Test(arguments: [404, 403, 0])
    func `a permanent failure isn’t probed`(status: Int) throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(status > 0 ? .broken(Self.away) : SimulatedEngine.Audio(length: 103, declared: 600, cut: true))
        if status > 0 { rig.answers[Self.address] = .refused(status) }
        try rig.load(episode, at: 100)
        try rig.advance(40)
        #expect(rig.state.status == .failed && !rig.alerts.contains { $0.message.contains("by itself") })
        comeBack()
        let opens = rig.opens
        try rig.advance(400)
        #expect(rig.state.status == .failed && rig.opens == opens)
    }

    @Test func `a server that is available again without the audio isn’t probed further`() throws {
        try fail()
        rig.answers[Self.address] = .refused(410)
        try rig.advance(30)
        let probes = rig.probes.count
        #expect(rig.state.error.code == "episodeUnavailable" && rig.alerts.map(\.code) == ["episodeUnavailable"])
        comeBack()
        try rig.advance(400)
        #expect(rig.state.status == .failed && rig.probes.count == probes)
    }

    @Test func `a failure and its alert announce automatic resumption only while the server is probed`() throws {
        try fail()
        let alert = try #require(rig.alerts.first)
        #expect(alert.message.hasSuffix("available again within 30 min."))
        #expect(rig.state.error.message.hasSuffix("available again within 30 min.") && rig.state.error.retry)
        #expect(alert.message.contains(rig.state.error.message))
        try rig.setPaused(true)
        #expect(rig.alerts.map(\.id) == [alert.id] && rig.alerts.allSatisfy { !$0.message.contains("by itself") })
        #expect(rig.state.error.message == Self.away.message)
    }

    @Test func `a restart of the process ends the probes and removes their notice`() throws {
        try fail()
        try rig.start()
        #expect(rig.alerts.count == 1 && rig.alerts.allSatisfy { !$0.message.contains("by itself") })
        comeBack()
        try rig.advance(400)
        #expect(rig.state.status == .failed)
    }

    @Test func `a stream whose server answers but sends no audio is retried with backoff, with one alert`() throws {
        try fail()
        rig.answers[Self.address] = nil
        let (alert, opens) = (rig.alerts.first?.id, rig.opens)
        try rig.advance(1_900)
        #expect(rig.state.status == .failed && rig.alerts.map(\.id) == [alert])
        #expect((5...9).contains((rig.opens - opens) / 4), "\(rig.opens - opens)")
        #expect(rig.position == 110 || abs(rig.position - 110) < 0.1)
    }

    @Test func `a retried stream that turns out to contain no audio has one alert`() throws {
        try fail()
        rig.answers[Self.address] = .audio(AudioTag(etag: "", size: 0))
        try rig.advance(29.9)
        rig.setStream(.broken(Failure(.decoderFailed, "no audio")))
        try rig.advance(0.2)
        #expect(rig.state.status == .failed && rig.alerts.map(\.code) == ["decoderFailed"])
    }

    @Test(arguments: [60.0, 1_900])
    func `after the computer’s sleep the server is probed at once, but not after half an hour`(after seconds: Double)
        throws
    {
        try fail()
        comeBack()
        try rig.report(.suspends)
        rig.now.wall = Timestamp(milliseconds: rig.now.wall.milliseconds + Int64(seconds * 1_000))
        try rig.report(.wakes)
        try rig.advance(1)
        #expect(rig.state.status == (seconds < 1_800 ? .playing : .failed))
        try rig.advance(400)
        #expect(rig.state.status == (seconds < 1_800 ? .playing : .failed))
    }
}
