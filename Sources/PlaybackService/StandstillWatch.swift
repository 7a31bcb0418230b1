import BusKit
import PodcastModel

/// Notices that playback stands still.
///
/// It counts positions, and measures no time: after a stop of the process, or the computer’s sleep, playback hasn’t
/// stood still.
struct StandstillWatch: Sendable, Hashable {
    static let interval = Duration.milliseconds(500)
    /// The smallest move, in seconds.
    private static let step = 0.05

    /// The number of positions without a move that mean a standstill.
    private let limit: Int
    private var last: PlaybackPosition?
    private var at: MonotonicTime?
    private var unmoved = 0

    init(limit: Int = 3) {
        self.limit = limit
    }

    /// Handles a reported position.
    ///
    /// - Returns: whether it should move and has stood still for too long.
    mutating func standsStill(at position: PlaybackPosition, isRunning: Bool, now: MonotonicTime) -> Bool {
        guard isRunning, let last, let at, abs(last.seconds - position.seconds) < Self.step else {
            (self.last, self.at, unmoved) = isRunning ? (position, now, 0) : (nil, nil, 0)
            return false
        }
        if now.since(at) >= Self.interval {
            self.at = now
            unmoved += 1
        }
        return unmoved >= limit
    }
}
