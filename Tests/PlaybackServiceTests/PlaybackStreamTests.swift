import BusKit
import EngineDouble
import OwnerHarness
import PodcastModel
import Testing
import WireMessages

@testable import PlaybackService

/// Tests streams that fail, stall and change, and downloaded files that replace them.
struct PlaybackStreamTests {
    private let rig = PlayerRig()
    private let refused = Failure(.streamFailed, "The server answered 503.")

    private func stream(_ audio: SimulatedEngine.Audio, at position: Double = 100) throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(audio)
        try rig.load(episode, at: position)
    }

    // MARK: Retries

    @Test func `a stream is retried after 2, 5 and 10 s at its position; the fourth failure is final`()
        throws
    {
        try stream(.broken(refused))
        for (attempt, wait) in [2.0, 5, 10].enumerated() {
            #expect(rig.state.status == .loading && rig.state.willPlay)
            #expect(rig.state.retry.attempt == UInt32(attempt + 1) && rig.state.retry.of == 3)
            #expect(rig.state.retry.nextInSeconds == wait)
            #expect(rig.state.retry.error.code == "streamFailed")
            #expect(rig.position == 100 && rig.alerts.isEmpty)
            let opens = rig.opens
            try rig.advance(wait - 0.05)
            #expect(rig.opens == opens)
            try rig.advance(0.05)
            #expect(rig.opens == opens + 1)
        }
        #expect(rig.state.status == .failed && !rig.state.hasRetry)
        #expect(rig.position == 100)
        #expect(rig.alerts.map(\.actions) == [["retry", "skip", "dismiss"]])
        #expect(rig.states.contains { $0.hasRetry && $0.retry.nextInSeconds == 0 && $0.retry.nextAt == 0 })
    }

    @Test func `a stream that is available again resumes where it failed, and shows no retry`() throws {
        try stream(.broken(refused))
        try rig.advance(1)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.advance(1)
        #expect(rig.state.status == .playing && !rig.state.hasRetry)
        try rig.advance(3)
        #expect(abs(rig.position - 103) < 0.2)
    }

    @Test func `failures at distant positions are counted separately, failures at nearby positions together`() throws {
        try stream(SimulatedEngine.Audio(length: 110, declared: 600, cut: true))
        try rig.advance(10.1)
        #expect(rig.state.retry.attempt == 1)
        rig.setStream(SimulatedEngine.Audio(length: 130, declared: 600, cut: true))
        try rig.advance(22.2)
        #expect(rig.state.retry.attempt == 1 && abs(rig.position - 130) < 0.2)
        try rig.advance(2)
        #expect(rig.state.retry.attempt == 2)
        rig.setStream(SimulatedEngine.Audio(length: 132, declared: 600, cut: true))
        try rig.advance(7.2)
        #expect(rig.state.retry.attempt == 3 && abs(rig.position - 132) < 0.2)
        try rig.advance(10.1)
        #expect(rig.state.status == .failed && rig.state.error.code == "endedEarly")
        #expect(!rig.stored().played && abs(rig.stored().position - 132) < 0.2)
    }

    @Test(arguments: [
        Failure(.episodeUnavailable, "410"), Failure(.decoderFailed, "no audio"),
        Failure(code: "streamFailed", message: "401", retry: false),
    ])
    func `a permanent failure isn’t retried`(_ failure: Failure) throws {
        try stream(.broken(failure))
        #expect(rig.state.status == .failed && rig.state.error.code == failure.code)
        #expect(rig.alerts.count == 1 && rig.position == 100)
    }

    @Test func `a local file of a feed isn’t retried`() throws {
        try rig.start()
        let episode = rig.episode()
        rig.setFile("e1", .broken(refused))
        try rig.load(episode)
        #expect(rig.state.status == .failed)
    }

    @Test func `pausing during a retry wait ends the retries; resuming starts them over`() throws {
        try stream(.broken(refused))
        try rig.advance(2.05)
        #expect(rig.state.retry.attempt == 2)
        try rig.setPaused(true)
        #expect(rig.state.status == .paused && !rig.state.hasRetry)
        let opens = rig.opens
        try rig.advance(30)
        #expect(rig.opens == opens && rig.position == 100)
        try rig.setPaused(false)
        #expect(rig.opens == opens + 1 && rig.state.retry.attempt == 1)
    }

    @Test func `resuming during a retry wait retries at once; seeking moves the position of the retry`()
        throws
    {
        try stream(.broken(refused))
        let opens = rig.opens
        try rig.seek(300)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.setPaused(false)
        #expect(rig.opens == opens + 1)
        #expect(rig.state.status == .playing && rig.state.anchor.position == 300)
    }

    @Test(arguments: 0..<3)
    func `stopping, loading something else and ending the process end the retries`(_ way: Int) throws {
        try stream(.broken(refused))
        switch way {
        case 0: try rig.send { $0.stop = WireStopPlayback() }
        case 1: try rig.load(rig.episode("e2"), as: "l2")
        default: try rig.stopProcess()
        }
        let opens = rig.opens
        try rig.advance(20)
        #expect(rig.opens == opens && !rig.state.hasRetry)
    }

    @Test func `a crash while a stream is retried keeps its position, and retrying continues`() throws {
        try stream(.broken(refused))
        try rig.start()
        #expect(rig.state.status == .loading && rig.position == 100)
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.advance(2.1)
        #expect(rig.state.status == .playing && rig.position >= 100)
    }

    @Test func `the state shows that a failed episode was skipped until it is resumed`() throws {
        try stream(.broken(Failure(.episodeUnavailable, "404")))
        let alert = try #require(rig.alerts.first?.id)
        try rig.answer(alert, "skip")
        #expect(rig.state.status == .failed && rig.state.skip && rig.alerts.isEmpty)
        try rig.start()
        #expect(rig.machine.state.skip)
        try rig.setPaused(false)
        #expect(!rig.state.skip)
    }

    @Test func `an announcement that replaces an episode’s audio doesn’t finish it, and its position is kept`()
        throws
    {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        try rig.load(episode, at: 100)
        try rig.advance(12)
        try rig.load(rig.episode("e2"), as: "l2")
        rig.setStream(SimulatedEngine.Audio(length: 20))
        try rig.load(episode, as: "l3")
        try rig.advance(60)
        #expect(rig.state.status == .failed && rig.state.error.code == "endedEarly")
        #expect(!rig.stored().played && abs(rig.stored().position - 112) < 0.5)
        rig.setStream(SimulatedEngine.Audio(length: 590))
        try rig.setPaused(false)
        // Playback starts at the stored position, less the rewind after a minute.
        #expect(rig.state.status == .playing && rig.position < 112.5 && rig.position > 95)
    }

    // MARK: Stalls

    @Test func `a stream that doesn’t answer or sends no data fails and is retried`() throws {
        var silent = SimulatedEngine.Audio(length: 600)
        silent.opens = false
        try stream(silent)
        try rig.advance(59.9)
        #expect(rig.state.status == .loading && !rig.state.hasRetry)
        try rig.advance(0.2)
        #expect(rig.state.retry.attempt == 1)
        var dry = SimulatedEngine.Audio(length: 600)
        dry.stalls = true
        rig.setStream(dry)
        try rig.advance(2)
        #expect(rig.state.status == .loading && rig.state.buffering && rig.state.retry.nextInSeconds == 0)
        try rig.advance(59)
        #expect(rig.state.retry.attempt == 1)
        try rig.advance(3)
        #expect(rig.state.retry.attempt == 2 && rig.state.retry.error.message.contains("No data"))
        #expect(rig.position == 100)
    }

    @Test func `a stream that gets no data for 20 s fails`() throws {
        try stream(SimulatedEngine.Audio(length: 600))
        try rig.advance(10)
        rig.engine.setStalled(true)
        try rig.advance(19.5)
        #expect(rig.state.status == .playing && rig.state.buffering && !rig.state.anchor.running)
        try rig.advance(2.5)
        #expect(rig.state.retry.attempt == 1 && abs(rig.position - 110) < 0.5)
    }

    @Test func `a stream whose data arrives slowly doesn’t fail`() throws {
        var dry = SimulatedEngine.Audio(length: 600)
        dry.stalls = true
        try stream(dry)
        for step in 0..<60 {
            try rig.advance(1)
            try rig.report(
                .progress(
                    try #require(LoadID("l1")),
                    EngineProgress(
                        position: PlaybackPosition(seconds: 100)!, at: rig.now.monotonic, running: false,
                        buffering: true, serial: rig.serial, cached: 100 + Double(step))))
        }
        #expect(rig.state.status == .loading && !rig.state.hasRetry)
    }

    // MARK: Downloaded files

    private func downloaded(_ file: SimulatedEngine.Audio, etag: String = "\"a\"") throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.download("e1", file, etag: etag)
        try rig.load(episode, at: 100)
    }

    @Test func `a downloaded file plays instead of the stream`() throws {
        try downloaded(SimulatedEngine.Audio(length: 600))
        #expect(rig.state.status == .playing && rig.state.local)
        #expect(rig.engine.source == .file(path: "/downloads/e1.mp3"))
        try rig.stopProcess()
        rig.context.fleetRun = "run2"
        try rig.start()
        try rig.setPaused(false)
        #expect(rig.engine.source == .file(path: "/downloads/e1.mp3"))
    }

    @Test(arguments: [
        SimulatedEngine.Audio.broken(Failure(.fileMissing, "gone")), .broken(Failure(.decoderFailed, "broken")),
        SimulatedEngine.Audio(length: 105, declared: 600, cut: true),
    ])
    func `a missing, broken or truncated file is replaced by the stream at the same position, with an alert`(
        _ file: SimulatedEngine.Audio
    ) throws {
        try downloaded(file)
        try rig.advance(6)
        #expect(rig.state.status == .playing && !rig.state.local)
        #expect(rig.engine.source == .web(url: "https://a/e1.mp3"))
        #expect(abs(rig.position - 106) < 0.3)
        #expect(rig.alerts.map(\.code) == ["playsStream"])
        try rig.load(rig.episode("e2"), as: "l2")
        #expect(rig.alerts.isEmpty)
    }

    // MARK: Changes of the audio

    @Test func `a server whose audio has changed raises one alert, and the position is kept`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.tags["https://a/e1.mp3"] = AudioTag(etag: "\"a\"", size: 0)
        try rig.load(episode, at: 100)
        try rig.advance(12)
        #expect(rig.stored().audioTag == "etag:\"a\"")
        try rig.load(rig.episode("e2"), as: "l2")
        rig.tags["https://a/e1.mp3"] = AudioTag(etag: "W/\"b\"", size: 0)
        try rig.load(episode, as: "l3")
        #expect(rig.alerts.map(\.code) == ["audioChanged"])
        #expect(rig.state.status == .playing && abs(rig.position - 112) < 0.3)
        try rig.advance(11)
        try rig.load(rig.episode("e2"), as: "l4")
        #expect(rig.alerts.isEmpty)
        try rig.load(episode, as: "l5")
        #expect(rig.alerts.isEmpty)
    }

    @Test(arguments: [false, true])
    func `when the original audio returns, the alert about its change ends, even if that was accepted`(
        isAccepted: Bool
    ) throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        func serve(_ tag: String, _ length: Double) {
            rig.tags["https://a/e1.mp3"] = AudioTag(etag: tag, size: 0)
            rig.setStream(SimulatedEngine.Audio(length: length))
        }
        serve("a", 600)
        try rig.load(episode, at: 100)
        try rig.advance(12)
        try rig.load(rig.episode("e2"), as: "l2")
        serve("b", 20)
        try rig.load(episode, as: "l3")
        try rig.advance(60)
        #expect(rig.state.status == .failed && rig.alerts.map(\.code) == ["endedEarly"])
        if isAccepted {
            try rig.answer(try #require(rig.alerts.first).id, "accept")
            try rig.advance(5)
            #expect(rig.state.duration == 20 && rig.alerts.isEmpty)
        }
        serve("a", 600)
        if isAccepted { try rig.load(episode, as: "l3a", at: 100) } else { try rig.setPaused(false) }
        try rig.advance(12)
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
        try rig.load(rig.episode("e2"), as: "l4")
        try rig.load(episode, as: "l5")
        #expect(rig.state.status == .playing && rig.alerts.isEmpty)
    }

    @Test(arguments: [
        (AudioTag(etag: "", size: 9), AudioTag(etag: "\"a\"", size: 9), 100.0),
        (AudioTag(etag: "\"a\"", size: 9), AudioTag(etag: "", size: 0), 100.0),
        (AudioTag(etag: "\"a\"", size: 9), AudioTag(etag: "W/\"a\"", size: 8), 100.0),
        (AudioTag(etag: "\"a\"", size: 9), AudioTag(etag: "\"b\"", size: 9), 0.0),
    ])
    func `tags of different kinds, unknown tags and an episode at its start raise no alert`(
        _ first: AudioTag, _ second: AudioTag, position: Double
    ) throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.tags["https://a/e1.mp3"] = first
        try rig.load(episode, at: position)
        try rig.setPaused(true)
        try rig.send { $0.stop = WireStopPlayback() }
        rig.tags["https://a/e1.mp3"] = second
        try rig.setPaused(false)
        #expect(rig.alerts.isEmpty)
    }

    @Test func `a downloaded file that differs from the stream that was begun raises an alert`() throws {
        try rig.start()
        let episode = rig.streamedEpisode()
        rig.setStream(SimulatedEngine.Audio(length: 600))
        rig.tags["https://a/e1.mp3"] = AudioTag(etag: "\"a\"", size: 0)
        try rig.load(episode, at: 100)
        try rig.advance(12)
        try rig.load(rig.episode("e2"), as: "l2")
        rig.download("e1", SimulatedEngine.Audio(length: 600), etag: "\"b\"")
        try rig.load(episode, as: "l3")
        #expect(rig.state.local && rig.alerts.map(\.code) == ["audioChanged"])
    }

    // MARK: Sessions

    @Test(arguments: [[0x08], [], [0xff, 0xff] as [UInt8]])
    func `an invalid session is reset, with an alert`(bytes: [UInt8]) throws {
        try rig.start()
        try rig.load(rig.episode())
        rig.store("session", "current", bytes)
        try rig.start()
        #expect(rig.machine.state.status == .idle)
        #expect(rig.alerts.map(\.code) == ["sessionCorrupt"])
        #expect(rig.session == nil)
        try rig.start()
        #expect(rig.alerts.map(\.code) == ["sessionCorrupt"])
    }
}
