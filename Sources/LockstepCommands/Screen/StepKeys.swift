import LockstepClient
import PodcastModel

// The targets of step keys. A held key steps from the target of earlier requests, which may still be in flight.

enum LevelStep: Sendable, Hashable {
    case up, down

    /// Returns the next multiple of `step`, so that steps up and down reach the same values.
    func level(from current: Double, step: Double, range: ClosedRange<Double>) -> Double {
        switch self {
        case .up: min(range.upperBound, ((current / step + 1e-6).rounded(.down) + 1) * step)
        case .down: max(range.lowerBound, ((current / step - 1e-6).rounded(.up) - 1) * step)
        }
    }
}

enum SeekStep {
    /// The distance from the end at which steps stop, in seconds.
    private static let endMargin = 1.0

    /// Returns the position after a step of `distance` seconds, negative for back.
    static func target(from position: Double, by distance: Double, duration: Double?) -> Double {
        let wanted = max(0, position + distance)
        guard let end = duration.map({ max(0, $0 - endMargin) }) else { return wanted }
        // A step forward never seeks back: close to the end the position doesn’t change.
        return distance > 0 ? min(wanted, max(end, position)) : min(wanted, end)
    }
}

enum ChapterStep: Sendable, Hashable {
    case next, previous
    /// The chapter with this index.
    case index(Int)

    /// The number of seconds after a chapter’s start in which `previous` selects the chapter before.
    private static let grace = 3.0

    /// Returns the start of the target chapter.
    ///
    /// - Throws: `atEdge` if there is none.
    func start(among chapters: [ChapterState], at position: Double) throws(Failure) -> Double {
        switch self {
        case .index(let index) where chapters.indices.contains(index): return chapters[index].start
        case .next, .index:
            guard let next = chapters.first(where: { $0.start > position + 0.05 }) else {
                throw Failure(.atEdge, "This is the last chapter.")
            }
            return next.start
        case .previous:
            if let before = chapters.last(where: { $0.start < position - Self.grace }) { return before.start }
            guard let first = chapters.first, position >= first.start - 0.05 else {
                throw Failure(.atEdge, "There is no chapter before this position.")
            }
            guard position > first.start else { throw Failure(.atEdge, "This is the beginning of the first chapter.") }
            return first.start
        }
    }
}
