import OwnerKit
import PodcastModel
import WireMessages

/// A position in an episode that means something when it is played to.
enum Milestone: Sendable, Hashable {
    /// Where its outro begins.
    case outro
    /// Where it counts as played.
    case played
    /// Where its present chapter ends, while the sleep timer waits for that.
    case chapterEnd
    /// Where its end is near, and what follows is looked up again.
    case nearEnd
}

/// The milestones of the loaded episode that playing has led to, or will.
struct Milestones: Sendable {
    /// How long before the end what follows is looked up again, in seconds of the episode.
    private static let nearEnd = 60.0

    private(set) var ahead: [(milestone: Milestone, position: Double)] = []

    /// Where they lie. What is sought beyond an outro or the end of a chapter is not ended by it. Being played counts
    /// however the position was reached, unless the listener has said otherwise there.
    ///
    /// - Parameter chapterEnd: where the sleep timer ends playing.
    init(of session: PlaybackSession, _ settings: OwnerSettings, recheckNext: Bool, chapterEnd: Double?) {
        let podcast = session.episode.podcastID
        let outro = settings.number(.skipOutro, podcast: podcast)
        let threshold = PlayedThreshold(settings.value(.playedThreshold, podcast: podcast))
        let playedFrom = session.tracker.playedFrom
        func add(_ milestone: Milestone, _ position: Double, after origin: PlaybackPosition) {
            if position > origin.seconds { ahead.append((milestone, position)) }
        }
        // What was announced or reckoned is too often wrong to end an episode by it.
        if let duration = session.audio.provenDuration {
            if outro > 0, outro < duration.seconds / 2 {
                add(.outro, duration.seconds - outro, after: playedFrom)
            }
            if recheckNext { ahead.append((.nearEnd, max(0, duration.seconds - Self.nearEnd))) }
            if let threshold, !session.episodeState.played {
                add(.played, threshold.position(in: duration).seconds, after: session.tracker.unplayedFrom)
            }
        }
        if let chapterEnd { add(.chapterEnd, chapterEnd, after: playedFrom) }
    }

    /// Those that are reached at a position. The timer is as exact as the clock, the engine as exact as its anchor.
    func reached(at position: PlaybackPosition) -> [Milestone] {
        ahead.filter { position.seconds >= $0.position - 0.01 }.map(\.milestone)
    }
}

/// How far resuming goes back.
enum Rewind {
    /// Nothing after 10 s, and from there with each doubling of the pause as much again, up to `limit` after an hour.
    static func seconds(pause: Double, limit: Double) -> Double {
        guard pause > 10, limit > 0 else { return 0 }
        var doublings = 0.0
        var rest = min(pause, 3_600) / 10
        while rest >= 2 {
            rest /= 2
            doublings += 1
        }
        // Between two doublings it grows evenly; an hour is 360 times 10 s, which is 8.4 doublings.
        return min(limit, limit * (doublings + rest - 1) / 8.40625)
    }
}
