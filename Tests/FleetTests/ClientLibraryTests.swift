import BusKit
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

@testable import LockstepClient

/// Tests a program that uses the client library.
@Suite(.timeLimit(.minutes(5)))
struct ClientLibraryTests {
    private static func connection(to fleet: WholeFleet) -> Fleet {
        let client = BusClient(
            runDirectory: fleet.bus.home.runDirectory, origin: "test", observes: .all, logger: fleet.bus.logger)
        return Fleet(client: client, observing: .all)
    }

    private static func feed(_ server: HTTPTestServer, episodes count: Int) -> HTTPTestResponse {
        let items = (1...count).map { number in
            """
            <item><title>Part \(number)</title><guid>part-\(number)</guid>
            <enclosure url="\(server.url("/\(number).mp3"))" type="audio/mpeg" length="1000"/></item>
            """
        }
        return .feed(
            """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0"><channel><title>Serial</title>
            <link>http://127.0.0.1/</link><description>x</description>\(items.joined())</channel></rss>
            """)
    }

    @Test func `new episodes reach a program without a request and are in the library by then`() async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", Self.feed(server, episodes: 2))
            try await WholeFleet.with([.persistence, .feeds]) { fleet in
                let program = Self.connection(to: fleet)
                let podcasts = try await program.feeds.subscribe([server.url("/feed.xml")])
                let podcast = try #require(podcasts.first?.podcast?.id)
                var updates = program.updates().makeAsyncIterator()
                server.route("/feed.xml", Self.feed(server, episodes: 3))
                // Another program refreshes the feed.
                try await fleet.feeds { $0.refresh = WireRefresh() }
                var added: [EpisodeID] = []
                while added.isEmpty, let update = await updates.next() {
                    for case .episodes(let change) in update.changes where change.podcast == podcast {
                        added += change.added
                    }
                }
                let episodes = try await program.library.episodes(added)
                #expect(episodes.map(\.title) == ["Part 3"])
                #expect(try await program.library.episodes(in: EpisodeList(of: podcast), limit: nil).total == 3)
                await program.disconnect()
            }
        }
    }

    @Test func `a sequence keeps its connection alive while it is read`() async throws {
        try await WholeFleet.with([.persistence, .playback]) { fleet in
            weak var released: Fleet?
            do {
                var states = {
                    let program = Self.connection(to: fleet)
                    released = program
                    return program.states().makeAsyncIterator()
                }()
                #expect(await states.next()?.connection == .live)
                try await fleet.player { $0.setVolume.volume = 37 }
                var volume: Double?
                while volume != 37, let state = await states.next() { volume = state.player.volume }
                #expect(volume == 37 && released != nil)
            }
            #expect(released == nil)
        }
    }
}
