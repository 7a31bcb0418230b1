import LockstepClient
import PodcastModel

/// Where to seek, as it is written: `12:34`, `90`, `1h30m`, `50%`, `+30`, `-15`, `+1:30`, `-2m`.
enum SeekExpression: Sendable, Hashable {
    /// Seconds from the start.
    case absolute(Double)
    /// Part of the whole, 0 to 1.
    case fraction(Double)
    /// Seconds from where it is.
    case relative(Double)

    /// The forms, for people.
    static let forms = "12:34, 90 (seconds), 1h30m, 50%, +30 or -15"

    private static func seconds(_ text: some StringProtocol) -> Double? {
        TimeText.seconds(text) ?? TimeText.spelled(text.lowercased())
    }

    /// Nil unless `text` is one of the forms. A minus may be the typographic one.
    init?(_ text: String) {
        if let sign = text.first, "+-−".contains(sign) {
            guard let seconds = Self.seconds(text.dropFirst()) else { return nil }
            self = .relative(sign == "+" ? seconds : -seconds)
        } else if text.hasSuffix("%") {
            guard let percent = TimeText.number(text.dropLast()), percent <= 100 else { return nil }
            self = .fraction(percent / 100)
        } else {
            guard let seconds = Self.seconds(text) else { return nil }
            self = .absolute(seconds)
        }
    }

    /// How near the end a relative seek goes, in seconds.
    static let endMargin = 1.0

    /// The position that it means at `position` of an episode of `duration` (nil: unknown).
    ///
    /// - Throws: `invalidArgument` beyond the end, or for a percentage of an unknown length.
    func target(from position: Double, duration: Double?) throws(Failure) -> PlaybackPosition {
        switch self {
        case .relative(let delta):
            let end = duration.map { max(0, $0 - Self.endMargin) }
            let wanted = max(0, position + delta)
            // Never backwards on the way forward: close to the end it stays where it is.
            let limited = end.map { delta > 0 ? min(wanted, max($0, position)) : min(wanted, $0) } ?? wanted
            return PlaybackPosition(clamping: limited)
        case .fraction(let part):
            guard let duration else {
                throw Failure(
                    .invalidArgument, "The length of this episode is not known yet. Give a time, such as 12:34.")
            }
            // The very end would count as an absolute position beyond what can be played.
            return PlaybackPosition(clamping: min(duration * part, max(0, duration - Self.endMargin)))
        case .absolute(let seconds):
            if let duration, seconds > duration {
                throw Failure(
                    .invalidArgument,
                    "\(ClockText.format(seconds)) is beyond the end of this episode, which is \(ClockText.format(duration)) long."
                )
            }
            return PlaybackPosition(clamping: seconds)
        }
    }
}

/// `1.5`, `1.5x`, `+0.2`, `up`, `down`; or `80`, `80%`, `-5`, `up`, `down`: a level and steps from it.
enum LevelExpression: Sendable, Hashable {
    case absolute(Double)
    /// So much more, or less.
    case relative(Double)
    /// One step more.
    case up
    /// One step less.
    case down

    /// Nil unless `text` is a number, perhaps with a sign and followed by `unit`, or one of the words.
    init?(_ text: String, unit: Character) {
        switch text {
        case "up": self = .up
        case "down": self = .down
        default:
            let sign = text.first.flatMap { "+-−".contains($0) ? $0 : nil }
            let level = text.last == unit ? text.dropLast() : text[...]
            guard let number = TimeText.number(sign == nil ? level : level.dropFirst()) else { return nil }
            self = sign.map { .relative($0 == "+" ? number : -number) } ?? .absolute(number)
        }
    }

    /// The level that it means from `current`. Steps stop at the ends of `range`; an absolute one is taken as it is.
    func level(from current: Double, step: Double, range: ClosedRange<Double>) -> Double {
        switch self {
        case .absolute(let level): level
        case .relative(let change):
            max(range.lowerBound, min(range.upperBound, ((current + change) * 100).rounded() / 100))
        // Steps lead to multiples of the step, so that up and down meet again.
        case .up: min(range.upperBound, ((current / step + 1e-6).rounded(.down) + 1) * step)
        case .down: max(range.lowerBound, ((current / step - 1e-6).rounded(.up) - 1) * step)
        }
    }
}
