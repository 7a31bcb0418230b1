import OwnerKit
import PodcastModel
import WireMessages

/// A place in an episode that means something when it is played to.
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

extension PlaybackSession {
    /// The chapters in force: the library's, which come from the feed, before those of the file.
    var chapters: [WireChapter] {
        storedChapters.isEmpty ? fileChapters : storedChapters
    }

    /// The number of the chapter at a position, from 1; 0: none.
    func chapterNumber(at position: PlaybackPosition) -> Int {
        // A chapter that is sought to begins there, whatever is lost in converting.
        chapters.number(at: position.seconds, tolerance: 0.001)
    }
}

extension PlaybackMachine {
    static let chapterLookup = "chapters/"
    /// So long before the end what follows is looked up again, in seconds of the episode.
    private static let nearEnd = 60.0

    // MARK: Chapters

    /// Asks the library what it knows of the loaded episode.
    mutating func lookUpChapters() {
        guard let session, session.status != .finished else { return }
        count += 1
        lookUp(session.episode.id, as: CallID("\(Self.chapterLookup)\(session.loadID.text)/\(count)"))
    }

    mutating func takeChapters(_ call: CallID, _ result: Result<[UInt8], Failure>) {
        guard let session, call.text.hasPrefix("\(Self.chapterLookup)\(session.loadID.text)/"),
            let episode = Self.episode(in: result)
        else { return }
        takeChapters(episode)
    }

    mutating func takeChapters(_ episode: WireEpisode) {
        // Those of the file it has from here.
        let found = episode.chaptersOfFile ? [] : episode.chapters
        let chapters = Self.shown(found.compactMap(ChapterMark.init), duration: session?.knownDuration)
        guard session?.storedChapters != chapters else { return }
        session?.storedChapters = chapters
        pending.state = true
    }

    /// What is known of the file that is loaded, before it is open.
    mutating func recallFileChapters() {
        guard let session else { return }
        self.session?.fileChapters = fileChapters[session.episode.id]?.chapters ?? []
    }

    /// Those that the open file carries are stored: they are shown while it is not open, too.
    mutating func takeFileChapters(_ chapters: [WireChapter]) {
        session?.fileChapters = chapters
        guard let episode = session?.episode, fileChapters[episode.id]?.chapters ?? [] != chapters else { return }
        keepFileChapters(chapters.isEmpty ? nil : chapters, of: episode)
        if fileChapters.count > Self.fileChaptersKept,
            let oldest = fileChapters.min(by: { ($0.value.at, $0.key) < ($1.value.at, $1.key) })?.key
        {
            fileChapters[oldest] = nil
            book.mark(.chapters(oldest))
        }
        pending.commit = true
    }

    private mutating func keepFileChapters(_ chapters: [WireChapter]?, of episode: WireEpisodeSummary) {
        fileChapters[episode.id] = chapters.map { chapters in
            var record = WirePlaybackChaptersRecord()
            record.podcast = episode.podcastID
            record.chapters = chapters
            record.at = now.wall.milliseconds
            return record
        }
        book.mark(.chapters(episode.id))
    }

    /// Of so many episodes they are kept.
    private static let fileChaptersKept = 64

    /// Chapters as the state shows them: in order and sound, without their addresses, which are in the library and would
    /// make each change of the state many times larger.
    static func shown(_ marks: [ChapterMark], duration: EpisodeDuration?) -> [WireChapter] {
        let titled = marks.map { mark in
            var mark = mark
            mark.url = ""
            mark.imageURL = ""
            return mark
        }
        return ChapterMark.normalised(titled, duration: duration).map(WireChapter.init)
    }

    /// The chapter is published when it changes, and only then.
    mutating func noteChapter() {
        guard let session else { return }
        let number = session.status == .finished ? 0 : session.chapterNumber(at: session.position(at: now.monotonic))
        guard number != session.chapter else { return }
        self.session?.chapter = number
        pending.state = true
    }

    // MARK: Milestones

    /// Where an episode that begins at its start is to begin.
    func afterIntro(of session: PlaybackSession) -> PlaybackPosition {
        let intro = settings.number(.skipIntro, podcast: session.episode.podcastID)
        // Nothing would be left of a shorter one.
        if let duration = session.duration, intro >= duration.seconds - 1 { return .zero }
        return PlaybackPosition(clamping: intro)
    }

    /// Where the milestones of the loaded episode lie.
    private func milestones() -> [(Milestone, Double)] {
        guard let session else { return [] }
        let podcast = session.episode.podcastID
        var places: [(Milestone, Double)] = []
        // What was announced or reckoned is too often wrong to end an episode by it.
        if let duration = session.provenDuration {
            let outro = settings.number(.skipOutro, podcast: podcast)
            if outro > 0, outro < duration.seconds / 2 { places.append((.outro, duration.seconds - outro)) }
            if next.needsRecheck {
                places.append((.nearEnd, max(0, duration.seconds - Self.nearEnd)))
            }
            if !session.register.played,
                let threshold = PlayedThreshold(settings.value(.playedThreshold, podcast: podcast))
            {
                places.append((.played, threshold.position(in: duration).seconds))
            }
        }
        if sleepTimer.phase == .endOfChapter, let end = chapterEnd() { places.append((.chapterEnd, end)) }
        return places
    }

    /// Where the present chapter ends; nil: with the episode.
    private func chapterEnd() -> Double? {
        guard let session else { return nil }
        let chapters = session.chapters
        // The chapters may have become others since the number was taken.
        guard chapters.indices.contains(session.chapter - 1) else { return nil }
        let chapter = chapters[session.chapter - 1]
        if chapter.end > 0 { return chapter.end }
        return session.chapter < chapters.count ? chapters[session.chapter].start : nil
    }

    /// Those that playing has led to, or will: what is sought beyond them is not ended by them. Being played counts
    /// however it came to its place, unless the listener has said otherwise there.
    private func milestonesOnTheWay() -> [(Milestone, Double)] {
        guard let session else { return [] }
        return milestones().filter { milestone, place in
            switch milestone {
            case .nearEnd: true
            case .played: place > session.unplayedFrom.seconds
            case .chapterEnd, .outro: place > session.playedFrom.seconds
            }
        }
    }

    /// When the next one is reached, or the next chapter.
    func nextMilestone() -> MonotonicTime? {
        guard let session, session.status == .playing, session.anchor.running else { return nil }
        let position = session.position(at: now.monotonic).seconds
        let chapters = session.chapters.flatMap { [$0.start, $0.end] }.filter { $0 > position + 0.001 }
        guard let next = (milestonesOnTheWay().map(\.1) + chapters).min() else { return nil }
        let wait = (next - session.anchor.position.seconds) / session.anchor.speed.factor
        return max(now.monotonic, session.anchor.at.advanced(by: .seconds(wait)))
    }

    /// A place may have been played to.
    mutating func passMilestones() {
        guard let session, session.status == .playing, session.anchor.running, !isStopping else { return }
        let position = session.position(at: now.monotonic)
        // The timer is as exact as the clock, the engine as exact as its anchor.
        for (milestone, place) in milestonesOnTheWay() where position.seconds >= place - 0.01 {
            switch milestone {
            case .nearEnd: recheckNext()
            case .played: countAsPlayed()
            case .chapterEnd: perform(sleepTimer.chapterEnded())
            case .outro: return finish(at: position, reason: "heard to its outro")
            }
        }
    }

    private mutating func countAsPlayed() {
        guard let session, !session.register.played else { return }
        let threshold = settings.value(.playedThreshold, podcast: session.episode.podcastID)
        let reason = threshold.hasSuffix("%") ? "\(threshold) of it heard" : "heard to \(threshold) s before its end"
        let register = marked(session.register, played: true, keepsPosition: true, reason: reason)
        self.session?.register = register
        book.mark(register)
        markPosition()
        pending.commit = true
    }

    // MARK: Resuming

    /// Plays on, some seconds before where it was paused: the more, the longer that is ago. Nobody has lost the thread
    /// where nothing was heard.
    mutating func resume() {
        if let session, session.isResting, session.isHeardHere, !session.isBeingLookedUp,
            let pausedAt = session.pausedAt
        {
            let pause = now.wall.seconds - pausedAt.seconds
            let rewind = Rewind.seconds(
                pause: pause, limit: settings.number(.rewindOnResume, podcast: session.episode.podcastID))
            let position = session.position(at: now.monotonic)
            if rewind > 0, position > .zero { move(to: PlaybackPosition(clamping: position.seconds - rewind)) }
        }
        session?.pausedAt = nil
        play()
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
