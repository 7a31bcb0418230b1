import LockstepClient
import PodcastModel

/// A position that a user enters: `12:34`, `90`, `1h30m`, `50%`, `+30`, `-15`, `+1:30`, `-2m`.
enum SeekExpression: Sendable, Hashable {
    /// A number of seconds from the start.
    case absolute(Double)
    /// A fraction of the length, 0 to 1.
    case fraction(Double)
    /// A number of seconds from the current position.
    case relative(Double)

    private static func seconds(_ text: some StringProtocol) -> Double? {
        DurationText.clock(text) ?? DurationText.spelled(text)
    }

    /// Fails for any other text. The minus may be typographic.
    init?(_ text: String) {
        if let sign = text.first, "+-−".contains(sign) {
            guard let seconds = Self.seconds(text.dropFirst()) else { return nil }
            self = .relative(sign == "+" ? seconds : -seconds)
        } else if text.hasSuffix("%") {
            guard let percent = DurationText.number(text.dropLast()), percent <= 100 else { return nil }
            self = .fraction(percent / 100)
        } else {
            guard let seconds = Self.seconds(text) else { return nil }
            self = .absolute(seconds)
        }
    }

    /// - Throws: `invalidArgument` for any other text.
    static func read(_ text: String) throws(Failure) -> SeekExpression {
        if let expression = SeekExpression(text) { return expression }
        throw Failure(
            .invalidArgument,
            "“\(text)” isn’t a position in an episode. Give 12:34, 90 (seconds), 1h30m, 50%, +30 or -15.")
    }

    var seekTarget: PlayerClient.SeekTarget {
        switch self {
        case .absolute(let seconds): .to(seconds)
        case .fraction(let part): .fraction(part)
        case .relative(let delta): .by(delta)
        }
    }

    /// Whether it depends on the current position or on the length.
    var isRelative: Bool {
        if case .absolute = self { false } else { true }
    }

    /// Returns the position in seconds, given the current one and the length; nil if unknown.
    ///
    /// - Throws: `notApplicable` for a fraction of an unknown length.
    func position(from position: Double, duration: Double?) throws(Failure) -> Double {
        switch self {
        case .absolute(let seconds): return seconds
        case .relative(let delta): return max(0, min(position + delta, duration ?? .infinity))
        case .fraction(let part):
            guard let duration else {
                throw Failure(
                    .notApplicable, "The length of this episode isn’t known yet. Give a time, such as 12:34.")
            }
            return duration * part
        }
    }
}

extension PlayerClient.LevelChange {
    /// The change of a level: a number, perhaps with a sign and followed by `unit`, or up or down.
    ///
    /// - Throws: `invalidArgument` for anything else.
    init(
        _ text: String, _ name: String, unit: Character, _ range: ClosedRange<Double>, examples: String, step: Double
    ) throws(Failure) {
        let sign = text.first.flatMap { "+-−".contains($0) ? $0 : nil }
        let level = text.last == unit ? text.dropLast() : text[...]
        if text == "up" || text == "down" {
            self = .steps(text == "up" ? 1 : -1, of: step)
        } else if let number = DurationText.number(sign == nil ? level : level.dropFirst()) {
            self = sign.map { .by($0 == "+" ? number : -number) } ?? .to(number)
        } else {
            let limits = "\(NumberText.short(range.lowerBound)) to \(NumberText.short(range.upperBound))"
            throw Failure(
                .invalidArgument, "“\(text)” isn’t a valid \(name). Give \(limits), \(examples), up or down.")
        }
    }
}
