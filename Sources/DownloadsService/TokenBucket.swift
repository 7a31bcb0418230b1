import PodcastModel

/// How much may come: a rate, with a second's worth in reserve. Pure; the caller waits as long as it is told.
struct TokenBucket: Sendable {
    /// Bytes a second; 0: no limit.
    private(set) var rate: UInt64
    private var tokens: Double
    private var at: MonotonicTime

    init(rate: UInt64, now: MonotonicTime) {
        self.rate = rate
        tokens = Double(rate)
        at = now
    }

    /// Takes `bytes` out, and says how long to wait until they would have come at this rate.
    mutating func take(_ bytes: Int, now: MonotonicTime) -> Duration {
        guard rate > 0 else { return .zero }
        tokens = min(Double(rate), tokens + max(0, now.since(at) / .seconds(1)) * Double(rate))
        at = now
        tokens -= Double(bytes)
        return tokens >= 0 ? .zero : .seconds(-tokens / Double(rate))
    }

    /// Changes the rate; what is owed at the old one is forgiven.
    mutating func set(rate: UInt64, now: MonotonicTime) {
        self = TokenBucket(rate: rate, now: now)
    }
}
