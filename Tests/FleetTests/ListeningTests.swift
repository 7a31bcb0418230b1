import BusKit
import EngineDouble
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests a podcast from subscription to playback, with a server that truncates a stream.
@Suite(.timeLimit(.minutes(5)))
struct ListeningTests {
    private static func feed(_ server: HTTPTestServer) -> String {
        let items = (1...3).map { number in
            """
            <item><title>Part \(number)</title><guid>part-\(number)</guid>
            <pubDate>Mon, 0\(number) Jan 2024 10:00:00 GMT</pubDate>
            <enclosure url="\(server.url("/\(number).wav"))" type="audio/wav" length="1000"/></item>
            """
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Serial</title>
            <link>http://127.0.0.1/</link><description>Three parts</description>\(items.joined())</channel></rss>
            """
    }

    @Test func `a subscribed podcast plays to its end and a truncated stream keeps its position`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", .feed(Self.feed(server)))
            server.route("/1.wav", .audio(Tone.wav(seconds: 3), type: "audio/wav"))
            server.route("/2.wav", .audio(Tone.wav(seconds: 3), type: "audio/wav"))
            let whole = HTTPTestResponse.audio(Tone.wav(seconds: 60), type: "audio/wav")
            var truncated = whole.with(.close(afterBytes: 64_000))
            truncated.acceptsRanges = false
            server.route("/3.wav", truncated)
            try await WholeFleet.with([.persistence, .playback, .queue, .feeds], realEngine: true) { fleet in
                let subscribed = try await fleet.client.ask(
                    .feeds, WireFeedsRequest.with { $0.subscribe.urls = [server.url("/feed.xml")] },
                    reply: WireFeedsReply.self, within: .seconds(60)
                ).reply
                #expect(subscribed.results.map(\.kind) == [.added] && subscribed.results.first?.newEpisodes == 3)
                let page = try await fleet.database.episodes(WireEpisodesQuery())
                let ids = page.episodes.reversed().map(\.id)
                #expect(page.episodes.map(\.title) == ["Part 3", "Part 2", "Part 1"])
                try await fleet.queue { $0.add.episodes = ids }
                try await fleet.queue { $0.play.episode = ids[0] }

                try await Self.playAll(fleet, ids)
                try await Self.expectRetry(fleet, ids[2]) { server.route("/3.wav", whole) }
            }
        }
    }

    /// Plays two episodes to their ends and the third to the end of its truncated stream.
    private static func playAll(_ fleet: WholeFleet, _ ids: [String]) async throws {
        for id in ids.prefix(2) {
            try await fleet.watcher.until("\(id) plays") {
                $0.player?.episode.id == id && $0.player?.status == .playing
            }
        }
        let view = try await fleet.watcher.until("the third has failed") {
            $0.player?.episode.id == ids[2] && $0.player?.status == .failed && !$0.alerts.isEmpty
        }
        #expect(view.player?.error.code == FailureCode.endedEarly.rawValue)
        #expect(view.mainQueue?.entries.map(\.episode.id) == [ids[2]])
        #expect(view.mainQueue?.current == view.player?.queueEntry)
        // The announced length is 60 s; 64,000 bytes are 4 s.
        #expect(abs((view.player?.anchor.position ?? 0) - 4) < 1)
        // The engine’s events are published at once; their writes are durable before the reply to a later command.
        try await fleet.player { $0.setVolume.volume = 50 }
        let states = try await fleet.database.episodes(ids: ids)
        #expect(states.filter(\.state.played).map(\.id).sorted() == ids.prefix(2).sorted())
        let stored = states.first { $0.id == ids[2] }?.state.position ?? 0
        #expect(abs(stored - 4) < 1)
    }

    /// Repairs the server, and checks that the alert’s `retry` resumes at the position where the stream ended.
    private static func expectRetry(_ fleet: WholeFleet, _ episode: String, repair: () -> Void) async throws {
        let failed = try #require(fleet.watcher.view.player)
        let alert = try #require(fleet.watcher.view.alertsInOrder.first)
        #expect(alert.code == FailureCode.endedEarly.rawValue && alert.actions.contains("retry"))
        repair()
        try await fleet.player {
            $0.answerAlert.alert = alert.id
            $0.answerAlert.action = "retry"
        }
        let view = try await fleet.watcher.until("playback continues") {
            $0.player?.status == .playing && $0.alerts.isEmpty
        }
        #expect(view.player?.episode.id == episode && view.player?.loadID == failed.loadID)
        let position = view.player?.anchor.position ?? 0
        #expect(abs(position - failed.anchor.position) < 1)
        let later = try await fleet.player { $0.setPaused.paused = true }
        #expect(later.state.anchor.position >= position)
    }
}
