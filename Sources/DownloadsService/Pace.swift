import PodcastModel

/// The intervals at which a transfer saves, checks the free space and reports its progress, and its speed.
struct Pace {
    private static let saveInterval = Duration.seconds(10)
    private static let reportInterval = Duration.milliseconds(250)
    /// The interval between checks of the free space in bytes; below the reserve, so that the reserve is never used up.
    private static let spaceCheckInterval: UInt64 = 8 << 20

    private var saved: MonotonicTime
    private var reported: MonotonicTime
    private var reportedBytes: UInt64
    private var checkedBytes: UInt64

    init(now: MonotonicTime, received: UInt64) {
        (saved, reported, reportedBytes, checkedBytes) = (now, now, received, received)
    }

    mutating func isSpaceCheckDue(_ received: UInt64) -> Bool {
        guard received - checkedBytes >= Self.spaceCheckInterval else { return false }
        checkedBytes = received
        return true
    }

    mutating func isSaveDue(_ now: MonotonicTime) -> Bool {
        guard now.since(saved) >= Self.saveInterval else { return false }
        saved = now
        return true
    }

    /// The bytes a second since the last report; nil if no report is due.
    mutating func speed(at received: UInt64, _ now: MonotonicTime) -> Double? {
        let elapsed = now.since(reported)
        guard elapsed >= Self.reportInterval else { return nil }
        defer { (reported, reportedBytes) = (now, received) }
        return Double(received - reportedBytes) / (elapsed / .seconds(1))
    }
}
