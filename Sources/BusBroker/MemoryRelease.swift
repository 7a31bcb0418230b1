import PodcastModel

/// Decides when free memory goes back to the system: the allocator keeps what many observers, or a burst, have needed.
struct MemoryRelease: Sendable {
    /// Between two releases, each of which takes some milliseconds.
    static var interval: Duration { .seconds(30) }

    private var next: MonotonicTime?
    private var departures = 0
    private var bytes = 0

    mutating func observersLeft(_ count: Int) { departures += count }

    mutating func carried(_ count: Int) { bytes += count }

    /// Whether enough has gone that a release is worth its time. True at most once in `interval`.
    mutating func isDue(now: MonotonicTime) -> Bool {
        guard departures >= 16 || bytes >= 8 << 20 else {
            next = nil
            return false
        }
        guard let next else {
            self.next = now.advanced(by: Self.interval)
            return false
        }
        guard now >= next else { return false }
        self = MemoryRelease()
        return true
    }
}
