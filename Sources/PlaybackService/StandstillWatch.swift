import BusKit
import PodcastModel

/// Detects that the position of playback doesn’t advance.
///
/// It counts positions instead of measuring time, because a stopped process or a sleeping computer isn’t a stall.
struct StandstillWatch: Sendable, Hashable {
    static let interval = Duration.milliseconds(500)
    /// The smallest change of the position that counts as a move, in seconds.
    private static let step = 0.05

    /// The number of positions without a move that mean a stall.
    private let limit: Int
    private var last: PlaybackPosition?
    private var at: MonotonicTime?
    private var unmoved = 0

    init(limit: Int = 3) {
        self.limit = limit
    }

    /// Handles a reported position.
    ///
    /// - Returns: whether the position should have moved and hasn’t for too long.
    mutating func isStalled(at position: PlaybackPosition, isRunning: Bool, now: MonotonicTime) -> Bool {
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
