/// A position within an episode, in seconds from its start; finite and not negative.
public struct PlaybackPosition: Sendable, Hashable, Comparable {
    /// The number of seconds from the start.
    public let seconds: Double

    /// The start of an episode.
    public static let zero = PlaybackPosition(clamping: 0)

    /// Creates a position; nil for a negative number, an infinity or NaN.
    public init?(seconds: Double) {
        guard seconds.isFinite, seconds >= 0 else { return nil }
        self.seconds = seconds
    }

    /// The nearest position to `seconds`; the start for a negative number, an infinity or NaN.
    public init(clamping seconds: Double) {
        self.seconds = seconds.isFinite ? max(0, seconds) : 0
    }

    /// Orders positions by time.
    public static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }
}

/// The length of an episode, in seconds; finite and more than zero. An unknown length is nil.
public struct EpisodeDuration: Sendable, Hashable, Comparable {
    /// The length in seconds.
    public let seconds: Double

    /// Creates a length; nil for zero, a negative number, an infinity or NaN.
    public init?(seconds: Double) {
        guard seconds.isFinite, seconds > 0 else { return nil }
        self.seconds = seconds
    }

    /// Orders lengths by their seconds.
    public static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }
}

/// The playback speed, with the pitch preserved: a factor from 0.5 to 3.5.
public struct PlaybackSpeed: Sendable, Hashable, Comparable {
    /// The factor; 1 is the recorded speed.
    public let factor: Double

    /// The range that the service accepts.
    public static let range = 0.5...3.5
    /// The recorded speed.
    public static let normal = PlaybackSpeed(unchecked: 1)

    /// Creates a speed; nil outside 0.5 to 3.5 and for NaN.
    public init?(factor: Double) {
        guard Self.range.contains(factor) else { return nil }
        self.factor = factor
    }

    /// Creates a peer’s reported speed, whose range may differ in other versions; nil unless it is finite and above 0.
    public init?(reported factor: Double) {
        guard factor.isFinite, factor > 0 else { return nil }
        self.factor = factor
    }

    private init(unchecked factor: Double) { self.factor = factor }

    /// Orders speeds by their factors.
    public static func < (left: Self, right: Self) -> Bool { left.factor < right.factor }
}

/// A volume in per cent, from 0 (silent) to 100 (as recorded).
public struct Volume: Sendable, Hashable, Comparable {
    /// The volume in per cent.
    public let percent: Double

    /// The range that the service accepts.
    public static let range = 0.0...100.0
    /// The recorded volume.
    public static let full = Volume(unchecked: 100)

    /// Creates a volume; nil outside 0 to 100 and for NaN.
    public init?(percent: Double) {
        guard Self.range.contains(percent) else { return nil }
        self.percent = percent
    }

    private init(unchecked percent: Double) { self.percent = percent }

    /// Orders volumes by their percentages.
    public static func < (left: Self, right: Self) -> Bool { left.percent < right.percent }
}

/// A time in UTC: milliseconds since 1970, the form on the wire and in the database.
public struct Timestamp: Sendable, Hashable, Comparable, Codable {
    /// The milliseconds since 1970-01-01 00:00:00 UTC.
    public let milliseconds: Int64

    /// Creates a time from milliseconds since 1970-01-01 00:00:00 UTC.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The seconds since 1970.
    public var seconds: Double { Double(milliseconds) / 1_000 }

    /// Orders timestamps by time.
    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }
}

/// A time on CLOCK_MONOTONIC of one boot, in nanoseconds, for deadlines, timers and anchors.
public struct MonotonicTime: Sendable, Hashable, Comparable {
    /// The nanoseconds since an arbitrary start, the same in all processes of one boot.
    public let nanoseconds: UInt64

    /// Creates a time from a reading of CLOCK_MONOTONIC.
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// Adds `duration`, which may be negative; the result is never before the clock’s start.
    public func advanced(by duration: Duration) -> MonotonicTime {
        let (seconds, attoseconds) = duration.components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        let delta = overflow ? (seconds < 0 ? Int64.min : Int64.max) : whole &+ attoseconds / 1_000_000_000
        if delta >= 0 {
            let (sum, over) = nanoseconds.addingReportingOverflow(UInt64(delta))
            return MonotonicTime(nanoseconds: over ? .max : sum)
        }
        let back = delta.magnitude
        return MonotonicTime(nanoseconds: back > nanoseconds ? 0 : nanoseconds - back)
    }

    /// The time elapsed since `earlier`; negative if `earlier` is later.
    public func since(_ earlier: MonotonicTime) -> Duration {
        nanoseconds >= earlier.nanoseconds
            ? .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - nanoseconds))
    }

    /// Orders times of one boot.
    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

/// A reading of both clocks, which a shell passes to a state machine as “now”.
public struct Moment: Sendable, Hashable {
    /// The time for deadlines, intervals and anchors.
    public var monotonic: MonotonicTime
    /// The time for storage and display.
    public var wall: Timestamp

    /// Creates a reading of both clocks.
    public init(monotonic: MonotonicTime, wall: Timestamp) {
        (self.monotonic, self.wall) = (monotonic, wall)
    }
}
