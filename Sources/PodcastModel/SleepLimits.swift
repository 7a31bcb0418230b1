/// How far ahead a sleep timer may be set.
public enum SleepLimits {
    /// The longest time, in seconds: a day.
    public static let seconds = 86_400.0
    /// The maximum number of episodes.
    public static let episodes: UInt32 = 100
}
