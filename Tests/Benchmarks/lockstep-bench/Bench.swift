import Foundation
import ZeroMQ

/// One run: which measurements, in which order.
struct Bench {
    let folder: String
    let observers: [Int]

    init(arguments: [String], environment: [String: String]) throws {
        folder = environment["LOCKSTEP_BENCH_FOLDER"] ?? "/tmp/lsb-\(getpid())"
        let index = arguments.firstIndex(of: "--observers").map { $0 + 1 }
        let list = index.flatMap { $0 < arguments.count ? arguments[$0] : nil } ?? "1,10,100"
        observers = list.split(separator: ",").compactMap { Int($0) }
    }

    func run() throws {
        _ = try FileDescriptorLimit.raise()
        let fleet = try BenchFleet(home: folder + "/h", episodes: 4_200, observers: observers.max() ?? 0)
        defer { fleet.end() }
        try measure("up.ready") { try ProcessMeasurements.timeToReady(fleet) }
        try fleet.lockstep("subscribe", fleet.feed)
        try measure("memory.idle") { try ProcessMeasurements.memory(fleet, "idle", budget: 100) }
        try measure("cpu.idle") { try ProcessMeasurements.idleProcessor(fleet) }
        try measure("play") { try fleet.lockstep("play", fleet.firstEpisode()) }
        try measure("memory.playing") { try ProcessMeasurements.memory(fleet, "playing", budget: 150) }
        for count in observers { try measure("pause \(count)") { try FanOut.measure(fleet, observers: count) } }
        try measure("throughput") { try Throughput.measure(fleet) }
        try measure("queue") { try QueueAdds.measure(fleet) }
        try measure("memory.stressed") { try ProcessMeasurements.memory(fleet, "stressed", budget: 300) }
        try measure("kills") { try ProcessMeasurements.killToServing(fleet, rounds: 20) }
        try measure("hung") { try ProcessMeasurements.hungToServing(fleet) }
    }

    /// One part that fails is named; the others go on.
    private func measure(_ name: String, _ body: () throws -> Void) throws {
        FileHandle.standardError.write(Data("  \(name)\n".utf8))
        do { try body() } catch {
            FileHandle.standardError.write(Data("  \(name) could not be measured: \(error)\n".utf8))
        }
    }
}

/// A measured value, as `report.awk` reads it.
struct Row {
    var name: String
    var value: Double
    var unit: String
    var peer: String?
    var budget: String?

    func print() {
        var line = "{\"name\":\"\(name)\",\"value\":\(String(format: "%.3f", value)),\"unit\":\"\(unit)\""
        if let peer { line += ",\"peer\":\"\(peer)\"" }
        if let budget { line += ",\"budget\":\"\(budget)\"" }
        Swift.print(line + "}")
        fflush(nil)
    }
}

/// Seconds on a clock that only goes forward.
func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

extension [Double] {
    /// The smallest value that so great a part of all values does not exceed.
    func quantile(_ part: Double) -> Double {
        let sorted = sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[Swift.max(0, Int((Double(sorted.count) * part).rounded(.up)) - 1)]
    }
}
