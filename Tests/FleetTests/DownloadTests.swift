import BusKit
import FoundationEssentials
import LibC
import LockstepClient
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests downloads over HTTP from correct and faulty servers, and their playback.
@Suite(.timeLimit(.minutes(5)))
struct DownloadTests {
    private static let audio = Tone.wav(seconds: 20)

    private static func make(_ change: (inout HTTPTestResponse) -> Void = { _ in }) -> HTTPTestResponse {
        var response = HTTPTestResponse.audio(audio, type: "audio/wav")
        response.etag = "\"one\""
        change(&response)
        return response
    }

    private func run(
        announcing bytes: Int = 0,
        _ body: @escaping @Sendable (WholeFleet, HTTPTestServer) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            try await WholeFleet.with([.persistence, .playback, .queue, .downloads], realEngine: true) { fleet in
                try await fleet.fillLibrary(episodes: 1, length: 20, bytes: bytes) { server.url("/\($0).wav") }
                try await body(fleet, server)
            }
        }
    }

    private func download(
        _ fleet: WholeFleet, until what: String, _ condition: @escaping @Sendable (WireDownload) -> Bool
    ) async throws -> WireDownload {
        let view = try await fleet.watcher.until(what) { $0.downloads["e1"].map(condition) ?? false }
        return try #require(view.downloads["e1"])
    }

    /// The finished files in the podcast’s folder.
    private func files(_ fleet: WholeFleet) -> [String] {
        let folder = fleet.bus.home.downloadDirectory + "/Show"
        return (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
    }

    /// Waits until part of a file has been received, by polling the size of the partial file.
    private func untilPartlyReceived(_ fleet: WholeFleet) async throws {
        let folder = fleet.bus.home.downloadDirectory + "/.partial"
        let deadline = ContinuousClock.now.advanced(by: .seconds(60))
        var status = stat()
        while ContinuousClock.now < deadline {
            let parts = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            if parts.contains(where: { stat("\(folder)/\($0)", &status) == 0 && status.st_size > 0 }) { return }
            try await ContinuousClock().sleep(for: .milliseconds(10))
        }
        throw UnexpectedState(description: "no part of the file arrived within a minute")
    }

    /// Reads a file’s content.
    private func content(_ path: String) -> [UInt8] {
        guard let file = fopen(path, "re") else { return [] }
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: Self.audio.count * 2)
        let count = fread(&bytes, 1, bytes.count, file)
        return Array(bytes.prefix(count))
    }

    @Test func `a downloaded episode plays from its file, then from the stream when that is deleted`() async throws {
        try await run { fleet, server in
            server.route("/1.wav", Self.make())
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            let download = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
            #expect(content(download.path) == Self.audio)
            #expect(try await fleet.database.episodes(ids: ["e1"]).first?.download == download)
            try await fleet.queue { $0.play.episode = "e1" }
            try await fleet.watcher.until("the file plays") {
                $0.player?.status == .playing && $0.player?.local == true
            }
            try await fleet.player { $0.seek.position = 10 }
            try await fleet.player { $0.stop = WireStopPlayback() }
            unlink(download.path)
            try await fleet.player { $0.setPaused.paused = false }
            let view = try await fleet.watcher.until("the stream plays") {
                $0.player?.status == .playing && $0.player?.local == false && !$0.alerts.isEmpty
            }
            #expect(view.alertsInOrder.map(\.code) == ["playsStream"])
            #expect(abs((view.player?.anchor.position ?? 0) - 10) < 2)
            try await fleet.watcher.until("the download is no longer published") { $0.downloads.isEmpty }
        }
    }

    /// A server’s first response and the expected outcome.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: HTTPTestResponse
        /// The expected failure; nil if the download is retried and completes.
        let code: FailureCode?
    }

    static let cases = [
        Case(testDescription: "a cut", response: make { $0.fault = .close(afterBytes: 100_000) }, code: nil),
        Case(
            testDescription: "a reset before the answer", response: make { $0.fault = .close(afterBytes: -1) },
            code: nil),
        Case(testDescription: "a reset", response: make { $0.fault = .reset(afterBytes: 100_000) }, code: nil),
        Case(testDescription: "a stall", response: make { $0.fault = .stall(afterBytes: 100_000) }, code: nil),
        Case(testDescription: "503", response: .status(503, headers: [("Retry-After", "1")]), code: nil),
        Case(
            testDescription: "a length that is too long",
            response: make {
                $0.claimedLength = audio.count + 1_000
                $0.fault = .cut(atByte: audio.count)
            }, code: nil),
        Case(testDescription: "404", response: .status(404), code: .episodeUnavailable),
        Case(testDescription: "410", response: .status(410), code: .episodeUnavailable),
        Case(testDescription: "401", response: .status(401), code: .streamFailed),
        Case(
            testDescription: "a redirect in a loop", response: .redirect(to: "/loop.wav", status: 302),
            code: .streamFailed
        ),
        Case(
            testDescription: "a page with an audio type",
            response: HTTPTestResponse(
                headers: [("Content-Type", "audio/mpeg")], body: .bytes(Array("\n <!DOCTYPE html><p>Log in".utf8))),
            code: .verificationFailed),
        Case(
            testDescription: "a playlist by its type",
            response: HTTPTestResponse(headers: [("Content-Type", "audio/x-scpls")], body: .bytes(audio)),
            code: .verificationFailed),
        Case(
            testDescription: "a playlist as text",
            response: HTTPTestResponse(
                headers: [("Content-Type", "text/plain")],
                body: .bytes(Array("#EXTM3U\n#EXT-X-VERSION:3\nhttps://a.example/1.ts\n".utf8))),
            code: .verificationFailed),
        Case(
            testDescription: "a page", response: HTTPTestResponse(headers: [("Content-Type", "text/html")]),
            code: .verificationFailed),
        Case(testDescription: "nothing", response: make { $0.body = .bytes([]) }, code: .verificationFailed),
    ]

    @Test(arguments: cases)
    func `a download from a bad server is retried until it is complete, or fails with the reason`(_ bad: Case)
        async throws
    {
        try await run { fleet, server in
            server.route("/loop.wav", .redirect(to: "/loop.wav", status: 302))
            server.route("/1.wav", bad.response, Self.make())
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            guard let code = bad.code else {
                let waiting = try await download(fleet, until: "it waits") { $0.state == .queued && $0.attempt == 1 }
                #expect(waiting.waitsFor.hasPrefix("attempt 2 of 4"))
                let whole = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
                #expect(content(whole.path) == Self.audio)
                return
            }
            let failed = try await download(fleet, until: "it has failed") { $0.state == .failed }
            #expect(failed.error.code == code.rawValue && !failed.error.message.isEmpty)
            let view = try await fleet.watcher.until("the alert is shown") { !$0.alerts.isEmpty }
            #expect(view.alertsInOrder.map(\.code) == ["downloadFailed"])
            #expect(files(fleet).isEmpty)
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            _ = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
        }
    }

    /// The size in the feed, and the number of bytes after which the connection ends; 0 if there is none.
    @Test(arguments: [(0, 0), (audio.count, 0), (audio.count, 100_000), (audio.count / 2, 0)])
    func `a connection that ends without an announced length is checked against the length in the feed`(
        announced: Int, cut: Int
    )
        async throws
    {
        try await run(announcing: announced) { fleet, server in
            let open = Self.make {
                $0.endsWithConnection = true
                $0.acceptsRanges = false
            }
            guard cut > 0 else {
                server.route("/1.wav", open)
                try await fleet.downloads { $0.add.episodes = ["e1"] }
                let done = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
                return #expect(content(done.path) == Self.audio)
            }
            server.route("/1.wav", open.with(.close(afterBytes: cut)), open)
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            let waiting = try await download(fleet, until: "it waits") { $0.attempt == 1 }
            #expect(waiting.state == .queued && waiting.waitsFor.contains("the feed announces \(announced)"))
            #expect(files(fleet).isEmpty)
            let done = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
            #expect(content(done.path) == Self.audio)
        }
    }

    /// The server’s response to the second range request.
    enum Second: CaseIterable { case continues, ignoresRange, hasChanged, refusesRange }

    @Test(arguments: Second.allCases)
    func `a paused download resumes at its offset, or from the start if the file on the server has changed`(
        _ second: Second
    )
        async throws
    {
        try await run { fleet, server in
            server.route("/1.wav", Self.make { $0.fault = .stall(afterBytes: 100_000) })
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            await server.received(1, at: "/1.wav")
            _ = try await download(fleet, until: "it comes") { $0.state == .downloading && $0.totalBytes > 0 }
            try await untilPartlyReceived(fleet)
            try await fleet.downloads { $0.pause.episodes = ["e1"] }
            let paused = try await download(fleet, until: "it is paused") {
                $0.state == .paused && $0.receivedBytes > 0
            }
            var whole = Self.audio
            switch second {
            case .continues: server.route("/1.wav", Self.make())
            case .ignoresRange: server.route("/1.wav", Self.make { $0.acceptsRanges = false })
            case .refusesRange: server.route("/1.wav", .status(416), Self.make())
            case .hasChanged:
                whole = Tone.wav(seconds: 15)
                server.route(
                    "/1.wav",
                    Self.make {
                        $0.body = .bytes(Tone.wav(seconds: 15))
                        $0.etag = "\"two\""
                    })
            }
            let before = server.requests(for: "/1.wav").count
            try await fleet.downloads { $0.resume.episodes = ["e1"] }
            let done = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
            #expect(content(done.path) == whole)
            let request = try #require(server.requests(for: "/1.wav").dropFirst(before).first)
            // On a busy machine the download may continue until it pauses, so the file may be longer than reported.
            let offset = request.header("Range").flatMap { UInt64($0.filter(\.isNumber)) } ?? 0
            #expect(offset >= paused.receivedBytes && offset.isMultiple(of: 100_000))
            #expect(request.header("If-Range") == "\"one\"")
        }
    }

    @Test(arguments: 0..<6)
    func `a file is completed despite repeated crashes, and a partial file is never treated as finished`(
        seed: UInt64
    ) async throws {
        try await run { fleet, server in
            var random = SeededGenerator(seed: seed)
            server.route(
                "/1.wav",
                Self.make {
                    $0.chunkSize = 16_384
                    $0.chunkInterval = 20
                })
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            for _ in 0..<5 {
                let count = server.requests(for: "/1.wav").count
                await server.received(max(1, count), at: "/1.wav")
                _ = try await download(fleet, until: "it comes or is there") {
                    $0.state == .downloading && $0.totalBytes > 0 || $0.state == .downloaded
                }
                try await Self.yield(times: Int.random(in: 0...300, using: &random))
                try await fleet.restart(.downloads)
                try await fleet.untilReady([.downloads])
            }
            let done = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
            #expect(content(done.path) == Self.audio)
        }
    }

    /// Yields to other tasks `count` times, independently of the time.
    private static func yield(times count: Int) async throws {
        for _ in 0..<count { await Task.yield() }
    }

    @Test func `a bandwidth limit that delays bytes beyond the idle timeout doesn’t fail the download`()
        async throws
    {
        try await run { fleet, server in
            server.route("/1.wav", Self.make())
            try await fleet.downloads {
                $0.setSetting.key = "bandwidthLimit"
                $0.setSetting.value = "20"
            }
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            let done = try await download(fleet, until: "it is there, or has failed") {
                $0.state == .downloaded || $0.attempt > 0
            }
            #expect(done.state == .downloaded && content(done.path) == Self.audio)
        }
    }

    @Test func `progress is published as telemetry, and a limit reduces the rate`() async throws {
        try await run { fleet, server in
            server.route("/1.wav", Self.make { $0.chunkSize = 8_192 })
            try await fleet.downloads {
                $0.setSetting.key = "bandwidthLimit"
                $0.setSetting.value = "160"
            }
            let began = SystemClocks.monotonic()
            try await fleet.downloads { $0.add.episodes = ["e1"] }
            _ = try await download(fleet, until: "it is complete") { $0.state == .downloaded }
            // The limit is 160 kB/s for 320 kB; the first second’s share is available at once.
            #expect(SystemClocks.monotonic().since(began) > .milliseconds(900))
        }
    }
}
