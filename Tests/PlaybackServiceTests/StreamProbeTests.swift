import PodcastModel
import TestSupport
import Testing

@testable import PlaybackService

/// Tests probes of real servers.
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

    @Test func `audio is identified by its ETag, refusals by their status`() async throws {
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

    @Test(arguments: ["/circle.wav", "file:///etc/passwd"])
    func `a redirect loop, or a redirect to a file, isn’t retried`(target: String) async throws {
        try await HTTPTestServer.with { server in
            server.route("/circle.wav", .redirect(to: target, status: 302))
            let answer = await answer(to: server.url("/circle.wav"))
            guard case .unanswered(let reason?) = answer else { return _ = Issue.record("\(answer)") }
            #expect(!reason.retry && reason.known == .streamFailed && reason.message.contains("redirects"))
        }
    }

    @Test(
        arguments: [
            ("text/html; charset=utf-8", .webPage), ("audio/x-mpegurl", .playlist),
            ("application/vnd.apple.mpegURL", .playlist), ("audio/x-scpls", .playlist), ("application/json", .json),
        ] as [(String, OtherContent)])
    func `the failure names data that a server sends instead of audio`(type: String, content: OtherContent)
        async throws
    {
        try await HTTPTestServer.with { server in
            server.route("/a.mp3", HTTPTestResponse(headers: [("Content-Type", type)], body: .bytes([60, 61, 62])))
            let answer = await answer(to: server.url("/a.mp3"))
            guard case .notAudio(let reason) = answer else { return _ = Issue.record("\(answer)") }
            #expect(!reason.retry)
            #expect(reason == content.refusal(from: WebAddress(server.url("/"))?.host ?? "", .decoderFailed))
        }
    }

    @Test(arguments: [true, false])
    func `the failure says that a file is empty, with or without support for ranges`(acceptsRanges: Bool) async throws {
        try await HTTPTestServer.with { server in
            var empty = HTTPTestResponse.audio([], type: "audio/mpeg")
            empty.acceptsRanges = acceptsRanges
            server.route("/a.mp3", empty)
            let answer = await answer(to: server.url("/a.mp3"))
            guard case .notAudio(let reason) = answer else { return _ = Issue.record("\(answer)") }
            #expect(reason.known == .decoderFailed && !reason.retry && reason.message.contains("empty file"))
        }
    }

    @Test func `a closed connection or an unreachable server is reported as the reason`() async throws {
        let away = try await HTTPTestServer.with { server in
            var closing = HTTPTestResponse.audio(Tone.wav(seconds: 1), type: "audio/wav")
            closing.fault = .close(afterBytes: -1)
            server.route("/closes.wav", closing)
            let answer = await answer(to: server.url("/closes.wav"))
            if case .unanswered(let reason?) = answer {
                #expect(reason.known == .streamFailed && reason.retry && reason.message.contains("127.0.0.1"))
            } else {
                Issue.record("\(answer)")
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
