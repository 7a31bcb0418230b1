import LockstepClient
import PodcastModel

/// Assigns the digits that answer alerts. A digit is kept while its answer is possible. After that it is reserved for a few
/// seconds, so that a key pressed for a closed alert doesn’t answer another one, and then reused.
struct AlertKeys: Sendable {
    private struct Answer: Hashable {
        var alert: AlertID
        var action: String
    }

    /// The time for which a released digit stays reserved.
    static let reservation = Duration.seconds(5)

    private var digits: [Answer: Int] = [:]
    private var freed: [Int: MonotonicTime] = [:]

    /// The time at which the next released digit is available; nil if none is reserved.
    var nextRelease: MonotonicTime? { freed.values.min()?.advanced(by: Self.reservation) }

    /// Releases the digits of answers that are no longer possible, and assigns available ones.
    mutating func update(_ alerts: [PlayerSnapshot.Alert], now: MonotonicTime) {
        let answers = alerts.flatMap { alert in alert.actions.map { Answer(alert: alert.id, action: $0) } }
        let open = Set(answers)
        freed = freed.filter { now.since($0.value) < Self.reservation }
        for (answer, digit) in digits where !open.contains(answer) {
            digits[answer] = nil
            freed[digit] = now
        }
        var free = Set(1...9).subtracting(digits.values).subtracting(freed.keys).sorted()[...]
        for answer in answers where digits[answer] == nil {
            digits[answer] = free.popFirst()
        }
    }

    func applied(to alerts: [PlayerSnapshot.Alert]) -> [PlayerSnapshot.Alert] {
        alerts.map { alert in
            var alert = alert
            alert.keys = alert.actions.map { digits[Answer(alert: alert.id, action: $0)] }
            return alert
        }
    }
}
