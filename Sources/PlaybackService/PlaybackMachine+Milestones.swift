import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    static let chapterLookup = "chapters/"

    // MARK: Chapters

    /// Asks the library what it knows of the loaded episode.
    mutating func lookUpChapters() {
        guard let session, session.status != .finished else { return }
        lookUp(session.episode.id, as: CallID("\(Self.chapterLookup)\(session.loadID.text)/\(nextSerial())"))
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

    /// Where an episode that begins at its start is to begin.
    func afterIntro(of session: PlaybackSession) -> PlaybackPosition {
        let intro = settings.number(.skipIntro, podcast: session.episode.podcastID)
        // Nothing would be left of a shorter one.
        if let duration = session.duration, intro >= duration.seconds - 1 { return .zero }
        return PlaybackPosition(clamping: intro)
    }

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
        guard let session, session.status == .playing, session.tracker.anchor.running, !isStopping else { return }
        let position = session.position(at: now.monotonic)
        for milestone in milestones(of: session).reached(at: position) {
            switch milestone {
            case .outro: return finish(at: position, reason: "heard to its outro")
            case .nearEnd: recheckNext()
            case .played: countAsPlayed()
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

    private mutating func countAsPlayed() {
        guard let session, !session.episodeState.played else { return }
        let threshold = settings.value(.playedThreshold, podcast: session.episode.podcastID)
        let reason = threshold.hasSuffix("%") ? "\(threshold) of it heard" : "heard to \(threshold) s before its end"
        let episodeState = session.episodeState.marked(
            played: true, keepsPosition: true, reason: reason, now: now)
        self.session?.episodeState = episodeState
        book.mark(episodeState)
        savePosition()
    }

    // MARK: Resuming

    /// Plays on, some seconds before where it was paused: the more, the longer that is ago. Nobody has lost the thread
    /// where nothing was heard.
    mutating func resume() {
        if let session, session.isResting, session.tracker.isPlayedUpToHere, !session.isBeingLookedUp,
            let pausedAt = session.tracker.pausedAt
        {
            let pause = now.wall.seconds - pausedAt.seconds
            let rewind = Rewind.seconds(
                pause: pause, limit: settings.number(.rewindOnResume, podcast: session.episode.podcastID))
            let position = session.position(at: now.monotonic)
            if rewind > 0, position > .zero { move(to: PlaybackPosition(clamping: position.seconds - rewind)) }
        }
        play()
    }
}
