/// Formats positions and lengths like a clock.
public enum ClockText {
    /// The tolerance for positions that lag, in seconds: an anchor behind the engine, the engine behind the requested
    /// position.
    public static let grace = 0.05

    /// The whole seconds that have passed.
    public static func wholeSeconds(_ seconds: Double) -> Int { Int(max(0, min(seconds + grace, 360_000_000))) }

    /// Formats elapsed whole seconds: `0:07`, `12:34`, `1:02:03`. Unknown (nil): `--:--`.
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
