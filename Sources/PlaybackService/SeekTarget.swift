import OwnerKit
import PodcastModel
import WireMessages

/// Computes the position of a relative seek.
struct SeekTarget: Sendable {
    /// The distance from the end, in seconds, at which a relative seek stops.
    private static let endMargin = 1.0
    /// The time after the beginning of a chapter, in seconds, within which `previous` selects the chapter before it.
    private static let chapterGrace = 3.0
    /// The distance before a chapter, in seconds, within which the chapter counts as reached.
    private static let chapterTolerance = 0.05

    let title: String
    let position: Double
    /// The length of the episode, in seconds; nil if unknown.
    let duration: Double?
    let chapters: [WireChapter]

    /// Returns the position a number of seconds ahead; negative: back.
    func position(by seconds: Double) throws(Failure) -> PlaybackPosition {
        guard seconds.isFinite else {
            throw Failure(.invalidArgument, "\(seconds) s isn’t a distance to seek by.")
        }
        let wanted = max(0, position + seconds)
        guard let duration else { return PlaybackPosition(clamping: wanted) }
        let end = max(0, duration - Self.endMargin)
        // A seek forwards never moves back: close to the end the position stays.
        return PlaybackPosition(clamping: min(wanted, seconds > 0 ? max(end, position) : end))
    }

    /// Returns the position at a fraction of the length.
    func position(at fraction: Double) throws(Failure) -> PlaybackPosition {
        guard (0...1).contains(fraction) else {
            throw Failure(.invalidArgument, "The fraction must be from 0 to 1, not \(fraction).")
        }
        guard let duration else {
            throw Failure(
                .notApplicable, "The length of this episode isn’t known yet. Give a time, such as 12:34.")
        }
        return PlaybackPosition(clamping: min(duration * fraction, max(0, duration - Self.endMargin)))
    }

    /// - Throws: `notFound` if there is no such chapter; `atEdge` if there is none before or after the current one.
    func start(of target: WireChapterTarget) throws(Failure) -> PlaybackPosition {
        guard !chapters.isEmpty else { throw Failure(.notFound, "“\(title)” has no chapters.") }
        switch target.which {
        case .number(let number)?:
            guard (1...chapters.count).contains(Int(number)) else {
                let count = chapters.count == 1 ? "1 chapter" : "\(chapters.count) chapters"
                throw Failure(.notFound, "There is no chapter \(number); this episode has \(count).")
            }
            return PlaybackPosition(clamping: chapters[Int(number) - 1].start)
        case .neighbour(.next)?:
            guard let next = chapters.first(where: { $0.start > position + Self.chapterTolerance }) else {
                throw Failure(.atEdge, "This is the last chapter.")
            }
            return PlaybackPosition(clamping: next.start)
        case .neighbour(.previous)?:
            if let previous = chapters.last(where: { $0.start < position - Self.chapterGrace }) {
                return PlaybackPosition(clamping: previous.start)
            }
            guard position > chapters[0].start else {
                let isFirst = chapters.number(at: position, tolerance: 0) > 0
                throw Failure(
                    .atEdge,
                    isFirst
                        ? "This is the beginning of the first chapter." : "There is no chapter before this position.")
            }
            return PlaybackPosition(clamping: chapters[0].start)
        case .neighbour, nil:
            throw Failure(.invalidArgument, "Name a chapter by its number, or as the next or previous one.")
        }
    }
}

extension PlaybackSession {
    var endedFailure: Failure {
        Failure(
            .nothingLoaded,
            "“\(episode.title)” has been played to its end. Start it again with `lockstep play` and its title.")
    }

    /// Returns the position of an absolute seek.
    func target(of seek: WireSeek) throws(Failure) -> PlaybackPosition {
        guard status != .finished else { throw endedFailure }
        guard seek.loadID.isEmpty || seek.loadID == loadID.text else {
            throw Failure(.nothingLoaded, "That episode is no longer loaded.")
        }
        guard let position = PlaybackPosition(seconds: seek.position) else {
            throw Failure(.invalidArgument, "\(seek.position) s isn’t a valid position.")
        }
        if let duration, position.seconds > duration.seconds {
            throw Failure(
                .notApplicable,
                "\(ClockText.format(position.seconds)) is beyond the end at \(ClockText.format(duration.seconds)).")
        }
        return position
    }

    /// Returns the position of a relative seek.
    func target(
        of seek: WireSeekRelative, chapters: [WireChapter], _ settings: OwnerSettings, now: MonotonicTime
    ) throws(Failure) -> PlaybackPosition {
        guard status != .finished else { throw endedFailure }
        guard seek.loadID.isEmpty || seek.loadID == loadID.text else {
            throw Failure(.revisionMismatch, "That episode is no longer loaded.")
        }
        let target = SeekTarget(
            title: episode.title, position: position(at: now).seconds, duration: duration?.seconds,
            chapters: chapters)
        switch seek.to {
        case .by(let seconds)?: return try target.position(by: seconds)
        case .skip(let skip)?: return try target.position(by: settings.distance(of: skip, in: episode.podcastID))
        case .fraction(let fraction)?: return try target.position(at: fraction)
        case .chapter(let chapter)?: return try target.start(of: chapter)
        case nil: throw Failure(.invalidArgument, "The request has no seek target.")
        }
    }
}
