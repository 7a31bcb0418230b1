import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests libmpv with the real clock, broken files and broken servers.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct MPVEngineTests {
    private let folder: TemporaryFolder
    private let harness = EngineHarness(.libmpv)

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ source: AudioSource, speed: Double = 1, at start: Double = 0) throws {
        let speed = try #require(PlaybackSpeed(factor: speed))
        harness.engine.perform(
            .open(EngineLoad(id: .random(), source: source, start: try PlaybackPosition(start), speed: speed)))
    }

    @Test(arguments: [0.5, 1, 3.5])
    func `at every speed the position follows the clock`(speed: Double) async throws {
        let source = AudioSource.file(path: try folder.file("tone.wav", Tone.wav(seconds: 30)))
        let factor = try #require(PlaybackSpeed(factor: speed))
        try await EngineHarness.measure { harness in
            harness.engine.perform(.open(EngineLoad(id: .random(), source: source, speed: factor)))
            let first = try await harness.progress { $0.running && $0.position.seconds > 0.2 }
            let last = try await harness.progress { $0.position.seconds > first.position.seconds + 1.5 * speed }
            let elapsed = last.at.since(first.at) / .seconds(1)
            let rate = (last.position.seconds - first.position.seconds) / elapsed
            // The null output’s own clock is a per cent slow.
            return abs(rate / speed - 1) < 0.08 ? [] : ["\(rate) at speed \(speed)"]
        }
    }

    @Test func `without any output playback continues silently, and is never reported as audible`()
        async throws
    {
        let harness = EngineHarness { observer in (MPVEngine(audioOutputs: "alsa", observer: observer), {}) }
        let source = AudioSource.file(path: try folder.file("tone.wav", Tone.wav(seconds: 20)))
        harness.engine.perform(
            .open(EngineLoad(id: .random(), source: source, start: .zero, output: "alsa/no-such-device")))
        _ = try await harness.progress(\.running)
        let silence: @Sendable (EngineEvent) -> Bool? = {
            if case .outputs(let outputs) = $0 { outputs.silent } else { nil }
        }
        // The report about the output may arrive before or after it runs.
        if !harness.events.contains(where: { silence($0) != nil }) { _ = try await harness.next(silence) }
        let silent = harness.events.compactMap(silence)
        #expect(!silent.isEmpty && !silent.contains(false))
        await harness.engine.close()
    }

    @Test func `a change of speed and volume doesn’t interrupt playback`() async throws {
        try open(.file(path: try folder.file("tone.wav", Tone.wav(seconds: 20))))
        let first = try await harness.progress(\.running)
        harness.engine.perform(.setSpeed(try #require(PlaybackSpeed(factor: 3))))
        harness.engine.perform(.setVolume(try #require(Volume(percent: 10))))
        _ = try await harness.progress { $0.position.seconds > first.position.seconds + 3 }
        #expect(!harness.events.contains { if case .failed = $0 { true } else { false } })
        await harness.engine.close()
    }

    @Test func `an MP3 that declares no length plays, and its length is an estimate`() async throws {
        try open(.file(path: try folder.file("tone.mp3", Tone.mp3(seconds: 4))), at: 3)
        let duration = try await harness.opened()
        #expect(abs((duration?.duration.seconds ?? 0) - 4) < 0.2)
        let end = try await harness.ended()
        #expect(end.measured?.source == .estimated)
        #expect(end.isConfirmed(announced: nil))
        await harness.engine.close()
    }

    @Test func `playback that starts beyond the end ends at once, and resumes after a seek`() async throws {
        try open(.file(path: try folder.file("tone.wav", Tone.wav(seconds: 20))), at: 100)
        #expect(try await harness.opened()?.source == .declared)
        #expect(try await harness.ended().position.seconds < 101)
        harness.engine.perform(.seek(try PlaybackPosition(18), serial: 9))
        let progress = try await harness.progress { $0.running && $0.serial == 9 }
        #expect(abs(progress.position.seconds - 18) < 1)
        #expect(try await harness.ended().isConfirmed(announced: nil))
        await harness.engine.close()
    }

    @Test func `a position beyond a wrongly declared end is played`() async throws {
        try open(.file(path: try folder.file("short.mp3", Tone.mp3(seconds: 40, declared: 10))), at: 30)
        let length = try #require(try await harness.opened())
        // libmpv may have read beyond the declared length already, and then reports the read part as the length.
        #expect(length.source == .declared)
        #expect(length.duration.seconds > 9)
        let progress = try await harness.progress { $0.running && $0.position.seconds > 30.5 }
        #expect(progress.position.seconds < 32)
        await harness.engine.close()
    }

    @Test(arguments: ["garbage", "empty", "folder"])
    func `a file without audio fails with a message that names it, and so does a folder`(_ kind: String) async throws {
        var generator = SystemRandomNumberGenerator()
        let noise = (0..<100_000).map { _ in UInt8.random(in: 0...0x7f, using: &generator) }
        let path = kind == "folder" ? folder.path : try folder.file("x.mp3", kind == "empty" ? [] : noise)
        try open(.file(path: path))
        let failure = try await harness.failed()
        #expect(failure.known == .decoderFailed)
        #expect(failure.message.contains(path))
        await harness.engine.close()
    }

    @Test(arguments: [404, 410, 503])
    func `a refused request fails with a failure that may be retried`(code: Int) async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            server.route("/a.mp3", .status(code))
            harness.engine.perform(.open(EngineLoad(id: .random(), source: .web(url: server.url("/a.mp3")))))
            let failure = try await harness.failed()
            #expect(failure.known == .streamFailed && failure.retry)
            await harness.engine.close()
        }
    }

    @Test func `the failure of an unreachable server names its address`() async throws {
        try open(.web(url: "http://127.0.0.1:9/a.mp3"))
        let failure = try await harness.failed()
        #expect(failure.known == .streamFailed && failure.retry && failure.message.contains("127.0.0.1:9"))
        await harness.engine.close()
    }

    @Test func `audio plays and seeks over HTTP`() async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            server.route("/a.wav", .audio(Tone.wav(seconds: 60), type: "audio/wav"))
            harness.engine.perform(.open(EngineLoad(id: .random(), source: .web(url: server.url("/a.wav")))))
            _ = try await harness.progress(\.running)
            harness.engine.perform(.seek(try PlaybackPosition(58.5), serial: 1))
            _ = try await harness.progress { $0.serial == 1 && $0.running && $0.position.seconds >= 58.4 }
            let end = try await harness.ended()
            #expect(end.isConfirmed(announced: nil))
            await harness.engine.close()
        }
    }

    @Test(arguments: [true, false])
    func `the end of a cut stream isn’t confirmed as the episode’s end`(announcesLength: Bool) async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            let bytes = Tone.wav(seconds: 60)
            var response = HTTPTestResponse.audio(bytes, type: "audio/wav").with(.close(afterBytes: 40_000))
            response.acceptsRanges = false
            response.announcesLength = announcesLength
            server.route("/a.wav", response)
            let load = EngineLoad(
                id: .random(), source: .web(url: server.url("/a.wav")), speed: try #require(PlaybackSpeed(factor: 3.5)))
            harness.engine.perform(.open(load))
            let end = try await harness.ended()
            #expect(abs(end.position.seconds - 2.5) < 0.5)
            #expect(!end.isConfirmed(announced: EpisodeDuration(seconds: 60)))
            await harness.engine.close()
        }
    }

    @Test func `a cut stream resumes if the server supports ranges`() async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            let whole = HTTPTestResponse.audio(Tone.wav(seconds: 6), type: "audio/wav")
            server.route("/a.wav", whole.with(.close(afterBytes: 40_000)), whole)
            let load = EngineLoad(
                id: .random(), source: .web(url: server.url("/a.wav")), speed: try #require(PlaybackSpeed(factor: 3)))
            harness.engine.perform(.open(load))
            let end = try await harness.ended()
            #expect(abs(end.position.seconds - 6) < 0.2)
            #expect(end.isConfirmed(announced: nil) && !end.cut)
            await harness.engine.close()
        }
    }

    @Test func `engines can be opened and closed many times`() async throws {
        let path = try folder.file("tone.wav", Tone.wav(seconds: 2))
        for _ in 0..<20 {
            let harness = EngineHarness(.libmpv)
            harness.engine.perform(.open(EngineLoad(id: .random(), source: .file(path: path))))
            _ = try await harness.opened()
            await harness.engine.close()
        }
    }
}

struct MPVLogReaderTests {
    @Test func `cuts and estimates are recognised in the log, and other lines are ignored`() {
        var reader = MPVLogReader()
        reader.read(prefix: "ffmpeg/audio", text: "mp3: Header missing\n")
        #expect(!reader.cut && !reader.estimated)
        reader.read(prefix: "ffmpeg", text: "http: Stream ends prematurely at 32197, should be 96592\n")
        reader.read(prefix: "ffmpeg/demuxer", text: "mp3: Estimating duration from bitrate, this may be inaccurate\n")
        #expect(reader.cut && reader.estimated)
    }

    @Test(arguments: [
        (
            "tcp: Failed to resolve hostname no.example?timeout=3: Name or service not known\n",
            Failure.unknownHost("no.example")
        ),
        (
            "tcp: Connection to tcp://a.example:80?timeout=3 failed: Connection refused\n",
            Failure.unreachableHost("a.example", "Connection refused")
        ),
    ])
    func `a lost connection has the same message as in downloads and feeds`(line: String, message: String) {
        var reader = MPVLogReader()
        reader.read(prefix: "ffmpeg", text: line)
        #expect(reader.failure(opening: .web(url: "http://a.example/a.mp3")).message == message)
    }
}

struct AudioSourceTests {
    @Test(arguments: [
        ("/a/b.mp3", AudioSource.file(path: "/a/b.mp3")), ("file:///a%20b/%C3%A4.mp3", .file(path: "/a b/ä.mp3")),
        ("file://localhost/a.mp3", .file(path: "/a.mp3")), ("FILE:/a.mp3", .file(path: "/a.mp3")),
        ("https://x/y?z", .web(url: "https://x/y?z")), ("HTTP://x", .web(url: "http://x/")),
    ])
    func `files and web addresses are distinguished`(address: String, source: AudioSource) throws {
        #expect(try AudioSource(enclosure: address) == source)
    }

    @Test(arguments: [
        "", "a.mp3", "file:a.mp3", "file://host/a.mp3", "file:///a%00b", "file:///%ff",
        "http://a\nb",
        "http://]/a.mp3", "http://[::", "http://a b/", "http://%00/", "http:///a.mp3", "pcast:file:///etc/passwd",
        "memory://x", "fd://0", "data:audio/mpeg;base64,AA",
    ])
    func `sources that aren’t files or web addresses are refused`(address: String) {
        #expect(throws: Failure.self) { try AudioSource(enclosure: address) }
    }
}
