import PodcastModel

/// When a transfer saves, checks the free space and reports its progress, and how fast it is.
struct Pace {
    private var saved: MonotonicTime
    private var reported: MonotonicTime
    private var reportedBytes: UInt64
    private var checkedBytes: UInt64

    init(now: MonotonicTime, received: UInt64) {
        (saved, reported, reportedBytes, checkedBytes) = (now, now, received, received)
    }

    mutating func isSpaceCheckDue(_ received: UInt64, every bytes: UInt64) -> Bool {
        guard received - checkedBytes >= bytes else { return false }
        checkedBytes = received
        return true
    }

    mutating func isSaveDue(_ now: MonotonicTime, every interval: Duration) -> Bool {
        guard now.since(saved) >= interval else { return false }
        saved = now
        return true
    }

    /// The bytes a second since the last report; nil: no report is due.
    mutating func speed(at received: UInt64, _ now: MonotonicTime, every interval: Duration) -> Double? {
        let elapsed = now.since(reported)
        guard elapsed >= interval else { return nil }
        defer { (reported, reportedBytes) = (now, received) }
        return Double(received - reportedBytes) / (elapsed / .seconds(1))
    }
}
