import BusKit
import PodcastModel

/// Decides when the rules of smart playlists are evaluated: soon after a change that can matter to them, one at a time,
/// and not all the time during many changes.
package struct SmartPlaylistSchedule: Sendable {
    /// The identity of an evaluation. Results of an earlier one are ignored.
    package typealias EvaluationID = UInt64

    /// The delay from a change to the evaluation, so that changes which belong together share it.
    static let delay = Duration.milliseconds(300)
    /// The delay after an evaluation that failed.
    static let retryBackoff = Backoff.constant(.seconds(1))
    /// The pause after an evaluation, as a multiple of its duration.
    private static let pauseFactor = 4
    /// The bounds of the interval at which a rule with ages is evaluated, and its fraction of the shortest age.
    private static let shortestInterval = 60.0
    private static let longestInterval = 3_600.0
    private static let fractionOfAge = 100.0

    private struct Running {
        var id: EvaluationID
        var playlist: String
        var since: MonotonicTime
    }

    private var due: [String: MonotonicTime] = [:]
    private var running: Running?
    private var lastID: EvaluationID = 0
    private var notBefore: MonotonicTime?

    /// Requires an evaluation after a change; further changes don’t postpone it.
    mutating func change(_ playlist: String, after delay: Duration = delay, now: MonotonicTime) {
        let time = now.advanced(by: delay)
        due[playlist] = min(due[playlist] ?? time, time)
    }

    /// Forgets a deleted playlist.
    mutating func remove(_ playlist: String) { due[playlist] = nil }

    /// Begins the evaluation that is due; nil if none is, or one is in progress.
    mutating func next(now: MonotonicTime) -> (id: EvaluationID, playlist: String)? {
        guard running == nil, notBefore.map({ $0 <= now }) ?? true,
            let first = due.min(by: { ($0.value, $0.key) < ($1.value, $1.key) }), first.value <= now
        else { return nil }
        due[first.key] = nil
        lastID += 1
        running = Running(id: lastID, playlist: first.key, since: now)
        return (lastID, first.key)
    }

    /// The playlist of the evaluation in progress; nil if it isn’t this one.
    func playlist(of id: EvaluationID) -> String? { running?.id == id ? running?.playlist : nil }

    /// Ends the evaluation in progress.
    ///
    /// - Parameter rule: the rule that was evaluated, which may require the next evaluation; nil if it failed.
    mutating func ended(rule: EpisodeRule?, now: MonotonicTime) {
        guard let ended = running else { return }
        running = nil
        let duration = now.since(ended.since)
        notBefore = now.advanced(by: duration * Self.pauseFactor)
        guard let rule else {
            return change(ended.playlist, after: Self.retryBackoff.wait(), now: now)
        }
        guard let age = rule.shortestAge else { return }
        let interval = min(max(age / Self.fractionOfAge, Self.shortestInterval), Self.longestInterval)
        change(ended.playlist, after: .seconds(interval), now: now)
    }

    /// The time at which `next` must be called; nil while an evaluation is in progress or none is due.
    var wake: MonotonicTime? {
        guard running == nil, let first = due.values.min() else { return nil }
        return max(first, notBefore ?? first)
    }
}
