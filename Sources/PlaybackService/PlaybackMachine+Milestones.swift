import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    // MARK: Chapters

    /// Asks the library what it knows of the loaded episode.
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
            of: session, settings, recheckNext: next.needsRecheck,
            chapterEnd: sleepTimer.phase == .endOfChapter ? chapters.end : nil)
    }

    /// The time when the next milestone or chapter is reached.
    func nextMilestone() -> MonotonicTime? {
        guard let session, session.status == .playing, session.tracker.anchor.running else { return nil }
        let boundary = chapters.nextBoundary(after: session.position(at: now.monotonic).seconds)
        let positions = milestones(of: session).ahead.map(\.position) + (boundary.map { [$0] } ?? [])
        return positions.min().map { max(now.monotonic, session.tracker.time(of: $0)) }
    }

    /// Acts on the milestones that playback has reached.
    mutating func passMilestones() {
        guard let session, session.status == .playing, session.tracker.anchor.running, !pending.isStopping else {
            return
        }
        let position = session.position(at: now.monotonic)
        for milestone in milestones(of: session).reached(at: position) {
            switch milestone {
            case .outro: return self.session?.finish(at: position, reason: "heard to its outro", &pending) ?? ()
            case .nearEnd: recheckNext()
            case .played: self.session?.countAsPlayed(settings, &pending)
            case .chapterEnd: perform(sleepTimer.chapterEnded())
            }
        }
    }

    /// Follows the present chapter.
    mutating func followChapter() {
        guard let session else { return }
        let isOver = session.status == .finished
        if chapters.moved(to: isOver ? nil : session.position(at: now.monotonic)) { pending.state = true }
    }
}
