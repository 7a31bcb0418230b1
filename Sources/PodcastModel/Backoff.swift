/// How long to wait before the next attempt, by how many have failed in a row.
public struct Backoff: Sendable, Hashable {
    private enum Schedule: Sendable, Hashable {
        case exponential(first: Duration, longest: Duration, jitter: Double)
        case steps([Duration])
    }

    /// Doubling stops here, so that no duration overflows; the longest wait is reached long before.
    private static let maximumDoublings = 20

    private let schedule: Schedule
    /// The number of retries before it is time to give up; `Int.max` where they never end.
    public let retryLimit: Int

    /// Waits that double, without an end.
    ///
    /// - Parameter jitter: the part of a wait by which it varies up or down, so that peers do not retry in step. No wait
    ///   exceeds `longest`, below which the longest ones are spread.
    public static func exponential(first: Duration, longest: Duration, jitter: Double = 0) -> Backoff {
        Backoff(schedule: .exponential(first: first, longest: longest, jitter: jitter), retryLimit: .max)
    }

    /// A list of waits, after which it is time to give up; or whose last one repeats without an end.
    public static func steps(_ waits: [Duration], repeatsLast: Bool) -> Backoff {
        Backoff(schedule: .steps(waits), retryLimit: repeatsLast && !waits.isEmpty ? .max : waits.count)
    }

    /// The same wait each time.
    public static func constant(_ wait: Duration, retries: Int = .max) -> Backoff {
        Backoff(schedule: .steps([wait]), retryLimit: retries)
    }

    /// Whether another attempt follows the last of so many failures.
    public func allowsRetry(after failures: Int) -> Bool { failures <= retryLimit }

    /// The wait after the last of so many failures in a row, from 1 on.
    ///
    /// - Parameter random: a number from 0 to below 1, which jitter depends on.
    public func wait(after failures: Int = 1, random: Double = 0.5) -> Duration {
        let former = max(0, failures - 1)
        switch schedule {
        case .exponential(let first, let longest, let jitter):
            let wait = first * (1 << min(former, Self.maximumDoublings))
            guard jitter > 0 else { return min(wait, longest) }
            return min(wait, longest / (1 + jitter)) * (1 + jitter * (2 * random - 1))
        case .steps(let waits): return waits.isEmpty ? .zero : waits[min(former, waits.count - 1)]
        }
    }
}
