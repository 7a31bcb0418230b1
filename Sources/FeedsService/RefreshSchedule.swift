package import PodcastModel

/// Decides when a feed is refreshed next.
package struct RefreshSchedule: Sendable, Hashable {
    /// Whether feeds are refreshed without a command.
    package var isAutomatic = true
    /// The time between two successful refreshes.
    package var interval = Duration.seconds(3_600)
    /// The maximum wait, despite failures and servers’ requests.
    package var longest = Duration.seconds(86_400)
    /// The waits after failures, before jitter.
    private let failureBackoff = Backoff.exponential(first: .seconds(600), longest: .seconds(86_400))
    private var random: SeededGenerator

    /// - Parameter seed: the seed of the jitter.
    package init(seed: UInt64 = 1) { random = SeededGenerator(seed: seed) }

    /// Returns the time of the next attempt after one at `now`, with `failures` consecutive failures up to it (0 if it
    /// succeeded). Jitter of up to a tenth spreads the refreshes; none is earlier than the server requests.
    package mutating func next(after now: Timestamp, failures: UInt32, retryAfter: Duration? = nil) -> Timestamp {
        let wait = failures == 0 ? min(interval, longest) : failureBackoff.wait(after: Int(failures))
        let jittered = Double(wait.milliseconds) * (0.9 + 0.2 * random.unit())
        let requested = min(retryAfter ?? .zero, longest).milliseconds
        return Timestamp(milliseconds: now.milliseconds + max(Int64(jittered), requested))
    }
}

extension Duration {
    var milliseconds: Int64 {
        let parts = components
        return parts.seconds.multipliedReportingOverflow(by: 1_000).partialValue + parts.attoseconds
            / 1_000_000_000_000_000
    }
}
