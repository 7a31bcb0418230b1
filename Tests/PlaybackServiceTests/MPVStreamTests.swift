import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// What the real engine makes of servers that do not do as they should.
@Suite(.timeLimit(.minutes(2)))
struct MPVStreamTests {
    private let harness = EngineHarness(.libmpv)

    @Test("A server that ignores Range is read up to the place where the audio starts", arguments: [true, false])
    func ignoresRange(announcesLength: Bool) async throws {
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
}
