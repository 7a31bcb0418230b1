import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages
import ZeroMQ

/// Measures the time from a change to the put of a smart playlist whose items it changes.
enum SmartPlaylists {
    private static let rounds = 20

    static func measure(_ fleet: BenchFleet, _ client: RawClient) throws {
        let rules = [
            ("short", "unplayed and length < 20m", WireEpisodeOrder.shortest),
            ("text", "unplayed and title ~ ba and not title ~ ri", .newest),
        ]
        for (name, rule, order) in rules {
            var subscriber = try Socket(
                .subscribe, in: fleet.context,
                options: [
                    .linger(0), .receiveTimeout(10_000), .subscribe(Array(Topic.playlist(name).text.utf8)),
                ])
            defer { subscriber.close() }
            try subscriber.connect(fleet.endpoint("pub.sock"))
            try client.ask(
                .queue,
                WireQueueRequest.with {
                    $0.playlist.playlist = name
                    $0.playlist.create.smart = .with { ($0.rule, $0.order) = (rule, order) }
                })
            var times: [Double] = []
            for _ in 0..<rounds {
                // The pause after an evaluation depends on its duration.
                Thread.sleep(forTimeInterval: 3)
                let first = try items(name, client)[0]
                try drain(&subscriber)
                let start = monotonicSeconds()
                try client.ask(
                    .playback,
                    WirePlaybackRequest.with {
                        $0.setPlayed.episodes = [first]
                        $0.setPlayed.played = true
                    })
                guard try subscriber.receive(wait: true) != nil else {
                    throw BenchFleet.Failed(description: "the playlist “\(name)” did not change")
                }
                times.append(monotonicSeconds() - start)
            }
            Row(
                name: "library.smart.\(name).p95", value: times.quantile(0.95) * 1e3, unit: "ms", budget: "<= 500"
            ).print()
        }
    }

    private static func items(_ playlist: String, _ client: RawClient) throws -> [String] {
        let answer = try client.ask(
            .queue,
            WireQueueRequest.with {
                $0.playlist.playlist = playlist
                $0.playlist.items = WireItemsQuery()
            })
        let items = try WireQueueReply(wireBytes: answer).entries.map(\.episode.id)
        guard !items.isEmpty else { throw BenchFleet.Failed(description: "the playlist “\(playlist)” is empty") }
        return items
    }

    private static func drain(_ subscriber: inout Socket) throws {
        while try subscriber.receive(wait: false) != nil {}
    }
}
