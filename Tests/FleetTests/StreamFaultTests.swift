import BusKit
import EngineDouble
import LockstepClient
import NIOConcurrencyHelpers
import PlaybackService
import PodcastModel
import TestSupport
import Testing
import WireMessages

/// Tests the real engine in a complete fleet against faulty servers; each fault ends with its documented outcome.
@Suite(.timeLimit(.minutes(5)))
struct StreamFaultTests {
    private static let audio = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")

    /// A server’s response and the expected outcome.
    struct Fault: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let response: HTTPTestResponse
        /// The code of the final failure.
        let code: FailureCode
        /// Whether the stream is retried before the failure.
        let isRetried: Bool
        /// The position at which playback stops, in seconds.
        var position = 0.0
        /// The response to a retry.
        let later: HTTPTestResponse

        init(
            _ description: String, _ response: HTTPTestResponse, _ code: FailureCode, isRetried: Bool, at: Double = 0,
            later: HTTPTestResponse? = nil
        ) {
            (testDescription, self.response, self.code) = (description, response, code)
            (self.isRetried, position, self.later) = (isRetried, at, later ?? response)
        }
    }

    private static func make(_ change: (inout HTTPTestResponse) -> Void) -> HTTPTestResponse {
        var response = audio
        change(&response)
        return response
    }

    static let faults = [
        Fault("404", .status(404), .episodeUnavailable, isRetried: false),
        Fault("410", .status(410), .episodeUnavailable, isRetried: false),
        Fault("401", .status(401), .streamFailed, isRetried: false),
        Fault("503", .status(503, headers: [("Retry-After", "1")]), .streamFailed, isRetried: true),
        Fault("a redirect in a loop", .redirect(to: "/1.wav", status: 302), .streamFailed, isRetried: false),
        Fault("no answer but an end", audio.with(.close(afterBytes: -1)), .streamFailed, isRetried: true),
        Fault("a web page with an audio type", page, .decoderFailed, isRetried: false),
        Fault("nothing at all", empty, .decoderFailed, isRetried: false),
        Fault("a cut after 10 s", audio.with(.cut(atByte: 160_044)), .endedEarly, isRetried: true, at: 10),
        Fault(
            "a cut after 10 s, no Range",
            make {
                $0.acceptsRanges = false
                $0.fault = .cut(atByte: 160_044)
            }, .endedEarly, isRetried: true, at: 10),
    ]

    private static let empty = make {
        $0.body = .bytes([])
        $0.acceptsRanges = false
    }

    private static let page: HTTPTestResponse = {
        let text = "<!DOCTYPE html><html><body><p>Please log in to this network.</p></body></html>"
        return HTTPTestResponse(headers: [("Content-Type", "audio/mpeg")], body: .bytes(Array(text.utf8)))
    }()

    @Test(arguments: faults)
    func `a stream whose server keeps failing ends in a failure that keeps the position`(_ fault: Fault) async throws {
        try await play { fleet, server, states in
            server.route("/1.wav", fault.response)
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            let view = try await fleet.watcher.until("the episode has failed") {
                $0.player?.status == .failed && !$0.alerts.isEmpty
            }
            let player = try #require(view.player)
            #expect(player.error.code == fault.code.rawValue, "\(player.error.message)")
            #expect(abs(player.anchor.position - fault.position) < 0.6)
            #expect(view.alertsInOrder.map(\.actions) == [["retry", "skip", "dismiss"]])
            #expect(view.mainQueue?.entries.count == 1)
            let attempts = states.withLockedValue { $0 }.filter(\.hasRetry)
            #expect((attempts.map(\.retry.attempt).max() ?? 0) == (fault.isRetried ? 3 : 0))
            #expect(attempts.allSatisfy { $0.status == .loading && $0.retry.of == 3 })
            let stored = try await fleet.database.episodes(ids: [WholeFleet.episode(1)])
            #expect(stored.first?.state.played == false)
        }
    }

    @Test(arguments: [2, 3, 4, 5, 8, 9])
    func `a stream whose server recovers resumes where it ended`(_ index: Int) async throws {
        let fault = Self.faults[index]
        try await play { fleet, server, states in
            server.route("/1.wav", fault.response)
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            if fault.isRetried {
                try await fleet.watcher.until("the stream is retried") { $0.player?.retry.attempt == 2 }
                server.route("/1.wav", Self.audio)
            } else {
                let view = try await fleet.watcher.until("the episode has failed") { !$0.alerts.isEmpty }
                server.route("/1.wav", Self.audio)
                try await fleet.player {
                    $0.answerAlert.alert = view.alertsInOrder.first?.id ?? ""
                    $0.answerAlert.action = "retry"
                }
            }
            let view = try await fleet.watcher.until("the episode plays") {
                $0.player?.status == .playing && $0.player?.anchor.running == true && $0.alerts.isEmpty
                    && $0.player?.hasRetry == false
            }
            // A truncated stream may lose its last bytes: playback stops at or before the point of truncation.
            let broken = states.withLockedValue { $0 }.last { $0.hasRetry || $0.status == .failed }
            let position = try #require(broken?.anchor.position)
            #expect(position <= fault.position + 0.6)
            #expect(abs((view.player?.anchor.position ?? -1) - position) < 2)
        }
    }

    @Test(arguments: [-1, 4_000, 320_044])
    func `a connection that stalls is closed, and the stream resumes where it stopped`(afterBytes: Int) async throws {
        try await play(stall: .milliseconds(1_500), opening: .seconds(3)) { fleet, server, states in
            server.route("/1.wav", Self.audio.with(.stall(afterBytes: afterBytes)))
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            try await fleet.watcher.until("the stream is retried") { $0.player?.hasRetry == true }
            server.route("/1.wav", Self.audio)
            let view = try await fleet.watcher.until("playback continues") {
                $0.player?.status == .playing && $0.player?.anchor.running == true
            }
            let heard = states.withLockedValue { $0 }.filter { $0.hasRetry }.map(\.anchor.position).min() ?? -1
            #expect(abs((view.player?.anchor.position ?? 0) - heard) < 2)
            #expect(heard == 0 || heard > 10)
        }
    }

    @Test func `playback waits for a server that sends 1 kB/s`() async throws {
        try await play { fleet, server, states in
            let slow = HTTPTestResponse(
                headers: [("Content-Type", "audio/mpeg")], body: .bytes(Tone.slowMP3(seconds: 30)),
                acceptsRanges: true, chunkSize: 250, chunkInterval: 250)
            server.route("/1.wav", slow)
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            try await fleet.watcher.until("the episode plays") {
                $0.player?.status == .playing && ($0.player?.anchor.running ?? false)
            }
            #expect(!states.withLockedValue { $0 }.contains { $0.hasRetry || $0.status == .failed })
        }
    }

    @Test func `a changed ETag is reported and the position is kept`() async throws {
        try await play { fleet, server, states in
            server.route("/1.wav", Self.make { $0.etag = "\"one\"" })
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            try await fleet.watcher.until("the episode plays") { $0.player?.status == .playing }
            try await fleet.player { $0.seek.position = 30 }
            try await fleet.watcher.until("its ETag is stored", episode: WholeFleet.episode(1)) {
                $0.audioTag == "etag:\"one\""
            }
            // Storing the tag may take until the next periodic save, while playback continues.
            let stopped = try await fleet.player { $0.stop = WireStopPlayback() }.state
            server.route("/1.wav", Self.make { $0.etag = "\"two\"" })
            try await fleet.player { $0.setPaused.paused = false }
            let view = try await fleet.watcher.until("the change is reported") {
                !$0.alerts.isEmpty && $0.player?.status == .playing
            }
            #expect(view.alertsInOrder.map(\.code) == ["audioChanged"])
            // The first position after the resumption: playback continues while the server is probed.
            let resumed =
                states.withLockedValue { $0.first { $0.revision > stopped.revision && $0.anchor.running } }
                ?? view.player
            #expect(stopped.anchor.position > 29)
            #expect(abs((resumed?.anchor.position ?? 0) - stopped.anchor.position) < 3)
        }
    }

    @Test
    func `a stream whose server is unreachable for a while resumes where it ended`()
        async throws
    {
        let wait = Duration.milliseconds(200)
        try await play(reconnect: [wait], comeback: [wait]) { fleet, server, states in
            server.route("/1.wav", Self.audio.with(.cut(atByte: 160_044)))
            try await fleet.queue { $0.play.episode = WholeFleet.episode(1) }
            try await fleet.watcher.until("the episode plays") { $0.player?.anchor.running == true }
            await server.stop()
            let failed = try await fleet.watcher.until("the episode has failed") {
                $0.player?.status == .failed && !$0.alerts.isEmpty
            }
            #expect(failed.player?.error.code == "streamFailed", "\(failed.player?.error.message ?? "")")
            let position = try #require(failed.player?.anchor.position)
            let back = try await HTTPTestServer.start(port: server.port)
            back.route("/1.wav", Self.audio)
            let view: FleetView
            do {
                view = try await fleet.watcher.until("playback continues") {
                    $0.player?.status == .playing && $0.player?.anchor.running == true && $0.alerts.isEmpty
                }
            } catch {
                await back.stop()
                throw error
            }
            await back.stop()
            #expect(abs((view.player?.anchor.position ?? -1) - position) < 2)
        }
    }

    // MARK: Next entries

    private static let stalling = Fault(
        "a stall after 20 s", audio.with(.stall(afterBytes: 320_044)), .streamFailed, isRetried: true, at: 20,
        later: audio.with(.stall(afterBytes: -1)))

    /// The faults that prevent the opening of a stream, and the faults that interrupt playback.
    static let faultsBefore = [faults[0], faults[3], faults[6], faults[8], stalling]

    @Test(arguments: faultsBefore)
    func `a fault neither starts nor loses the next entry, which a skip plays`(_ fault: Fault) async throws {
        try await play(stall: .milliseconds(1_500), opening: .seconds(3), episodes: 2) { fleet, server, states in
            server.route("/1.wav", fault.response)
            server.route("/2.wav", Self.audio)
            let (first, second) = (WholeFleet.episode(1), WholeFleet.episode(2))
            try await fleet.queue { $0.add.episodes = [first, second] }
            try await fleet.queue { $0.play.episode = first }
            if fault.isRetried {
                try await fleet.watcher.until("the stream is retried") { $0.player?.hasRetry == true }
                server.route("/1.wav", fault.later)
            }
            let failed = try await fleet.watcher.until("the episode has failed") {
                $0.player?.status == .failed && !$0.alerts.isEmpty
            }
            let alert = try #require(failed.alertsInOrder.first)
            // Neither command starts the next entry.
            try await fleet.player { $0.setPaused.paused = true }
            try await fleet.player { $0.stop = WireStopPlayback() }
            #expect(states.withLockedValue { $0 }.allSatisfy { $0.episode.id == first || $0.episode.id.isEmpty })
            #expect(failed.mainQueue?.entries.map(\.episode.id) == [first, second])
            // If the stream was never open, nothing is opened after it.
            if fault.position == 0 { #expect(server.requests(for: "/2.wav").isEmpty) }
            try await fleet.player {
                $0.answerAlert.alert = alert.id
                $0.answerAlert.action = "skip"
            }
            let view = try await fleet.watcher.until("the second plays") {
                $0.player?.episode.id == second && $0.player?.status == .playing && $0.player?.anchor.running == true
            }
            #expect((view.player?.anchor.position ?? -1) < 2)
            #expect(view.mainQueue?.entries.map(\.episode.id) == [first, second])
            let stored = try await fleet.database.episodes(ids: [first]).first?.state
            #expect(stored?.played == false && abs((stored?.position ?? -1) - fault.position) < 2)
        }
    }

    @Test(arguments: [3, 8])
    func `after a transient fault, the next entry plays when the first has ended`(_ index: Int) async throws {
        try await play(episodes: 2) { fleet, server, states in
            server.route("/1.wav", Self.faults[index].response)
            server.route("/2.wav", Self.audio)
            let (first, second) = (WholeFleet.episode(1), WholeFleet.episode(2))
            try await fleet.queue { $0.add.episodes = [first, second] }
            try await fleet.queue { $0.play.episode = first }
            try await fleet.watcher.until("the stream is retried") { $0.player?.retry.attempt == 1 }
            server.route("/1.wav", Self.audio)
            try await fleet.watcher.until("the episode plays") {
                $0.player?.status == .playing && $0.player?.anchor.running == true && $0.player?.hasRetry == false
            }
            try await fleet.player { $0.seek.position = 58.5 }
            let view = try await fleet.watcher.until("the second plays") {
                $0.player?.episode.id == second && $0.player?.status == .playing && $0.player?.anchor.running == true
            }
            #expect(view.mainQueue?.entries.map(\.episode.id) == [second])
            let shown = states.withLockedValue { $0 }.filter { !$0.episode.id.isEmpty }
            let change = try #require(shown.firstIndex { $0.episode.id == second })
            #expect(shown[change - 1].status == .finished && shown[change...].allSatisfy { $0.episode.id == second })
        }
    }

    // MARK: Fleet setup

    private func play(
        stall: Duration = .seconds(20), opening: Duration = .seconds(60), episodes: Int = 1,
        // The last delays leave time to restore a server, even on a busy machine.
        reconnect: [Duration] = [.milliseconds(200), .milliseconds(1_000), .milliseconds(3_000)],
        comeback: [Duration] = [.seconds(30)],
        _ body:
            @escaping @Sendable (WholeFleet, HTTPTestServer, NIOLockedValueBox<[WirePlaybackState]>) async throws ->
            Void
    ) async throws {
        let limits: PlaybackLimits = {
            var limits = PlaybackLimits()
            limits.reconnectBackoff = .steps(reconnect, repeatsLast: false)
            limits.serverProbeBackoff = .steps(comeback, repeatsLast: true)
            (limits.stall, limits.opening, limits.probe) = (stall, opening, min(opening, limits.probe))
            return limits
        }()
        try await HTTPTestServer.with { server in
            try await WholeFleet.with(realEngine: true, limits: limits) { fleet in
                try await fleet.fillLibrary(episodes: episodes, length: 60) { server.url("/\($0).wav") }
                let states = NIOLockedValueBox<[WirePlaybackState]>([])
                fleet.watcher.each { view in
                    guard let player = view.player else { return }
                    states.withLockedValue { if $0.last?.revision != player.revision { $0.append(player) } }
                }
                try await body(fleet, server, states)
            }
        }
    }
}
