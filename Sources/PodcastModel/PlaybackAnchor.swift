/// The position of the player at a time, and whether it advances.
///
/// Every observer computes the same position from the same anchor. A new anchor is published at each discontinuity
/// (play, pause, seek, speed) and when the engine deviates by more than 50 ms from the current one.
public struct PlaybackAnchor: Sendable, Hashable {
    /// The position at the time `at`.
    public var position: PlaybackPosition
    /// The number of seconds of the episode that pass in a second of playback.
    public var speed: PlaybackSpeed
    /// The time on CLOCK_MONOTONIC of the boot `bootID`.
    public var at: MonotonicTime
    /// The boot in which `at` was read, as in `/proc/sys/kernel/random/boot_id`.
    public var bootID: String
    /// Whether the position advances; it doesn’t while paused, loading or failed.
    public var running: Bool
    /// The same time in UTC, for observers of another boot or machine.
    public var wall: Timestamp

    /// Creates an anchor at `position`.
    public init(
        position: PlaybackPosition, speed: PlaybackSpeed = .normal, at: MonotonicTime, bootID: String, running: Bool,
        wall: Timestamp
    ) {
        (self.position, self.speed, self.running) = (position, speed, running)
        (self.at, self.bootID, self.wall) = (at, bootID, wall)
    }

    /// The position at `now` of the same boot, from the start to `duration` if that is known.
    ///
    /// If `now` is before the anchor, the result is the anchor’s position: the clocks of two processors may differ by
    /// nanoseconds, and the position must not decrease.
    public func position(at now: MonotonicTime, duration: EpisodeDuration? = nil) -> PlaybackPosition {
        advanced(by: running ? now.since(at) / .seconds(1) : 0, duration: duration)
    }

    /// The position at `now` for an observer of the boot `bootID`: for another boot or machine than the anchor’s the
    /// wall clock is used, whose adjustments aren’t detected.
    public func position(at now: Moment, bootID: String, duration: EpisodeDuration? = nil) -> PlaybackPosition {
        let moment = BootTime(at: at, bootID: self.bootID, wall: wall)
        return advanced(by: running ? moment.elapsed(at: now, bootID: bootID) : 0, duration: duration)
    }

    /// The remaining time from `now` to `duration`, in seconds of the episode, not of the clock.
    public func remaining(at now: MonotonicTime, duration: EpisodeDuration) -> Double {
        max(0, duration.seconds - position(at: now, duration: duration).seconds)
    }

    private func advanced(by elapsed: Double, duration: EpisodeDuration?) -> PlaybackPosition {
        let seconds = position.seconds + max(0, elapsed) * speed.factor
        return PlaybackPosition(clamping: min(seconds, duration?.seconds ?? .greatestFiniteMagnitude))
    }
}
