import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Measures changes of a queue of 10,000 entries until they are durable and on the stream, the service’s processor
/// time for each, and the restart of the queue.
enum LongQueue {
    private static let entries = 10_000
    private static let changes = 300

    static func measure(_ fleet: BenchFleet) throws {
        let client = try RawClient(fleet)
        try fleet.lockstep("subscribe", try fleet.writeLongFeed(episodes: entries + changes))
        let podcast = try client.podcast(titled: "A podcast of many")
        let episodes = try client.episodes(limit: entries + changes, podcast: podcast)
        // The loaded episode is in the queue already, and each round of changes leaves one more entry.
        try fill(client, Array(episodes.prefix(entries - changes - 1)))
        try edit(client, Array(episodes.suffix(changes)), fleet)
        let restarts = try (0..<5).map { _ in
            // An exit within a second after READY counts as a failed start, which isn’t retried at once.
            Thread.sleep(forTimeInterval: 1.2)
            return try ProcessMeasurements.secondsToServing("queue", SIGKILL, fleet)
        }
        print("restart", budget: "<= 1000", times: restarts)
        try whole(client)
    }

    private static func fill(_ client: RawClient, _ episodes: [String]) throws {
        for start in stride(from: 0, to: episodes.count, by: 500) {
            let some = Array(episodes[start..<min(start + 500, episodes.count)])
            try client.ask(.queue, WireQueueRequest.with { $0.add.episodes = some })
        }
    }

    /// Adds, moves and undoes in turn, so that each operation has its share of the complete puts.
    private static func edit(_ client: RawClient, _ episodes: [String], _ fleet: BenchFleet) throws {
        let service = try fleet.services().first { $0.name == "queue" }?.pid
        var times: [String: [Double]] = [:]
        var spent: [String: [Double]] = [:]
        func ask(_ name: String, _ fill: (inout WireQueueRequest) -> Void) throws -> WireQueueReply {
            let before = ProcessMeasurements.processorTime(service)
            let reply = try self.ask(client, name, &times, fill)
            spent[name, default: []].append(ProcessMeasurements.processorTime(service) - before)
            return reply
        }
        for (number, episode) in episodes.enumerated() {
            let added = try ask("add") {
                $0.add.episodes = [episode]
                $0.add.next = number % 2 == 0
            }
            _ = try ask("move") {
                $0.move.entry = added.entries.first?.id ?? ""
                $0.move.index = UInt32(number * 31 % entries)
            }
            _ = try ask("undo") { $0.undo = WireUndo() }
        }
        for (name, values) in times.sorted(by: { $0.key < $1.key }) {
            print("\(name).p50", budget: nil, times: [values.quantile(0.5)])
            print("\(name).p99", budget: nil, times: [values.quantile(0.99)])
            print("\(name).service.p99", budget: "<= 10", times: [spent[name, default: []].quantile(0.99)])
        }
    }

    /// Measures edits of all entries at once.
    private static func whole(_ client: RawClient) throws {
        var times: [String: [Double]] = [:]
        for _ in 0..<3 {
            let sorted = try ask(client, "sort", &times) {
                $0.sort.by = .title
                $0.sort.descending = true
            }
            try ask(client, "sort.undo", &times) { $0.undo = WireUndo() }
            try ask(client, "deduplicate", &times) { $0.deduplicate = WireRemoveDuplicates() }
            try ask(client, "clear", &times) { $0.clear = WireClearQueue() }
            try ask(client, "clear.undo", &times) { $0.undo = WireUndo() }
            try ask(client, "clear.redo", &times) { $0.redo = WireRedo() }
            try ask(client, "restore", &times) { $0.restore.revision = sorted.revision + 1 }
        }
        try ask(client, "clear", &times) { $0.clear = WireClearQueue() }
        for (name, values) in times.sorted(by: { $0.key < $1.key }) { print(name, budget: nil, times: values) }
    }

    @discardableResult
    private static func ask(
        _ client: RawClient, _ name: String, _ times: inout [String: [Double]],
        _ fill: (inout WireQueueRequest) -> Void
    ) throws -> WireQueueReply {
        let request = WireQueueRequest.with(fill)
        let start = monotonicSeconds()
        let answer = try client.ask(.queue, request)
        times[name, default: []].append(monotonicSeconds() - start)
        return try WireQueueReply(wireBytes: answer)
    }

    private static func print(_ name: String, budget: String?, times: [Double]) {
        Row(name: "queue10k.\(name)", value: times.quantile(0.5) * 1e3, unit: "ms", budget: budget).print()
    }
}
