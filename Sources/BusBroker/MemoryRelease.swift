import PodcastModel

/// Decides when free memory is returned to the system after bursts and after many observers have left.
struct MemoryRelease: Sendable {
    /// The interval between two releases, each of which takes a few milliseconds.
    static var interval: Duration { .seconds(30) }

    private var next: MonotonicTime?
    private var departures = 0
    private var bytes = 0

    mutating func observersLeft(_ count: Int) { departures += count }

    mutating func carried(_ count: Int) { bytes += count }

    /// Whether so much memory was freed that it should be returned now. True at most once per `interval`.
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
