import BusKit
import OwnerKit
import PodcastModel
import WireMessages

// How what is to be played takes the place of what was.

extension PlaybackMachine {
    mutating func load(_ load: WireLoadEpisode, _ command: Command) throws(Failure) {
        guard let loadID = LoadID(load.loadID) else { throw Self.invalid("“\(load.loadID)” isn’t a valid load ID.") }
        guard EpisodeID(load.episode.id) != nil else {
            throw Self.invalid("“\(load.episode.id)” isn’t a valid episode ID.")
        }
        if session?.loadID == loadID { return answer(command, "It is loaded") }
        // What has no audio is loaded all the same, and fails where everybody sees it.
        let source = try? AudioSource(enclosure: load.episode.enclosureURL)
        var explicit: PlaybackPosition?
        if load.hasPosition {
            guard let position = PlaybackPosition(seconds: load.position) else {
                throw Self.invalid("An episode cannot start at \(load.position) s.")
            }
            explicit = position
        }
        // What follows by itself on an episode with which the sleep timer ended is loaded paused. Whatever else is loaded
        // is somebody's wish.
        let follows = session.map { $0.status == .finished && loadID == .advance(after: $0.loadID.text) } ?? false
        let isSleepOver = sleepTimer.loaded()
        if isSleepOver { pending.writes.mark(.sleep) }
        let sleeps = isSleepOver && follows
        let known = next.answer(to: load)
        leaveSession()
        pending.endAlerts(.loaded)
        speed = speed(of: load.episode.podcastID)
        sound = sound(of: load.episode.podcastID)
        var episodeState = WireEpisodeState()
        episodeState.episode = load.episode.id
        episodeState.played = load.episode.played
        episodeState.position = load.episode.position.isFinite ? max(0, load.episode.position) : 0
        session = PlaybackSession(
            episode: load.episode, enclosure: source, loadID: loadID, queueEntry: load.queueEntry, queue: load.queue,
            status: .loading(plays: !load.paused && !sleeps), engine: .lookingUp(command.id, explicit: explicit),
            speed: speed,
            tracker: PositionTracker(
                at: explicit ?? PlaybackPosition(clamping: episodeState.position), speed: speed, bootID: context.bootID,
                now: now),
            recovery: StreamRecovery(limits: context.limits),
            audio: AudioIdentity(announced: load.episode.duration),
            episodeState: episodeState)
        chapters.load(load.episode.id)
        if sleeps, !load.paused { session?.pausedBy = .sleepTimer }
        pending.state = true
        if let known { return takeEpisode(known) }
        pending.lookUp(load.episode.id, as: Self.lookup(loadID))
    }

    static func lookup(_ load: LoadID) -> CallID { CallID("lookup/\(load.text)") }

    mutating func handleAnswer(_ call: CallID, _ result: Result<[UInt8], Failure>) {
        if let marking = episodeStates.takeMarking(awaiting: call) { return finish(marking, result) }
        if let making = bookmarks.takeCommand(awaiting: call) { return makeBookmark(making, result) }
        if call.text.hasPrefix(Self.chapterLookup) { return handleChapters(call, result) }
        if call.text.hasPrefix(Self.census) { return takeCensus(call, result) }
        if let opens = next.answered(call, Self.episode(in: result)) {
            if opens { prepareEngine() }
            return
        }
        if call == session.map({ Self.lateLookup($0.loadID) }) { return takeState(Self.episode(in: result)) }
        guard let session, call == Self.lookup(session.loadID) else { return }
        if case .failure(let failure) = result, session.isBeingLookedUp, !session.wasLookedUp {
            pending.log(.warning, "The state of \(session.episode.id) is not known yet: \(failure)")
            self.session?.isStateMissing = true
            pending.lookUp(session.episode.id, as: Self.lateLookup(session.loadID), limit: nil)
        }
        takeEpisode(Self.episode(in: result))
    }

    private static func lateLookup(_ load: LoadID) -> CallID { CallID("late lookup/\(load.text)") }

    /// What is stored of the episode has come after it had begun to play.
    private mutating func takeState(_ found: WireEpisode?) {
        guard let session, session.isStateMissing else { return }
        let state = state(of: session.episode.id, found)
        self.session?.foundLate(state, &pending)
        if let found { showChapters(of: found) }
    }

    /// What the library knows of the episode that is being loaded; nil: nothing.
    private mutating func takeEpisode(_ found: WireEpisode?) {
        guard let session, case .lookingUp(let request, let explicit) = session.engine else { return }
        let state = state(of: session.episode.id, found)
        self.session?.found(found, state, &pending)
        if let found { showChapters(of: found) }
        let intro = settings.number(.skipIntro, podcast: session.episode.podcastID)
        self.session?.begin(at: explicit, intro: intro, &pending)
        guard let request else { return }
        pending.answer = PendingEffects.Answer(request: request, body: .state, fact: "Loaded", changed: true)
    }

    /// The newest state of an episode that is known: not saved yet, left, or stored.
    func state(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        pending.writes.unsavedStates[episode] ?? episodeStates.newest(of: episode, found)
    }

    /// The episode that persistence answered with.
    static func episode(in result: Result<[UInt8], Failure>) -> WireEpisode? {
        guard case .success(let bytes) = result, let reply = try? WirePersistenceReply(wireBytes: bytes) else {
            return nil
        }
        return reply.episodes.episodes.first
    }

    /// Saves and closes what is loaded, before something else is, or nothing.
    private mutating func leaveSession() {
        guard let session else { return }
        showEndNow()
        // Where it was heard to counts more than what else is stored of it.
        if session.isOpened { self.session?.isStateMissing = false }
        self.session?.markPosition(&pending)
        if let state = self.session?.episodeState { episodeStates.remember(state) }
        if session.engine == .open { pending.tell(.unload) }
        if case .lookingUp(let request?, _) = session.engine {
            let failure = Failure(.revisionMismatch, "Something else was loaded in the meantime.")
            pending.refuse(request, failure)
        }
        next.clear()
        pending.endAlerts(.left(session.loadID))
        output.unloaded()
        self.session = nil
        pending.writes.mark(.session)
    }

    mutating func unload(_ loadID: String, _ command: Command) {
        if let session, loadID.isEmpty || session.loadID.text == loadID {
            forgetNext()
            leaveSession()
            pending.state = true
        }
        answer(command, "Nothing is loaded any more")
    }
}
