/// A time on the monotonic clock of one boot, and the same time in UTC for observers of another boot or machine.
public struct BootTime: Sendable, Hashable {
    /// The time on CLOCK_MONOTONIC of the boot `bootID`.
    public var at: MonotonicTime
    /// The boot in which `at` was read, as in `/proc/sys/kernel/random/boot_id`.
    public var bootID: String
    /// The same time in UTC.
    public var wall: Timestamp

    /// Creates a time of a boot.
    public init(at: MonotonicTime, bootID: String, wall: Timestamp) {
        (self.at, self.bootID, self.wall) = (at, bootID, wall)
    }

    /// The seconds from this time to `now`, negative if this time is in the future. An observer of another boot or
    /// machine than `bootID` uses the wall clock, whose adjustments aren’t detected.
    public func elapsed(at now: Moment, bootID: String) -> Double {
        bootID == self.bootID ? now.monotonic.since(at) / .seconds(1) : now.wall.seconds - wall.seconds
    }

    /// The seconds from `now` to this time; 0 if it is in the past.
    public func remaining(at now: Moment, bootID: String) -> Double { max(0, -elapsed(at: now, bootID: bootID)) }
}
