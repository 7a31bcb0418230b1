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

    /// The expression that a text is.
    ///
    /// - Throws: `invalidArgument` unless it is one of the forms.
    static func read(_ text: String) throws(Failure) -> SeekExpression {
        guard let expression = SeekExpression(text) else {
            throw Failure(.invalidArgument, "“\(text)” isn’t a position in an episode. Give \(forms).")
        }
        return expression
    }

    /// What the player is asked for.
    var seekTarget: PlayerClient.SeekTarget {
        switch self {
        case .absolute(let seconds): .to(seconds)
        case .fraction(let part): .fraction(part)
        case .relative(let delta): .by(delta)
        }
    }

    /// Whether it depends on where the episode is, or on its length.
    var isRelative: Bool {
        if case .absolute = self { false } else { true }
    }

    /// The position that it means at `position` of an episode of `duration` (nil: unknown), in seconds.
    ///
    /// - Throws: `invalidArgument` for a part of an unknown length.
    func position(from position: Double, duration: Double?) throws(Failure) -> Double {
        switch self {
        case .absolute(let seconds): return seconds
        case .relative(let delta): return max(0, min(position + delta, duration ?? .infinity))
        case .fraction(let part):
            guard let duration else {
                throw Failure(
                    .invalidArgument, "The length of this episode is not known yet. Give a time, such as 12:34.")
            }
            return duration * part
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

    /// The change of a level that a text is.
    ///
    /// - Throws: `invalidArgument` unless it is one of the forms.
    static func read(
        _ text: String, _ name: String, unit: Character, _ range: ClosedRange<Double>, examples: String, step: Double
    ) throws(Failure) -> PlayerClient.LevelChange {
        switch LevelExpression(text, unit: unit) {
        case .absolute(let level)?: return .to(level)
        case .relative(let change)?: return .by(change)
        case .up?: return .steps(1, of: step)
        case .down?: return .steps(-1, of: step)
        case nil:
            let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
            throw Failure(
                .invalidArgument, "“\(text)” isn’t a valid \(name). Give \(limits), \(examples), up or down.")
        }
    }
}
