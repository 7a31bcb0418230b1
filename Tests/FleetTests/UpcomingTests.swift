import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests that the next entry is prepared during playback and that chapters are read from their sources.
@Suite(.timeLimit(.minutes(5)))
struct UpcomingTests {
    private static let chapters = """
        {"version":"1.2.0","chapters":[{"startTime":0,"title":"Hello"},{"startTime":20.5,"title":"News"},
        {"startTime":30,"title":"not listed","toc":false},{"startTime":40,"title":"End"}]}
        """

    private static func feed(_ server: HTTPTestServer) -> HTTPTestResponse {
        .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:psc="http://podlove.org/simple-chapters"
             xmlns:podcast="https://podcastindex.org/namespace/1.0"><channel><title>Serial</title>
            <link>http://127.0.0.1/</link><description>x</description>
            <item><title>Part 1</title><guid>1</guid><enclosure url="\(server.url("/1.wav"))" type="audio/wav" length="1"/>
            <podcast:chapters url="\(server.url("/1.json"))" type="application/json+chapters"/></item>
            <item><title>Part 2</title><guid>2</guid><enclosure url="\(server.url("/2.wav"))" type="audio/wav" length="1"/>
            <psc:chapters version="1.2"><psc:chapter start="00:00" title="One"/>
            <psc:chapter start="00:00:02.500" title="Two"/></psc:chapters></item></channel></rss>
            """)
    }

    /// Runs with two episodes of these lengths, in seconds, and passes their IDs to `body`.
    private func run(
        _ lengths: [Double], _ body: @escaping @Sendable (WholeFleet, HTTPTestServer, [String]) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server))
            for (index, length) in lengths.enumerated() {
                server.route("/\(index + 1).wav", .audio(Tone.wav(seconds: length), type: "audio/wav"))
            }
            server.route(
                "/1.json",
                HTTPTestResponse(
                    headers: [("Content-Type", "application/json+chapters")], body: .bytes(Array(Self.chapters.utf8))))
            try await WholeFleet.with([.persistence, .playback, .queue, .feeds], realEngine: true) { fleet in
                try await fleet.feeds { $0.subscribe.urls = [server.url("/feed.xml")] }
                let episodes = try await fleet.database.episodes(WireEpisodesQuery()).episodes
                let ids = ["Part 1", "Part 2"].compactMap { title in episodes.first { $0.title == title }?.id }
                try await body(fleet, server, try #require(ids.count == 2 ? ids : nil))
            }
        }
    }

    @Test func `chapters of the file and of the feed reach the state of the player`() async throws {
        try await run([60, 60]) { fleet, server, ids in
            try await fleet.queue { $0.add.episodes = ids }
            try await fleet.queue { $0.play.episode = ids[0] }
            let view = try await fleet.watcher.until("the chapters of the file") { $0.player?.chapters.count == 3 }
            #expect(view.player?.chapters.map(\.title) == ["Hello", "News", "End"])
            #expect(view.player?.chapters.map(\.start) == [0, 20.5, 40])
            #expect(view.player?.episode.id == ids[0])
            try await fleet.player { $0.seek.position = 25 }
            try await fleet.watcher.until("the second chapter") { $0.player?.chapter == 2 }
            try await fleet.queue { $0.next = WireNext() }
            let second = try await fleet.watcher.until("the chapters of the feed") {
                $0.player?.episode.id == ids[1] && $0.player?.chapters.isEmpty == false
            }
            #expect(second.player?.chapters.map(\.title) == ["One", "Two"])
            #expect(second.player?.chapters.map(\.start) == [0, 2.5])
            // The first entry plays again: its file isn’t read again within a day, and its chapters are shown.
            try await fleet.queue { $0.previous = WirePrevious() }
            try await fleet.watcher.until("the chapters are there again") {
                $0.player?.episode.id == ids[0] && $0.player?.chapters.count == 3
            }
            #expect(server.requests(for: "/1.json").count == 1)
        }
    }

    @Test func `the next episode is opened before the end and plays without a pause`() async throws {
        try await run([10, 4]) { fleet, server, ids in
            let seen = Awaited<[WirePlaybackState]>([])
            fleet.watcher.each { view in
                guard let player = view.player else { return }
                seen.change { states in if states.last != player { states.append(player) } }
            }
            try await fleet.queue { $0.add.episodes = ids }
            try await fleet.queue { $0.play.episode = ids[0] }
            let playing = try await fleet.watcher.until("the first plays") { $0.player?.status == .playing }
            let first = try #require(playing.player)
            await server.received(1, at: "/2.wav")
            #expect(first.episode.id == ids[0] && fleet.watcher.view.player?.loadID == first.loadID)
            let view = try await fleet.watcher.until("the second plays") {
                $0.player?.episode.id == ids[1] && $0.player?.status == .playing
            }
            #expect(view.player?.loadID == LoadID.advance(after: first.loadID).text)
            #expect(view.mainQueue?.entries.map(\.episode.id) == [ids[1]])
            let states = seen.now.drop { $0.loadID != first.loadID }
            #expect(!states.contains { $0.status == .idle || $0.status == .failed })
            let change = try #require(states.firstIndex { $0.loadID != first.loadID })
            #expect(states[change...].allSatisfy { $0.loadID != first.loadID }, "the first load after the second")
            fleet.watcher.each(nil)
        }
    }
}
