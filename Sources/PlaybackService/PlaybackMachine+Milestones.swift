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

    /// When the next one is reached, or the next chapter.
    func nextMilestone() -> MonotonicTime? {
        guard let session, session.status == .playing, session.tracker.anchor.running else { return nil }
        let boundary = chapters.nextBoundary(after: session.position(at: now.monotonic).seconds)
        let positions = milestones(of: session).ahead.map(\.position) + (boundary.map { [$0] } ?? [])
        return positions.min().map { max(now.monotonic, session.tracker.time(of: $0)) }
    }

    /// Milestones may have been played to.
    mutating func passMilestones() {
        guard let session, session.status == .playing, session.tracker.anchor.running, !pending.isStopping else {
            return
        }
        let position = session.position(at: now.monotonic)
        for milestone in milestones(of: session).reached(at: position) {
            switch milestone {
            case .outro: return self.session?.finish(at: position, reason: "heard to its outro", &pending) ?? ()
            case .nearEnd: recheckNext()
            case .played:
                let threshold = settings.value(.playedThreshold, podcast: session.episode.podcastID)
                self.session?.countAsPlayed(threshold: threshold, &pending)
            case .chapterEnd: perform(sleepTimer.chapterEnded())
            }
        }
    }

    /// The present chapter may be another.
    mutating func followChapter() {
        guard let session else { return }
        let isOver = session.status == .finished
        if chapters.moved(to: isOver ? nil : session.position(at: now.monotonic)) { pending.state = true }
    }
}
