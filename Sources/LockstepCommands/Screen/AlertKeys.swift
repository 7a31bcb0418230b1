import LockstepClient
import PodcastModel

/// The digits that answer alerts. A digit stays with its answer for as long as that can be given; a digit that has become
/// free answers nothing for a moment, so that a key pressed for an alert that has just gone isn’t taken for another one.
struct AlertKeys: Sendable {
    /// An answer to an alert.
    private struct Answer: Hashable {
        var alert: AlertID
        var action: String
    }

    /// The time for which a freed digit isn’t used.
    static let pause = Duration.seconds(5)

    private var digits: [Answer: Int] = [:]
    private var freed: [Int: MonotonicTime] = [:]

    /// The time at which the next freed digit can be used again; nil: none is held back.
    var nextRelease: MonotonicTime? { freed.values.min()?.advanced(by: Self.pause) }

    /// Frees the digits of answers that can’t be given any more, and gives digits to those that have none.
    mutating func update(_ alerts: [PlayerSnapshot.Alert], now: MonotonicTime) {
        let answers = alerts.flatMap { alert in alert.actions.map { Answer(alert: alert.id, action: $0) } }
        let open = Set(answers)
        freed = freed.filter { now.since($0.value) < Self.pause }
        for (answer, digit) in digits where !open.contains(answer) {
            digits[answer] = nil
            freed[digit] = now
        }
        var free = Set(1...9).subtracting(digits.values).subtracting(freed.keys).sorted()[...]
        for answer in answers where digits[answer] == nil {
            digits[answer] = free.popFirst()
        }
    }

    /// The alerts with their digits.
    func applied(to alerts: [PlayerSnapshot.Alert]) -> [PlayerSnapshot.Alert] {
        alerts.map { alert in
            var alert = alert
            alert.keys = alert.actions.map { digits[Answer(alert: alert.id, action: $0)] }
            return alert
        }
    }
}
