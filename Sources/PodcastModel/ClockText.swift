/// Formats positions and durations in hours, minutes and seconds.
public enum ClockText {
    /// The tolerance for a late position, in seconds: the anchor’s relative to the engine’s, or the engine’s relative to
    /// the requested one.
    public static let tolerance = 0.05

    /// Rounds a position down to whole seconds, within `tolerance`.
    public static func wholeSeconds(_ seconds: Double) -> Int { Int(max(0, min(seconds + tolerance, 360_000_000))) }

    /// Formats whole seconds, such as `0:07`, `12:34` or `1:02:03`; `--:--` if they are unknown (nil).
    public static func format(_ seconds: Double?) -> String {
        guard let seconds, seconds.isFinite else { return "--:--" }
        let whole = wholeSeconds(seconds)
        let (hours, minutes, rest) = (whole / 3_600, whole / 60 % 60, whole % 60)
        return hours > 0 ? "\(hours):\(padded(minutes, 2)):\(padded(rest, 2))" : "\(minutes):\(padded(rest, 2))"
    }
}

/// Pads a number with zeros to a width.
func padded(_ value: some CustomStringConvertible, _ width: Int) -> String {
    let digits = value.description
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
}
