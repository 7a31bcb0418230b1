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
        if isSleepOver { book.mark(.sleep) }
        let sleeps = isSleepOver && follows
        let known = next.answer(to: load)
        leaveSession()
        endAlertsOfOthers()
        speed = speed(of: load.episode.podcastID)
        sound = sound(of: load.episode.podcastID)
        var episodeState = WireEpisodeState()
        episodeState.episode = load.episode.id
        episodeState.played = load.episode.played
        episodeState.position = load.episode.position.isFinite ? max(0, load.episode.position) : 0
        session = PlaybackSession(
            episode: load.episode, enclosure: source, loadID: loadID, queueEntry: load.queueEntry, queue: load.queue,
            status: .loading(plays: !load.paused && !sleeps), engine: .lookingUp(command.id, explicit: explicit),
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
        lookUp(load.episode.id, as: Self.lookup(loadID))
    }

    /// What is stored about an episode is asked for; the answer need not come: then the load itself says enough.
    mutating func lookUp(_ episode: String, as id: CallID, limit: Duration? = .seconds(2)) {
        var query = WirePersistenceRequest()
        query.episodesByID.ids = [episode]
        pending.calls.append(Call(id: id, to: .persistence, payload: query.wireBytes, limit: limit))
    }

    /// What is loaded goes on once the library has said what there is of it now: at a place, or (nil) where it was left.
    mutating func lookUpAgain(at explicit: PlaybackPosition?) {
        guard let session else { return }
        self.session?.engine = .lookingUp(nil, explicit: explicit)
        lookUp(session.episode.id, as: Self.lookup(session.loadID))
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
            pending.logs.append((.warning, "The state of \(session.episode.id) is not known yet: \(failure)"))
            self.session?.isStateMissing = true
            lookUp(session.episode.id, as: Self.lateLookup(session.loadID), limit: nil)
        }
        takeEpisode(Self.episode(in: result))
    }

    private static func lateLookup(_ load: LoadID) -> CallID { CallID("late lookup/\(load.text)") }

    /// What is stored of the episode has come after it had begun to play: what was heard meanwhile is added to it.
    private mutating func takeState(_ found: WireEpisode?) {
        guard let session, session.isStateMissing else { return }
        self.session?.isStateMissing = false
        self.session?.wasLookedUp = true
        if session.episodeState.updatedAt == 0, let episodeState = state(of: session.episode.id, found) {
            self.session?.episodeState = episodeState
            if session.audio.recorded == nil {
                self.session?.audio.restore(EpisodeDuration(seconds: episodeState.duration))
            }
        }
        if let found { showChapters(of: found) }
        // Where nothing was heard yet the stored place is the better one.
        guard session.position(at: now.monotonic).seconds > session.tracker.playedFrom.seconds + 0.5 else { return }
        savePosition()
    }

    /// What the library knows of the episode that is being loaded; nil: nothing.
    private mutating func takeEpisode(_ found: WireEpisode?) {
        guard let session, case .lookingUp(let request, let explicit) = session.engine else { return }
        // What was changed while the library was asked again is newer than its answer.
        if let episodeState = state(of: session.episode.id, found),
            !session.wasLookedUp || episodeState.updatedAt >= session.episodeState.updatedAt
        {
            self.session?.episodeState = episodeState
        }
        self.session?.wasLookedUp = !session.isStateMissing
        if let found {
            preferFile(of: found.download)
            showChapters(of: found)
        }
        begin(at: explicit, for: request)
    }

    /// The newest state of an episode that is known: not saved yet, left, or stored.
    func state(of episode: String, _ found: WireEpisode?) -> WireEpisodeState? {
        book.unsavedStates[episode] ?? episodeStates.newest(of: episode, found)
    }

    /// The episode that persistence answered with.
    static func episode(in result: Result<[UInt8], Failure>) -> WireEpisode? {
        guard case .success(let bytes) = result, let reply = try? WirePersistenceReply(wireBytes: bytes) else {
            return nil
        }
        return reply.episodes.episodes.first
    }

    /// All is known: the load becomes durable, then the engine opens it.
    private mutating func begin(at explicit: PlaybackPosition?, for request: RequestID?) {
        let duration = session.flatMap { EpisodeDuration(seconds: $0.episodeState.duration) }
        session?.audio.begins(duration, isAnew: explicit == nil)
        guard let session else { return }
        let start = start(of: session, explicit: explicit)
        if start != session.tracker.anchor.position { setAnchor(start, running: false) }
        self.session?.engine = session.status == .paused ? .closed : .awaitingCommit(nil)
        book.mark(.session)
        pending.commit = true
        guard let request else { return }
        pending.answer = PendingEffects.Answer(request: request, body: .state, fact: "Loaded", changed: true)
    }

    /// Gives the engine what is loaded.
    mutating func openEngine() {
        guard let session, let source = session.source, !isStopping else {
            if let session, !isStopping { failUnplayable(session.episode) }
            return
        }
        output.loss.opens()
        self.session?.engine = .open
        self.session?.isOpened = false
        self.session?.audio.opens(isStream: session.isStream)
        let host = session.isStream ? source.host : nil
        perform(self.session?.recovery.opens(host: host, now: now.monotonic))
        let serial = nextSerial()
        self.session?.tracker.opens(serial: serial)
        pending.perform(
            .engine(
                .open(
                    EngineLoad(
                        id: session.loadID, source: source, start: session.tracker.anchor.position,
                        paused: !session.wantsToPlay,
                        speed: speed, volume: heardVolume, output: output.chosen, sound: EngineSound(sound),
                        serial: serial,
                        podcast: session.episode.podcastID))))
        prepareEngine()
    }

    private mutating func failUnplayable(_ episode: WireEpisodeSummary) {
        do throws(Failure) {
            _ = try AudioSource(enclosure: episode.enclosureURL)
            fail(Failure(.episodeUnavailable, "The episode has no audio that can be played."))
        } catch {
            fail(error)
        }
    }

    /// Saves and closes what is loaded, before something else is, or nothing.
    private mutating func leaveSession() {
        guard let session else { return }
        showEndNow()
        // Where it was heard to counts more than what else is stored of it.
        if session.isOpened { self.session?.isStateMissing = false }
        markPosition()
        if let state = self.session?.episodeState { episodeStates.remember(state) }
        if session.engine == .open { pending.perform(.engine(.unload)) }
        if case .lookingUp(let request?, _) = session.engine {
            let failure = Failure(.revisionMismatch, "Something else was loaded in the meantime.")
            pending.refuse(request, failure)
        }
        next.clear()
        endAlerts(of: session.loadID, all: true)
        output.unloaded()
        self.session = nil
        book.mark(.session)
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
