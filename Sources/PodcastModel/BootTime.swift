/// A moment on the monotonic clock of one boot, and the same moment in UTC for observers of another boot or machine.
public struct BootTime: Sendable, Hashable {
    /// The moment on CLOCK_MONOTONIC of the boot `bootID`.
    public var at: MonotonicTime
    /// The boot that `at` was read in, as in `/proc/sys/kernel/random/boot_id`.
    public var bootID: String
    /// The same moment in UTC.
    public var wall: Timestamp

    /// A moment of a boot.
    public init(at: MonotonicTime, bootID: String, wall: Timestamp) {
        (self.at, self.bootID, self.wall) = (at, bootID, wall)
    }

    /// The seconds that have passed at `now` for an observer of the boot `bootID`, negative before the moment. Another boot
    /// or machine goes by wall clock, whose steps it cannot see.
    public func elapsed(at now: Moment, bootID: String) -> Double {
        bootID == self.bootID ? now.monotonic.since(at) / .seconds(1) : now.wall.seconds - wall.seconds
    }

    /// The seconds that are left at `now` until the moment; 0 after it.
    public func remaining(at now: Moment, bootID: String) -> Double { max(0, -elapsed(at: now, bootID: bootID)) }
}
