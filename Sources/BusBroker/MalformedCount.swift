import PodcastModel

/// Counts malformed messages and reports them at most once a second.
struct MalformedCount: Sendable {
    private(set) var total: UInt64 = 0
    private var unreported: UInt64 = 0
    private var lastReason = ""
    private var lastReport: MonotonicTime?

    mutating func add(_ socket: String, _ reason: String) {
        total += 1
        unreported += 1
        lastReason = "\(socket): \(reason)"
    }

    /// The line to log; nil if nothing is new, or the last line is less than a second old.
    mutating func report(now: MonotonicTime) -> String? {
        guard unreported > 0 else { return nil }
        if let lastReport, now.since(lastReport) < .seconds(1) { return nil }
        defer { unreported = 0 }
        lastReport = now
        return "dropped \(unreported) malformed messages, \(total) in all; the last on \(lastReason)"
    }
}
