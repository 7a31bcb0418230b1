import BusKit
import LockstepClient
import PodcastModel
import SwiftProtobuf
import TestSupport
import Testing
import WireMessages

/// Tests seeks in a two-hour episode with two hundred chapters.
@Suite(.timeLimit(.minutes(5)))
struct LongEpisodeTests {
    private static let length = 7_200.0
    private static let chapters = 200

    /// A feed whose chapter `number` of 200 begins at a multiple of 36 s.
    private static func feed(_ server: HTTPTestServer) -> String {
        let marks = (0..<chapters).map { number in
            let start = number * 36
            func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
            let position = "\(start / 3_600):\(two(start / 60 % 60)):\(two(start % 60))"
            return "<psc:chapter start=\"\(position)\" title=\"Chapter \(number + 1) of a long evening\"/>"
        }
        return """
            <?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:psc="http://podlove.org/simple-chapters"
            xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"><channel><title>Long</title>
            <link>http://127.0.0.1/</link><description>Two hours</description><item><title>Two hours</title>
            <guid>long</guid><pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate>
            <itunes:duration>7200</itunes:duration>
            <enclosure url="\(server.url("/long.mp3"))" type="audio/mpeg" length="7200000"/>
            <psc:chapters version="1.2">\(marks.joined())</psc:chapters></item></channel></rss>
            """
    }

    /// The distinct states of the player that an observer has received.
    private final class ReceivedStates: Sendable {
        let states = Awaited<[WirePlaybackState]>([])

        func record(_ view: FleetView) {
            guard let player = view.player else { return }
            states.change { if $0.last != player { $0.append(player) } }
        }
    }

    @Test(arguments: [true, false])
    func `the first state after a seek shows the position and its chapter to every client`(
        paused: Bool
    ) async throws {
        try await HTTPTestServer.with { server in
            server.route("/feed.xml", .feed(Self.feed(server)))
            var audio = HTTPTestResponse.audio(Tone.slowMP3(seconds: Self.length), type: "audio/mpeg")
            audio.acceptsRanges = true
            server.route("/long.mp3", audio)
            try await WholeFleet.with([.persistence, .playback, .queue, .feeds], realEngine: true) { fleet in
                try await fleet.feeds { $0.subscribe.urls = [server.url("/feed.xml")] }
                let id = try #require(try await fleet.database.episodes(WireEpisodesQuery()).episodes.first?.id)
                try await fleet.queue { $0.play.episode = id }
                try await fleet.watcher.until("the episode plays, with its chapters") {
                    $0.player?.status == .playing && $0.player?.chapters.count == Self.chapters
                }
                if paused { try await fleet.player { $0.setPaused.paused = true } }
                try await fleet.bus.withClient { other in
                    let screens = [fleet.watcher, StreamWatcher(other)]
                    let following = Task { await screens[1].follow() }
                    try await screens[1].until("the second screen shows the position") { $0.player?.episode.id == id }
                    try await Self.move(in: fleet, screens)
                    following.cancel()
                }
            }
        }
    }

    private static func move(in fleet: WholeFleet, _ screens: [StreamWatcher]) async throws {
        var generator = SplitMix(seed: 7)
        for _ in 0..<40 {
            // The position isn’t near a chapter’s end, so playback stays in the chapter.
            let position = Double(generator.next() % UInt64(chapters)) * 36 + 1 + Double(generator.next() % 30)
            let before = try #require(screens[0].view.player?.revision)
            let seen = screens.map { screen in
                let seen = ReceivedStates()
                screen.each { seen.record($0) }
                return seen
            }
            let reply = try await fleet.player { $0.seek.position = position }
            #expect(reply.state.anchor.position == position)
            for seen in seen {
                let states = try #require(
                    await seen.states.first(within: .seconds(60)) { states in
                        states.contains { $0.revision > before && $0.anchor.position == position }
                    })
                let first = try #require(states.first { $0.revision > before })
                // A state published before the seek may arrive; it has a smaller revision.
                #expect(first.anchor.position == position || first.revision < reply.state.revision)
                #expect(
                    states.filter { $0.revision >= reply.state.revision }.allSatisfy {
                        abs($0.anchor.position - position) < 1.5 && Int($0.chapter) == Int(position / 36) + 1
                    }, "\(position): \(states.map { ($0.revision, $0.anchor.position, $0.chapter) })")
            }
        }
        for screen in screens { screen.each(nil) }
    }
}

/// A deterministic generator of random numbers.
private struct SplitMix {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
