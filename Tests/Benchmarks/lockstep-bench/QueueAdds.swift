import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Measures acknowledged durable `queue add` requests: one after the other, and 64 in flight.
enum QueueAdds {
    static func measure(_ fleet: BenchFleet) throws {
        let client = try RawClient(fleet)
        let episodes = try client.episodes(limit: 4_200)
        var times: [Double] = []
        for episode in episodes.prefix(200) {
            let start = monotonicSeconds()
            try client.ask(.queue, add(episode))
            times.append(monotonicSeconds() - start)
        }
        Row(name: "queue.add.p50", value: times.quantile(0.5) * 1e3, unit: "ms", peer: nil, budget: "<= 2").print()
        Row(name: "queue.add.p99", value: times.quantile(0.99) * 1e3, unit: "ms").print()
        // A client may have 32 requests in flight.
        let clients = [try RawClient(fleet), try RawClient(fleet)]
        let rest = Array(episodes.dropFirst(200))
        var next = 0
        var answered = 0
        let start = monotonicSeconds()
        for _ in 0..<32 {
            for client in clients where next < rest.count {
                try client.send(.queue, add(rest[next]).wireBytes)
                next += 1
            }
        }
        while answered < rest.count {
            for client in clients where answered < rest.count {
                guard let answer = try client.receive(), answer.header.kind == .reply else {
                    throw BenchFleet.Failed(description: "an add was not acknowledged")
                }
                answered += 1
                guard next < rest.count else { continue }
                try client.send(.queue, add(rest[next]).wireBytes)
                next += 1
            }
        }
        let rate = Double(rest.count) / (monotonicSeconds() - start)
        Row(name: "queue.add.rate64", value: rate, unit: "1/s", peer: "sqlite.commits", budget: ">= 0.7x").print()
        try client.ask(.queue, WireQueueRequest.with { $0.clear = WireClearQueue() })
    }

    private static func add(_ episode: String) -> WireQueueRequest {
        .with { $0.add.episodes = [episode] }
    }
}
