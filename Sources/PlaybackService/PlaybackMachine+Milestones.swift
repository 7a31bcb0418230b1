import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    static let chapterLookup = "chapters/"

    // MARK: Chapters

    /// Asks the library what it knows of the loaded episode.
    mutating func lookUpChapters() {
        guard let session, session.status != .finished else { return }
        let call = CallID("\(Self.chapterLookup)\(session.loadID.text)/\(pending.nextSerial())")
        pending.lookUp(session.episode.id, as: call)
    }

    mutating func handleChapters(_ call: CallID, _ result: Result<[UInt8], Failure>) {
        guard let session, call.text.hasPrefix("\(Self.chapterLookup)\(session.loadID.text)/"),
            let episode = Self.episode(in: result)
        else { return }
        showChapters(of: episode)
    }

    mutating func showChapters(of episode: WireEpisode) {
        if chapters.found(episode, duration: session?.knownDuration) { pending.state = true }
    }

    // MARK: Milestones

    private func milestones(of session: PlaybackSession) -> Milestones {
        let podcast = session.episode.podcastID
        return Milestones(
            duration: session.audio.provenDuration, outro: settings.number(.skipOutro, podcast: podcast),
            threshold: session.episodeState.played
                ? nil : PlayedThreshold(settings.value(.playedThreshold, podcast: podcast)),
            recheckNext: next.needsRecheck, chapterEnd: sleepTimer.phase == .endOfChapter ? chapters.end : nil,
            playedFrom: session.tracker.playedFrom, unplayedFrom: session.tracker.unplayedFrom)
    }

    /// When the next one is reached, or the next chapter.
    func nextMilestone() -> MonotonicTime? {
        guard let session, session.status == .playing, session.tracker.anchor.running else { return nil }
        let boundary = chapters.nextBoundary(after: session.position(at: now.monotonic).seconds)
        let positions = milestones(of: session).ahead.map(\.position) + (boundary.map { [$0] } ?? [])
        guard let next = positions.min() else { return nil }
        let wait = (next - session.tracker.anchor.position.seconds) / session.tracker.anchor.speed.factor
        return max(now.monotonic, session.tracker.anchor.at.advanced(by: .seconds(wait)))
    }

    /// Milestones may have been played to.
    mutating func passMilestones() {
        guard let session, session.status == .playing, session.tracker.anchor.running, !pending.isStopping else { return }
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
