import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// What real servers say to the question beside the engine.
@Suite(.timeLimit(.minutes(1)))
struct StreamProbeTests {
    private func answer(to url: String) async -> ProbeAnswer {
        let probe = StreamProbe()
        let answer = await withCheckedContinuation { continuation in
            probe.ask(url) { continuation.resume(returning: $0) }
        }
        await probe.shutdown()
        return answer
    }

    @Test("Audio is known by its ETag, refusals by their status")
    func answers() async throws {
        try await HTTPTestServer.with { server in
            var audio = HTTPTestResponse.audio(Tone.wav(seconds: 1), type: "audio/wav")
            audio.etag = "\"one\""
            server.route("/a.wav", audio)
            server.route("/gone.wav", .status(404))
            server.route("/busy.wav", .status(503))
            #expect(await answer(to: server.url("/a.wav")) == .audio(AudioTag(etag: "\"one\"", size: 0)))
            #expect(await answer(to: server.url("/gone.wav")) == .refused(404))
            #expect(await answer(to: server.url("/busy.wav")) == .refused(503))
        }
    }

    @Test("A server that closes, is not there, redirects in circles or sends a web page gives a reason for no answer")
    func givesReasons() async throws {
        let away = try await HTTPTestServer.with { server in
            var closing = HTTPTestResponse.audio(Tone.wav(seconds: 1), type: "audio/wav")
            closing.fault = .close(afterBytes: -1)
            server.route("/closes.wav", closing)
            server.route("/circle.wav", .redirect(to: "/circle.wav", status: 302))
            server.route("/page.wav", HTTPTestResponse(headers: [("Content-Type", "text/html")], body: .bytes([60])))
            for path in ["/closes.wav", "/circle.wav", "/page.wav"] {
                let answer = await answer(to: server.url(path))
                guard case .unanswered(let reason?) = answer else {
                    Issue.record("\(path): \(answer)")
                    continue
                }
                #expect(reason.known == .streamFailed && reason.retry && reason.message.contains("127.0.0.1"))
            }
            return server.url("/a.wav")
        }
        guard case .unanswered(let reason?) = await answer(to: away) else {
            Issue.record("a server that is not there has answered")
            return
        }
        #expect(reason.retry)
    }
}
