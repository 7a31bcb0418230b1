import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests libmpv with servers that violate HTTP.
@Suite(.timeLimit(.minutes(2)))
struct MPVStreamTests {
    private let harness = EngineHarness(.libmpv)

    @Test(arguments: [true, false])
    func `a server that ignores Range is read up to the requested position`(announcesLength: Bool)
        async throws
    {
        let harness = harness
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")
            response.acceptsRanges = false
            response.announcesLength = announcesLength
            server.route("/a.wav", response)
            let load = EngineLoad(
                id: .random(), source: .web(url: server.url("/a.wav")), start: try PlaybackPosition(30))
            harness.engine.perform(.open(load))
            let progress = try await harness.progress { $0.running }
            #expect(abs(progress.position.seconds - 30) < 1)
            harness.engine.perform(.seek(try PlaybackPosition(10), serial: 1))
            let back = try await harness.progress { $0.serial == 1 && $0.running }
            #expect(abs(back.position.seconds - 10) < 1)
            harness.engine.perform(.seek(try PlaybackPosition(50), serial: 2))
            let forth = try await harness.progress { $0.serial == 2 && $0.running }
            #expect(abs(forth.position.seconds - 50) < 1)
            await harness.engine.close()
        }
    }

    // A late log line about the seek back counted for the reopened stream, which then restarted from the beginning.
    @Test func `a server that ignores Range is read up to the position of every seek back`() async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")
            response.acceptsRanges = false
            for path in ["/a.wav", "/b.wav"] { server.route(path, response) }
            for round in UInt64(0)..<8 {
                let (path, start) = round.isMultiple(of: 2) ? ("/a.wav", 20.0) : ("/b.wav", 30.0)
                harness.engine.perform(
                    .open(
                        EngineLoad(
                            id: .random(), source: .web(url: server.url(path)), start: try PlaybackPosition(start),
                            serial: 3 * round + 1)))
                let opened = try await harness.progress { $0.serial == 3 * round + 1 && $0.running }
                #expect(abs(opened.position.seconds - start) < 1)
                for (serial, position) in [(3 * round + 2, 10.0), (3 * round + 3, 5.0)] {
                    harness.engine.perform(.seek(try PlaybackPosition(position), serial: serial))
                    let back = try await harness.progress { $0.serial == serial && $0.running }
                    #expect(abs(back.position.seconds - position) < 1)
                }
            }
            await harness.engine.close()
        }
    }

    // After a seek to the beginning, libmpv continued with the next unread bytes and reported the beginning’s position.
    @Test func `a server that ignores Range is read once if playback starts at the beginning`()
        async throws
    {
        let harness = harness
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")
            response.acceptsRanges = false
            server.route("/a.wav", response)
            let start = PlaybackPosition.zero
            harness.engine.perform(
                .open(EngineLoad(id: .random(), source: .web(url: server.url("/a.wav")), start: start)))
            let progress = try await harness.progress { $0.running && $0.position.seconds > 1 }
            #expect(progress.position.seconds < 3)
            #expect(server.requests(for: "/a.wav").count == 1)
            await harness.engine.close()
        }
    }

    // libmpv continued after the part that it had read to open the stream, and reported the requested position.
    @Test(arguments: [0.5, 2, 4])
    func `a start position that needs a seek back restarts the episode, without a gap`(_ start: Double)
        async throws
    {
        let harness = harness
        try await HTTPTestServer.with { server in
            var response = HTTPTestResponse.audio(Tone.wav(seconds: 12), type: "audio/wav")
            response.acceptsRanges = false
            server.route("/a.wav", response)
            harness.engine.perform(
                .open(
                    EngineLoad(
                        id: .random(), source: .web(url: server.url("/a.wav")), start: try PlaybackPosition(start),
                        speed: try #require(PlaybackSpeed(factor: 3.5)))))
            let first = try await harness.progress(\.running)
            #expect(first.position.seconds < start + 0.5)
            // Audio that was skipped is missing at the end.
            let end = try await harness.ended()
            #expect(abs(end.position.seconds - 12) < 0.5)
            await harness.engine.close()
        }
    }

    @Test(arguments: [true, false])
    func `a position far into an MP3 stream is requested by a Range header`(atStart: Bool) async throws {
        let harness = harness
        try await HTTPTestServer.with { server in
            let bytes = Tone.mp3(seconds: 1_800)
            var response = HTTPTestResponse.audio(bytes, type: "audio/mpeg")
            response.acceptsRanges = true
            // The server sends slowly: the whole file would take minutes.
            (response.chunkSize, response.chunkInterval) = (8_192, 100)
            server.route("/a.mp3", response)
            let start = try PlaybackPosition(atStart ? 1_500 : 0)
            let load = EngineLoad(id: .random(), source: .web(url: server.url("/a.mp3")), start: start)
            harness.engine.perform(.open(load))
            let first = try await harness.progress { $0.running }
            #expect(abs(first.position.seconds - start.seconds) < 2)
            if !atStart {
                harness.engine.perform(.seek(try PlaybackPosition(1_500), serial: 1))
                let far = try await harness.progress { $0.serial == 1 && $0.running }
                #expect(abs(far.position.seconds - 1_500) < 2)
            }
            let places = server.requests(for: "/a.mp3").compactMap { request in
                request.header("Range").flatMap { Int($0.drop { !$0.isNumber }.prefix { $0.isNumber }) }
            }
            #expect(places.contains { $0 > bytes.count / 4 * 3 }, "\(places)")
            await harness.engine.close()
        }
    }
}
