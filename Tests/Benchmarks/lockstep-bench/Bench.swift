import Foundation
import ZeroMQ

/// A run of the measurements in a fixed order.
struct Bench {
    let folder: String
    let observers: [Int]
    /// The names of the measurements to run; all if empty.
    let wanted: Set<String>

    init(arguments: [String], environment: [String: String]) throws {
        folder = environment["LOCKSTEP_BENCH_FOLDER"] ?? "/tmp/lsb-\(getpid())"
        func list(_ option: String) -> [Substring]? {
            guard let index = arguments.firstIndex(of: option), index + 1 < arguments.count else { return nil }
            return arguments[index + 1].split(separator: ",")
        }
        observers = (list("--observers") ?? ["1", "10", "100"]).compactMap { Int($0) }
        wanted = Set((list("--only") ?? []).map(String.init))
    }

    func run() throws {
        _ = try FileDescriptorLimit.raise()
        try measure("parse") { try Parsing.measure(folder + "/parse.xml") }
        let fleet = try BenchFleet(home: folder + "/h", episodes: 4_200, observers: observers.max() ?? 0)
        defer { fleet.end() }
        try measure("up", isWanted: true) { try ProcessMeasurements.timeToReady(fleet) }
        try fleet.lockstep("subscribe", fleet.feed)
        try measure("memory", "idle") { try ProcessMeasurements.memory(fleet, "idle", budget: 80) }
        try measure("cpu", "idle") { try ProcessMeasurements.idleProcessor(fleet) }
        try measure("play", isWanted: true) { try fleet.lockstep("play", fleet.firstEpisode()) }
        try measure("memory", "playing") { try ProcessMeasurements.memory(fleet, "playing", budget: 150) }
        for count in observers { try measure("pause", "to \(count)") { try FanOut.measure(fleet, observers: count) } }
        if observers.contains(where: { $0 >= 1_000 }) {
            try measure("memory", "of the bus") { try ProcessMeasurements.busAfterObservers(fleet) }
        }
        try measure("pause", "after quiet") { try FanOut.measureCold(fleet) }
        try measure("command") { try Commands.measure(fleet) }
        try measure("throughput") { try Throughput.measure(fleet) }
        try measure("queue") { try QueueAdds.measure(fleet) }
        try measure("memory", "stressed") { try ProcessMeasurements.memory(fleet, "stressed", budget: 300) }
        try measure("kills") { try ProcessMeasurements.killToServing(fleet, rounds: 20) }
        try measure("hung") { try ProcessMeasurements.hungToServing(fleet) }
        // Measurements that enlarge the state come last: the budgets above are those of a queue of 4,200.
        try measure("episodes") { try Commands.measureLong(fleet) }
        try measure("long") { try LongQueue.measure(fleet) }
        try measure("library") {
            try fleet.lockstep("down")
            let fleet = try BenchFleet(home: folder + "/l", episodes: 1, observers: 0)
            defer { fleet.end() }
            try Library.measure(fleet)
            try fleet.lockstep("subscribe", fleet.feed)
            let client = try RawClient(fleet)
            let playable = try client.episodes(limit: 1, podcast: client.podcast(titled: "Bench"))
            try fleet.lockstep("play", playable[0])
            try ProcessMeasurements.memory(fleet, "library.playing", budget: 150)
            try Commands.measureInLibrary(fleet)
        }
    }

    /// Runs one measurement; if it fails, reports that and continues.
    private func measure(_ name: String, _ what: String = "", isWanted: Bool = false, _ body: () throws -> Void) throws
    {
        guard isWanted || wanted.isEmpty || wanted.contains(name) else { return }
        FileHandle.standardError.write(Data("  \(name) \(what)\n".utf8))
        do { try body() } catch {
            FileHandle.standardError.write(Data("  \(name) \(what) could not be measured: \(error)\n".utf8))
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

/// Returns the seconds on a monotonic clock.
func monotonicSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

extension [Double] {
    /// Returns the smallest value that at least `part` of all values don’t exceed.
    func quantile(_ part: Double) -> Double {
        let sorted = sorted()
        guard !sorted.isEmpty else { return .nan }
        return sorted[Swift.max(0, Int((Double(sorted.count) * part).rounded(.up)) - 1)]
    }
}
