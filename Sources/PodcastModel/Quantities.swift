/// A moment within an episode, in seconds from its start; finite and not negative.
public struct PlaybackPosition: Sendable, Hashable, Comparable {
    /// Seconds from the start.
    public let seconds: Double

    /// The start of an episode.
    public static let zero = PlaybackPosition(clamping: 0)

    /// Nil for a negative number, an infinity or NaN.
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

/// The length of an episode, in seconds; finite and more than zero. An unknown length is an absent one.
public struct EpisodeDuration: Sendable, Hashable, Comparable {
    /// The length in seconds.
    public let seconds: Double

    /// Nil for zero, a negative number, an infinity or NaN.
    public init?(seconds: Double) {
        guard seconds.isFinite, seconds > 0 else { return nil }
        self.seconds = seconds
    }

    /// Orders lengths by their seconds.
    public static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }
}

/// How fast an episode plays, its pitch kept: a factor from 0.5 to 3.5.
public struct PlaybackSpeed: Sendable, Hashable, Comparable {
    /// The factor; 1 is the speed that it was recorded at.
    public let factor: Double

    /// The range that the service accepts.
    public static let range = 0.5...3.5
    /// The speed of the recording.
    public static let normal = PlaybackSpeed(unchecked: 1)

    /// Nil outside 0.5 to 3.5 and for NaN.
    public init?(factor: Double) {
        guard Self.range.contains(factor) else { return nil }
        self.factor = factor
    }

    /// A speed as a peer says that it plays, which may accept others than this version; nil unless it is finite and above 0.
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
    /// The volume of the recording.
    public static let full = Volume(unchecked: 100)

    /// Nil outside 0 to 100 and for NaN.
    public init?(percent: Double) {
        guard Self.range.contains(percent) else { return nil }
        self.percent = percent
    }

    private init(unchecked percent: Double) { self.percent = percent }

    /// Orders volumes by their percentages.
    public static func < (left: Self, right: Self) -> Bool { left.percent < right.percent }
}

/// A moment in UTC: milliseconds since 1970, which the wire and the database store.
public struct Timestamp: Sendable, Hashable, Comparable, Codable {
    /// Milliseconds since 1970-01-01 00:00:00 UTC.
    public let milliseconds: Int64

    /// The moment that many milliseconds after 1970-01-01 00:00:00 UTC.
    public init(milliseconds: Int64) { self.milliseconds = milliseconds }

    /// The seconds since 1970.
    public var seconds: Double { Double(milliseconds) / 1_000 }

    /// Orders moments by time.
    public static func < (left: Self, right: Self) -> Bool { left.milliseconds < right.milliseconds }
}

/// A moment on CLOCK_MONOTONIC of one boot, in nanoseconds, for deadlines, timers and anchors.
public struct MonotonicTime: Sendable, Hashable, Comparable {
    /// Nanoseconds since an arbitrary start, the same in all processes of one boot.
    public let nanoseconds: UInt64

    /// The moment at that reading of the clock.
    public init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    /// The moment later by `duration`; earlier if it is negative; never before the clock’s start.
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

    /// The time from `earlier` to here; negative if `earlier` is later.
    public func since(_ earlier: MonotonicTime) -> Duration {
        nanoseconds >= earlier.nanoseconds
            ? .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
            : .nanoseconds(-Int64(clamping: earlier.nanoseconds - nanoseconds))
    }

    /// Orders moments of one boot.
    public static func < (left: Self, right: Self) -> Bool { left.nanoseconds < right.nanoseconds }
}

/// Both clocks, read together by a shell and handed to a state machine as its "now".
public struct Moment: Sendable, Hashable {
    /// For deadlines, intervals and anchors.
    public var monotonic: MonotonicTime
    /// For what is stored and shown.
    public var wall: Timestamp

    /// A reading of both clocks.
    public init(monotonic: MonotonicTime, wall: Timestamp) {
        (self.monotonic, self.wall) = (monotonic, wall)
    }
}
