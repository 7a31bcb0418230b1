import PodcastModel

/// Limits a rate, with a burst of one second; the caller waits for the time that it returns.
struct TokenBucket: Sendable {
    /// The rate in bytes a second; 0 means no limit.
    private let rate: UInt64
    private var tokens: Double
    private var at: MonotonicTime

    init(rate: UInt64, now: MonotonicTime) {
        self.rate = rate
        tokens = Double(rate)
        at = now
    }

    /// Consumes `bytes`, and returns the wait until they would have been fetched at this rate.
    mutating func take(_ bytes: Int, now: MonotonicTime) -> Duration {
        guard rate > 0 else { return .zero }
        tokens = min(Double(rate), tokens + max(0, now.since(at) / .seconds(1)) * Double(rate))
        at = now
        tokens -= Double(bytes)
        return tokens >= 0 ? .zero : .seconds(-tokens / Double(rate))
    }
}
