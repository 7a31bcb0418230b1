/// The limits of a sleep timer.
public enum SleepLimits {
    /// The maximum time, in seconds: a day.
    public static let seconds = 86_400.0
    /// The maximum number of episodes.
    public static let episodes: UInt32 = 100
}
