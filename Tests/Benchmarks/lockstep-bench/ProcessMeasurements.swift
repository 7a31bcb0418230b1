import BusKit
import Foundation
import PodcastModel
import SwiftProtobuf
import WireMessages

/// Measures the memory, the processor time and the start of processes.
enum ProcessMeasurements {
    static func timeToReady(
        _ fleet: BenchFleet, _ name: String = "up.ready", peer: String? = nil, budget: String = "<= 1000"
    ) throws {
        var times: [Double] = []
        for _ in 0..<5 {
            // A fleet that isn’t running is down already.
            _ = try? fleet.lockstep("down")
            let start = monotonicSeconds()
            try fleet.lockstep("up", "--detach")
            times.append(monotonicSeconds() - start)
        }
        Row(name: name, value: times.quantile(0.5) * 1e3, unit: "ms", peer: peer, budget: budget).print()
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
        let services = try fleet.services()
        let seconds = 20.0
        let before = services.map { processorTime($0.pid) }
        let switchesBefore = services.map { switches($0.pid) }.reduce(0, +)
        Thread.sleep(forTimeInterval: seconds)
        let switchesNow = services.map { switches($0.pid) }.reduce(0, +)
        var sum = 0.0
        for (service, before) in zip(services, before) {
            let part = (processorTime(service.pid) - before) / seconds * 100
            sum += part
            Row(name: "cpu.idle.\(service.name)", value: part, unit: "%").print()
        }
        Row(name: "cpu.idle", value: sum, unit: "%", peer: nil, budget: "<= 0.3").print()
        let rate = Double(switchesNow - switchesBefore) / seconds
        Row(name: "switches.idle", value: rate, unit: "1/s", peer: nil, budget: "<= 60").print()
    }

    /// Returns the number of voluntary context switches of a process’s threads.
    private static func switches(_ pid: Int32?) -> Int {
        guard let pid, let threads = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task") else {
            return 0
        }
        return threads.map { number("voluntary_ctxt_switches:", in: "/proc/\(pid)/task/\($0)/status") }.reduce(0, +)
    }

    /// Returns the number after a word in a file of /proc; 0 if there is none.
    private static func number(_ word: String, in path: String) -> Int {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix(word) })
        else { return 0 }
        return Int(line.dropFirst(word.count).split(separator: " ").first?.filter(\.isNumber) ?? "") ?? 0
    }

    /// Measures the bus’s memory a minute after its observers have left.
    static func busAfterObservers(_ fleet: BenchFleet) throws {
        guard let pid = try fleet.services().first(where: { $0.name == "bus" })?.pid else { return }
        Thread.sleep(forTimeInterval: 60)
        let kilobytes = number("Anonymous:", in: "/proc/\(pid)/smaps_rollup")
        Row(name: "bus.after.observers", value: Double(kilobytes) / 1_000, unit: "MB", peer: nil, budget: "<= 12")
            .print()
    }

    /// Returns the seconds of processor time that a process has used.
    static func processorTime(_ pid: Int32?) -> Double {
        var clock = clockid_t()
        var time = timespec()
        guard let pid, clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Measures the time from SIGKILL until the service answers again.
    static func killToServing(_ fleet: BenchFleet, rounds: Int) throws {
        for service in ["persistence", "playback", "queue", "feeds", "bus"] {
            var times: [Double] = []
            for _ in 0..<rounds {
                // An exit within a second after READY counts as a failed start, which isn’t retried at once.
                Thread.sleep(forTimeInterval: 1.2)
                times.append(try secondsToServing(service, SIGKILL, fleet))
            }
            Row(
                name: "kill.\(service).p95", value: times.quantile(0.95) * 1e3, unit: "ms", peer: nil,
                budget: "<= 150"
            ).print()
        }
    }

    /// Measures the time from SIGSTOP, which simulates a hang, until the service answers again.
    static func hungToServing(_ fleet: BenchFleet) throws {
        Thread.sleep(forTimeInterval: 1.2)
        let hung = try process(of: "queue", fleet)
        let start = monotonicSeconds()
        _ = try secondsToServing("queue", SIGSTOP, fleet)
        // The supervisor continues the process so that it can write a crash report; it may answer until it is killed.
        while (try? process(of: "queue", fleet)) ?? hung == hung { Thread.sleep(forTimeInterval: 0.01) }
        let time = try served("queue", RawClient(fleet), start)
        Row(name: "hung.queue", value: time, unit: "s", peer: nil, budget: "<= 13").print()
    }

    static func secondsToServing(_ service: String, _ signal: Int32, _ fleet: BenchFleet) throws -> Double {
        let pid = try process(of: service, fleet)
        let client = try RawClient(fleet)
        _ = try served(service, client, monotonicSeconds())
        kill(pid, signal)
        return try served(service, client, monotonicSeconds())
    }

    private static func process(of service: String, _ fleet: BenchFleet) throws -> Int32 {
        guard let pid = try fleet.services().first(where: { $0.name == service })?.pid else {
            throw BenchFleet.Failed(description: "\(service) isn’t running")
        }
        return pid
    }

    /// Returns the seconds until the service itself answers: a query, or an unknown command with a refusal.
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
