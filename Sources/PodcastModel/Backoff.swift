/// The waits before the next attempt, by the number of consecutive failures. The names of all constants of this type
/// end with `Backoff`.
public struct Backoff: Sendable, Hashable {
    private enum Schedule: Sendable, Hashable {
        case exponential(first: Duration, longest: Duration, jitter: Double)
        case steps([Duration])
    }

    /// The maximum number of doublings, with which no duration overflows. Every schedule reaches its longest wait earlier.
    private static let maximumDoublings = 20

    private let schedule: Schedule
    /// The maximum number of retries; `Int.max` if there is no limit.
    public let retryLimit: Int

    /// Creates exponential waits without a limit on retries.
    ///
    /// - Parameter jitter: the part of a wait by which it varies up or down, so that peers don’t retry in step. No wait
    ///   exceeds `longest`; the longest ones are spread below it.
    public static func exponential(first: Duration, longest: Duration, jitter: Double = 0) -> Backoff {
        Backoff(schedule: .exponential(first: first, longest: longest, jitter: jitter), retryLimit: .max)
    }

    /// Creates a list of waits, after which retries end or the last wait repeats.
    public static func steps(_ waits: [Duration], repeatsLast: Bool) -> Backoff {
        Backoff(schedule: .steps(waits), retryLimit: repeatsLast && !waits.isEmpty ? .max : waits.count)
    }

    /// Creates a backoff with the same wait before each retry.
    public static func constant(_ wait: Duration, retries: Int = .max) -> Backoff {
        Backoff(schedule: .steps([wait]), retryLimit: retries)
    }

    /// Whether another attempt follows this number of failures.
    public func allowsRetry(after failures: Int) -> Bool { failures <= retryLimit }

    /// The wait after this number of consecutive failures, from 1.
    ///
    /// - Parameter random: a number from 0 to below 1, from which jitter is derived.
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
