import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests rules that enqueue new episodes of a feed over HTTP while services crash.
@Suite(.timeLimit(.minutes(5)))
struct AutoEnqueueTests {
    /// A feed of `count` episodes, the newest first. They have no dates, so none is too old to be new.
    private static func feed(_ server: HTTPTestServer, episodes count: Int, notes: String = "") -> HTTPTestResponse {
        let items = (1...count).reversed().map { number in
            """
            <item><title>Part \(number)</title><guid>part-\(number)</guid><description>\(notes)</description>
            <enclosure url="\(server.url("/\(number).wav"))" type="audio/wav" length="1000"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Serial</title>
            <link>http://127.0.0.1/</link><description>x</description>\(items.joined())</channel></rss>
            """)
    }

    /// Runs with a podcast of three episodes, two of them in the queue and the first current.
    private func run(
        rule: String, _ body: @escaping @Sendable (WholeFleet, HTTPTestServer) async throws -> Void
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server, episodes: 3))
            for number in 1...3 {
                server.route("/\(number).wav", .audio(Tone.wav(seconds: 60), type: "audio/wav"))
            }
            try await WholeFleet.with([.persistence, .playback, .queue, .feeds], realEngine: true) { fleet in
                let podcast = try await fleet.feeds { $0.subscribe.urls = [server.url("/feed.xml")] }
                #expect(podcast.results.map(\.kind) == [.added])
                let episodes = try await fleet.database.episodes(WireEpisodesQuery()).episodes
                let ids = ["Part 1", "Part 2"].compactMap { title in episodes.first { $0.title == title }?.id }
                try await fleet.queue { $0.add.episodes = ids }
                try await fleet.queue { $0.play.episode = ids[0] }
                try await fleet.queue {
                    $0.setSetting.podcast = episodes[0].podcastID
                    $0.setSetting.key = SettingKey.autoEnqueue.rawValue
                    $0.setSetting.value = rule
                }
                try await body(fleet, server)
            }
        }
    }

    /// Waits until the rule has processed the podcast’s first episodes, by polling the database.
    private static func untilMarked(_ fleet: WholeFleet) async throws {
        var request = WirePersistenceRequest()
        request.loadRecords.owner = ServiceName.queue.text
        request.loadRecords.collection = "rule"
        // The suite’s time limit ends the loop.
        while true {
            try Task.checkCancellation()
            let answer = try await fleet.client.ask(
                .persistence, request, reply: WirePersistenceReply.self, within: .seconds(60))
            if !answer.reply.records.records.isEmpty { return }
        }
    }

    private static func titles(_ view: FleetView) -> [String] {
        view.mainQueue?.entries.map(\.episode.title) ?? []
    }

    @Test(arguments: [
        ("top", ["Part 4", "Part 1", "Part 2"]), ("next", ["Part 1", "Part 4", "Part 2"]),
        ("bottom", ["Part 1", "Part 2", "Part 4"]),
    ])
    func `a new episode is enqueued at the rule’s position`(rule: String, expected: [String]) async throws {
        try await run(rule: rule) { fleet, server in
            #expect(Self.titles(fleet.watcher.view) == ["Part 1", "Part 2"])
            server.route("/feed.xml", Self.feed(server, episodes: 4))
            try await fleet.feeds { $0.refresh = WireRefresh() }
            let view = try await fleet.watcher.until("the episode is in the queue, and playback continues") {
                Self.titles($0).count == 3 && $0.player?.status == .playing
            }
            #expect(Self.titles(view) == expected)
            let entry = view.mainQueue?.entries.first { $0.episode.title == "Part 4" }
            #expect(entry?.reason.contains("Serial") == true)
            #expect(view.mainQueue?.current == view.player?.queueEntry)
            #expect(view.player?.episode.title == "Part 1")
        }
    }

    @Test func `a first subscription enqueues nothing, and one undo removes later entries`() async throws {
        try await HTTPTestServer.with { server in
            // The feed is so long that storing it takes several messages.
            let notes = String(repeating: "x", count: 30_000)
            server.route("/feed.xml", Self.feed(server, episodes: 200, notes: notes))
            try await WholeFleet.with([.persistence, .playback, .queue, .feeds]) { fleet in
                try await fleet.queue {
                    $0.setSetting.key = SettingKey.autoEnqueue.rawValue
                    $0.setSetting.value = "bottom"
                }
                let podcast = try await fleet.feeds { $0.subscribe.urls = [server.url("/feed.xml")] }
                #expect(podcast.results.map(\.newEpisodes) == [200])
                // Episodes that arrive before the rule has processed the first ones count as first ones.
                try await Self.untilMarked(fleet)
                server.route("/feed.xml", Self.feed(server, episodes: 350, notes: notes))
                try await fleet.feeds { $0.refresh = WireRefresh() }
                let view = try await fleet.watcher.until("the new episodes are in the queue") {
                    !Self.titles($0).isEmpty
                }
                #expect(Set(Self.titles(view)) == Set((201...350).map { "Part \($0)" }))
                try await fleet.queue { $0.undo = WireUndo() }
                try await fleet.watcher.until("the queue is empty") { Self.titles($0).isEmpty }
            }
        }
    }

    /// The services that are killed while the feed is refreshed.
    enum Victims: String, Sendable, CaseIterable {
        case queue, feeds, both, database

        var services: [ServiceName] {
            switch self {
            case .queue: [.queue]
            case .feeds: [.feeds]
            case .both: [.feeds, .queue]
            case .database: [.feeds, .queue, .persistence]
            }
        }
    }

    @Test(arguments: Victims.allCases)
    func `each new episode is enqueued once, whichever service crashes`(victims: Victims) async throws {
        try await run(rule: "bottom") { fleet, server in
            var random = SeededGenerator(seed: UInt64(victims.rawValue.count))
            // The rule applies once it has enqueued an episode.
            server.route("/feed.xml", Self.feed(server, episodes: 4))
            try await fleet.feeds { $0.refresh = WireRefresh() }
            try await fleet.watcher.until("the first episode is in the queue") { Self.titles($0).contains("Part 4") }
            for number in 5...9 {
                server.route("/feed.xml", Self.feed(server, episodes: number))
                let read = server.requests(for: "/feed.xml").count
                async let refreshed = try? fleet.feeds { $0.refresh = WireRefresh() }
                await server.received(read + 1, at: "/feed.xml")
                // The crash happens before the episode is stored, after it, or once the episode is in the queue.
                if random.below(3) > 0 {
                    let isLate = random.below(2) == 0
                    try await fleet.watcher.until("part \(number) is published") { view in
                        !isLate || Self.titles(view).contains("Part \(number)")
                            || view.podcasts.values.contains { $0.episodeCount >= number }
                    }
                }
                for service in victims.services { fleet.kill(service) }
                for service in victims.services { await fleet.untilStopped(service) }
                for service in victims.services.reversed() { try fleet.start(service) }
                try await fleet.untilReady(victims.services)
                _ = await refreshed
                try await fleet.feeds { $0.refresh = WireRefresh() }
                let view = try await fleet.watcher.until("part \(number) is in the queue") {
                    Self.titles($0).contains("Part \(number)")
                }
                #expect(Self.titles(view) == (1...number).filter { $0 != 3 }.map { "Part \($0)" })
            }
            // A removed entry isn’t enqueued again.
            let last = try #require(fleet.watcher.view.mainQueue?.entries.last)
            try await fleet.queue { $0.remove.entries = [last.id] }
            try await fleet.restart(.queue)
            try await fleet.untilReady([.queue])
            server.route("/feed.xml", Self.feed(server, episodes: 10))
            try await fleet.feeds { $0.refresh = WireRefresh() }
            let view = try await fleet.watcher.until("the last episode is in the queue") {
                Self.titles($0).contains("Part 10")
            }
            #expect(Self.titles(view) == ([1, 2] + Array(4...8) + [10]).map { "Part \($0)" })
        }
    }
}
