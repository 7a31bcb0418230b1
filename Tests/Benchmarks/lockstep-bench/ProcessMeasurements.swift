import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages

/// What the processes cost, and how soon they are there.
enum ProcessMeasurements {
    static func timeToReady(_ fleet: BenchFleet) throws {
        var times: [Double] = []
        for round in 0..<3 {
            if round > 0 { try fleet.lockstep("down") }
            let start = monotonicSeconds()
            try fleet.lockstep("up", "--detach")
            times.append(monotonicSeconds() - start)
        }
        Row(name: "up.ready", value: times.quantile(0.5) * 1e3, unit: "ms", peer: nil, budget: "<= 1000").print()
    }

    static func memory(_ fleet: BenchFleet, _ state: String, budget: Int) throws {
        var sum = 0.0
        for service in try fleet.services() {
            guard let pss = service.pss else { continue }
            let megabytes = pss / 1_048_576
            sum += megabytes
            Row(name: "pss.\(state).\(service.name)", value: megabytes, unit: "MiB").print()
        }
        Row(name: "pss.\(state)", value: sum, unit: "MiB", peer: nil, budget: "<= \(budget)").print()
    }

    static func idleProcessor(_ fleet: BenchFleet) throws {
        let pids = try fleet.services().compactMap(\.pid)
        let seconds = 10.0
        let before = pids.reduce(0) { $0 + ticks($1) }
        Thread.sleep(forTimeInterval: seconds)
        let used = Double(pids.reduce(0) { $0 + ticks($1) } - before) / Double(sysconf(Int32(_SC_CLK_TCK)))
        Row(name: "cpu.idle", value: used / seconds * 100, unit: "%", peer: nil, budget: "<= 0.5").print()
    }

    /// Processor time in ticks, user and system.
    private static func ticks(_ pid: Int32) -> Int {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return 0 }
        let fields = text[end...].split(separator: " ")
        return fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
    }

    /// From SIGKILL until the service answers again.
    static func killToServing(_ fleet: BenchFleet) throws {
        for service in ["persistence", "playback", "queue", "feeds", "bus"] {
            var times: [Double] = []
            for _ in 0..<20 {
                guard let pid = try fleet.services().first(where: { $0.name == service })?.pid else { continue }
                let client = try RawClient(fleet)
                kill(pid, SIGKILL)
                let start = monotonicSeconds()
                // An unknown command is refused by the service itself; a query is answered.
                times.append(try served(service, client, start))
            }
            Row(
                name: "kill.\(service).p95", value: times.quantile(0.95) * 1e3, unit: "ms", peer: nil,
                budget: "<= 150"
            ).print()
        }
    }

    private static func served(_ service: String, _ client: RawClient, _ start: Double) throws -> Double {
        switch service {
        case "playback":
            try client.untilServed(.playback, WirePlaybackRequest.with { $0.setVolume.volume = 90 }, since: start)
        case "queue":
            try client.untilServed(.queue, WireQueueRequest.with { $0.history.limit = 1 }, since: start)
        case "feeds":
            try client.untilServed(
                .feeds, WireFeedsRequest.with { $0.unsubscribe = WireUnsubscribe() }, since: start)
        default:
            try client.untilServed(.persistence, WirePersistenceRequest.with { $0.podcasts.limit = 1 }, since: start)
        }
    }
}
