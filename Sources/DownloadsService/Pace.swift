import PodcastModel

/// When to save, to look at the space and to tell of what has come, and how fast it does.
struct Pace {
    private var saved: MonotonicTime
    private var told: MonotonicTime
    private var toldBytes: UInt64
    private var lookedAt: UInt64

    init(now: MonotonicTime, received: UInt64) {
        (saved, told, toldBytes, lookedAt) = (now, now, received, received)
    }

    mutating func isToBeLookedAt(_ received: UInt64, every bytes: UInt64) -> Bool {
        guard received - lookedAt >= bytes else { return false }
        lookedAt = received
        return true
    }

    mutating func isToBeSaved(_ now: MonotonicTime, every interval: Duration) -> Bool {
        guard now.since(saved) >= interval else { return false }
        saved = now
        return true
    }

    /// Bytes a second since it was told last; nil: that is not long ago.
    mutating func speed(at received: UInt64, _ now: MonotonicTime, every interval: Duration) -> Double? {
        let elapsed = now.since(told)
        guard elapsed >= interval else { return nil }
        defer { (told, toldBytes) = (now, received) }
        return Double(received - toldBytes) / (elapsed / .seconds(1))
    }
}
