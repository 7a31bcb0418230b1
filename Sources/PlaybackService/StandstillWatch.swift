import BusKit
import PodcastModel

/// Notices that what should sound stays where it is.
///
/// It counts positions, and measures no time: a process that was stopped, or a machine that slept, has not stood still.
struct StandstillWatch: Sendable, Hashable {
    /// The shortest time between two positions that count.
    static let interval = Duration.milliseconds(500)
    /// A move of less than this, in seconds, counts as standing still.
    private static let step = 0.05

    /// The number of positions in a row without a move that mean a standstill.
    private let limit: Int
    private var place: PlaybackPosition?
    /// When the last position that counts was reported.
    private var at: MonotonicTime?
    private var unmoved = 0

    init(limit: Int = 3) {
        self.limit = limit
    }

    /// Handles a reported position.
    ///
    /// - Returns: whether it should sound and has stood still for too long.
    mutating func standsStill(at position: PlaybackPosition, isRunning: Bool, now: MonotonicTime) -> Bool {
        guard isRunning, let place, let at, abs(place.seconds - position.seconds) < Self.step else {
            (self.place, self.at, unmoved) = isRunning ? (position, now, 0) : (nil, nil, 0)
            return false
        }
        if now.since(at) >= Self.interval {
            self.at = now
            unmoved += 1
        }
        return unmoved >= limit
    }
}
