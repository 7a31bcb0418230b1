import OwnerKit
import PodcastModel
import WireMessages

/// A position that has an effect when playback passes it.
enum Milestone: Sendable, Hashable {
    case outro
    /// The episode counts as played.
    case played
    /// The current chapter ends, and the sleep timer waits for that.
    case chapterEnd
    /// The end is near, and the prepared episode is looked up again.
    case nearEnd
}

/// The milestones of the loaded episode.
struct Milestones: Sendable {
    /// The distance of `nearEnd` from the end, in seconds.
    private static let nearEnd = 60.0

    private(set) var ahead: [(milestone: Milestone, position: Double)] = []

    /// A seek beyond an outro or the end of a chapter doesn’t end the episode or playback. The episode counts as played
    /// after a seek too, unless the listener has marked it as not played beyond that position.
    ///
    /// - Parameter chapterEnd: the position at which the sleep timer ends playback.
    init(of session: PlaybackSession, _ settings: OwnerSettings, recheckPrepared: Bool, chapterEnd: Double?) {
        let podcast = session.episode.podcastID
        let outro = settings.number(.skipOutro, podcast: podcast)
        let threshold = PlayedThreshold(settings.value(.playedThreshold, podcast: podcast))
        let playedFrom = session.tracker.playedFrom
        func add(_ milestone: Milestone, _ position: Double, after origin: PlaybackPosition) {
            if position > origin.seconds { ahead.append((milestone, position)) }
        }
        // Announced and estimated lengths are too often wrong.
        if let duration = session.audio.confirmedDuration {
            if outro > 0, outro < duration.seconds / 2 {
                add(.outro, duration.seconds - outro, after: playedFrom)
            }
            if recheckPrepared { ahead.append((.nearEnd, max(0, duration.seconds - Self.nearEnd))) }
            if let threshold, !session.episodeState.played {
                add(.played, threshold.position(in: duration).seconds, after: session.tracker.unplayedFrom)
            }
        }
        if let chapterEnd { add(.chapterEnd, chapterEnd, after: playedFrom) }
    }

    /// The milestones that are reached at a position, within the precision of the clock and the anchor.
    func reached(at position: PlaybackPosition) -> [Milestone] {
        ahead.filter { position.seconds >= $0.position - 0.01 }.map(\.milestone)
    }
}

enum Rewind {
    /// The number of seconds that resuming rewinds: none after 10 s, then the same amount for each doubling of the
    /// pause, up to `limit` after an hour.
    static func seconds(pause: Double, limit: Double) -> Double {
        guard pause > 10, limit > 0 else { return 0 }
        var doublings = 0.0
        var rest = min(pause, 3_600) / 10
        while rest >= 2 {
            rest /= 2
            doublings += 1
        }
        // Linear between two doublings; an hour is 360 times 10 s, which is 8.4 doublings.
        return min(limit, limit * (doublings + rest - 1) / 8.40625)
    }
}

extension PlaybackMachine {
    // MARK: Chapters

    mutating func lookUpChapters() {
        guard let session, session.status != .finished else { return }
        pending.lookUp([session.episode.id], for: .chapters(session.loadID))
    }

    mutating func showChapters(of episode: WireEpisode) {
        if chapters.found(episode, duration: session?.knownDuration) { pending.state = true }
    }

    // MARK: Milestones

    private func milestones(of session: PlaybackSession) -> Milestones {
        Milestones(
            of: session, settings, recheckPrepared: prepared.needsRecheck,
            chapterEnd: sleepTimer.phase == .endOfChapter ? chapters.end : nil)
    }

    func nextMilestone() -> MonotonicTime? {
        guard let session, session.status == .playing, session.tracker.anchor.running else { return nil }
        let boundary = chapters.nextBoundary(after: session.position(at: now.monotonic).seconds)
        let positions = milestones(of: session).ahead.map(\.position) + (boundary.map { [$0] } ?? [])
        return positions.min().map { max(now.monotonic, session.tracker.time(of: $0)) }
    }

    mutating func passMilestones() {
        guard let session, session.status == .playing, session.tracker.anchor.running, !pending.isStopping else {
            return
        }
        let position = session.position(at: now.monotonic)
        for milestone in milestones(of: session).reached(at: position) {
            switch milestone {
            case .outro: return self.session?.finish(at: position, reason: "heard to its outro", &pending) ?? ()
            case .nearEnd: recheckPrepared()
            case .played: self.session?.countAsPlayed(settings, &pending)
            case .chapterEnd: perform(sleepTimer.chapterEnded())
            }
        }
    }

    mutating func followChapter() {
        guard let session else { return }
        let isOver = session.status == .finished
        if chapters.moved(to: isOver ? nil : session.position(at: now.monotonic)) { pending.state = true }
    }
}
