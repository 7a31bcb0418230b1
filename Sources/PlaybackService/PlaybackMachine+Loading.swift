import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    mutating func load(_ load: WireLoadEpisode, _ command: Command) throws(Failure) {
        if let session, session.loadID.text == load.loadID { return answer(command, "It is loaded") }
        let podcast = load.episode.podcastID
        var loaded = try PlaybackSession(load, command.id, speed: settings.speed(of: podcast), context, now: now)
        // An automatic advance after the episode with which the sleep timer ended is loaded paused; any other load
        // plays.
        let follows =
            session.map { $0.status == .finished && loaded.loadID == .advance(after: $0.loadID.text) } ?? false
        let isSleepOver = sleepTimer.loaded()
        if isSleepOver { pending.writes.mark(.sleep) }
        if isSleepOver, follows, !load.paused {
            loaded.status = .loading(plays: false)
            loaded.pausedBy = .sleepTimer
        }
        let known = prepared.answer(to: load)
        leaveSession()
        pending.endAlerts(.loaded)
        speed = loaded.speed
        sound = settings.sound(of: podcast)
        session = loaded
        chapters.load(load.episode.id)
        pending.state = true
        if let known { return handleFoundEpisode(known) }
        pending.lookUp([load.episode.id], for: .load(loaded.loadID))
    }

    mutating func handleAnswer(_ query: Query, _ result: Result<[UInt8], Failure>) {
        switch query {
        case .marks(let marking): return finish(marking, result)
        case .undoMarks(let undoing): return finish(undoing, result)
        case .bookmark(let command, let bookmark): return makeBookmark(bookmark, command, result)
        case .chapters(let load):
            if session?.loadID == load, let found = result.episode { showChapters(of: found) }
        case .next(let number):
            if prepared.handleAnswer(number, result.episode) { prepareEngine() }
        case .lateLoad(let load):
            if session?.loadID == load { handleLateState(result.episode) }
        case .load(let load):
            guard session?.loadID == load else { return }
            if case .failure(let failure) = result { session?.lookupFailed(failure, &pending) }
            handleFoundEpisode(result.episode)
        }
    }

    /// Handles the library’s answer after the episode has begun to play.
    private mutating func handleLateState(_ found: WireEpisode?) {
        guard let session, case .failed = session.lookup else { return }
        let state = state(of: session.episode.id, found)
        self.session?.foundLate(state, &pending)
        if let found { showChapters(of: found) }
    }

    /// Handles the library’s reply about the episode that is being loaded; nil if the lookup failed or found nothing.
    private mutating func handleFoundEpisode(_ found: WireEpisode?) {
        guard let session, case .lookingUp(let request, let explicit) = session.engine else { return }
        let state = state(of: session.episode.id, found)
        self.session?.found(found, state, &pending)
        if let found { showChapters(of: found) }
        let intro = settings.number(.skipIntro, podcast: session.episode.podcastID)
        self.session?.begin(at: explicit, intro: intro, &pending)
        guard let request else { return }
        pending.answer = PendingEffects.Answer(request: request, body: .state, fact: "Loaded", changed: true)
    }

    /// The newest known state of an episode: unsaved, recent, or stored.
    func state(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        pending.writes.unsavedStates[episode] ?? episodeStates.newest(of: episode, found)
    }

    private mutating func leaveSession() {
        guard let session else { return }
        showEndNow()
        episodeStates.remember(self.session?.leave(&pending) ?? session.episodeState)
        prepared.clear()
        output.unloaded()
        self.session = nil
        pending.writes.mark(.session)
    }

    mutating func unload(_ loadID: String, _ command: Command) {
        if let session, loadID.isEmpty || session.loadID.text == loadID {
            cancelPrepared()
            leaveSession()
            pending.state = true
        }
        answer(command, "Nothing is loaded any more")
    }
}

extension Result<[UInt8], Failure> {
    var episode: WireEpisode? { (try? persistenceReply.get())?.episodes.episodes.first }
}
