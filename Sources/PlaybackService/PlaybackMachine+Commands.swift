import BusKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Does a command, or refuses it without doing anything.
    mutating func take(_ command: Command) {
        guard let request = try? WirePlaybackRequest(wireBytes: command.payload) else {
            pending.refuse(command.id, Failure(.malformed, "The request to the player cannot be read."))
            return
        }
        do throws(Failure) {
            switch request.command {
            case .load(let load)?: try self.load(load, command)
            case .setPaused(let set)?: try setPaused(set.paused, command)
            case .seek(let seek)?: try self.seek(seek, command)
            case .setSpeed(let set)?: try setSpeed(set.speed, command)
            case .setVolume(let set)?: try setVolume(set.volume, command)
            case .stop?: stop(command)
            case .setOutput(let set)?: try setOutput(set.device, command)
            case .answerAlert(let answer)?: try answerAlert(answer, command)
            case .setPlayed(let set)?: try setPlayed(set, command)
            case .unload(let unload)?: self.unload(unload.loadID, command)
            case .setSetting(let setting)?: try setSetting(setting, command)
            case .setSleep(let set)?: try setSleep(set, command)
            case .setBookmark(let set)?: try setBookmark(set, command)
            case .removeBookmark(let remove)?: try removeBookmark(remove.id, command)
            case .bookmarks(let query)?: try listBookmarks(query.episode, command)
            case .refreshEpisode(let refresh)?:
                if session?.episode.id == refresh.episode { lookUpChapters() }
                answer(command, "Looked up")
            case .prepare(let prepare)?: try self.prepare(prepare, command)
            case nil:
                throw Failure(.unknownCommand, "The player does not know this command.")
            }
        } catch {
            pending.refuse(command.id, error)
        }
    }

    /// The command is answered with the state as it is when all is decided; what it changed is committed first.
    mutating func answer(_ command: Command, _ fact: String, _ body: PendingEffects.Answer.Body = .state) {
        pending.answer = PendingEffects.Answer(request: command.id, body: body, fact: fact)
    }

    // MARK: Loading

    private mutating func load(_ load: WireLoadEpisode, _ command: Command) throws(Failure) {
        guard let loadID = LoadID(load.loadID) else { throw Self.invalid("“\(load.loadID)” is no load's id.") }
        guard EpisodeID(load.episode.id) != nil else { throw Self.invalid("“\(load.episode.id)” is no episode's id.") }
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
        let sleeps = sleepsThrough(loadID)
        let known = prepared.flatMap { $0.load == load ? $0.found : nil }
        leaveSession()
        endAlertsOfOthers()
        speed = speed(of: load.episode.podcastID)
        sound = sound(of: load.episode.podcastID)
        var register = WireEpisodeState()
        register.episode = load.episode.id
        register.played = load.episode.played
        register.position = load.episode.position.isFinite ? max(0, load.episode.position) : 0
        session = PlaybackSession(
            episode: load.episode, enclosure: source, loadID: loadID, queueEntry: load.queueEntry,
            status: .loading(plays: !load.paused && !sleeps), engine: .lookingUp(command.id, explicit: explicit),
            anchor: PlaybackAnchor(
                position: explicit ?? PlaybackPosition(clamping: register.position), speed: speed, at: now.monotonic,
                bootID: context.bootID, running: false, wall: now.wall),
            register: register)
        pending.state = true
        if let known { return takeEpisode(known) }
        lookUp(load.episode.id, as: Self.lookup(loadID), for: command.id)
    }

    /// What is stored about an episode is asked for; the answer need not come: then the load itself says enough.
    mutating func lookUp(_ episode: String, as id: CallID, for request: RequestID) {
        var query = WirePersistenceRequest()
        query.episodesByID.ids = [episode]
        let call = Call(
            id: id, to: .persistence, payload: query.wireBytes, request: request.derived(id.text), limit: .seconds(2))
        pending.calls.append(call)
    }

    static func lookup(_ load: LoadID) -> CallID { CallID("lookup/\(load.text)") }

    mutating func handleAnswer(_ call: CallID, _ result: Result<[UInt8], Failure>) {
        if let marking = markings.removeValue(forKey: call) {
            return mark(played: marking.played, why: marking.reason, for: marking.request, result)
        }
        if let bookmark = bookmarking.removeValue(forKey: call) { return makeBookmark(bookmark, result) }
        if call.text.hasPrefix(Self.chapterLookup) { return takeChapters(call, result) }
        if call == prepared?.call { return completePrepared(result) }
        guard let session, call == Self.lookup(session.loadID) else { return }
        if case .failure(let failure) = result {
            pending.logs.append((.warning, "The state of \(session.episode.id) is not known: \(failure)"))
        }
        takeEpisode(Self.episode(in: result))
    }

    /// What the library knows of the episode that is being loaded; nil: nothing.
    private mutating func takeEpisode(_ found: WireEpisode?) {
        guard let session, case .lookingUp(let request, let explicit) = session.engine else { return }
        if let register = book.registers[session.episode.id] ?? found.map(Self.register) {
            self.session?.register = register
        }
        if let found {
            preferFile(of: found.download)
            takeChapters(found)
        }
        begin(at: explicit, for: request)
    }

    /// The episode that persistence answered with.
    static func episode(in result: Result<[UInt8], Failure>) -> WireEpisode? {
        guard case .success(let bytes) = result, let reply = try? WirePersistenceReply(wireBytes: bytes) else {
            return nil
        }
        return reply.episodes.episodes.first
    }

    /// Its state as it is stored.
    static func register(of episode: WireEpisode) -> WireEpisodeState {
        var state = episode.state
        state.episode = episode.id
        return state
    }

    /// All is known: the load becomes durable, then the engine opens it.
    private mutating func begin(at explicit: PlaybackPosition?, for request: RequestID) {
        if let seconds = session?.register.duration { session?.recordedDuration = EpisodeDuration(seconds: seconds) }
        guard let session else { return }
        let start = start(of: session, explicit: explicit)
        if start != session.anchor.position { setAnchor(start, running: false) }
        self.session?.engine = .awaitingCommit(nil)
        self.session?.beginsAnew = explicit == nil
        book.mark(.session)
        pending.commit = true
        pending.answer = PendingEffects.Answer(request: request, body: .state, fact: "Loaded")
    }

    /// Gives the engine what is loaded.
    mutating func openEngine() {
        guard let session, let source = session.source, !isStopping else {
            if let session, !isStopping { failUnplayable(session.episode) }
            return
        }
        self.session?.engine = .open
        self.session?.isOpened = false
        self.session?.starving = nil
        self.session?.hasSounded = false
        self.session?.refusal = nil
        self.session?.wasLetIn = false
        self.session?.playedFrom = session.anchor.position
        self.session?.opensBy = session.isStream ? now.monotonic.advanced(by: context.limits.opening) : nil
        if case .web(let url) = source { pending.perform(.identify(session.loadID, url: url)) }
        self.session?.seekAsked = 0
        self.session?.seekDone = 0
        pending.perform(
            .engine(
                .open(
                    EngineLoad(
                        id: session.loadID, source: source, start: session.anchor.position,
                        paused: !session.wantsToPlay,
                        speed: speed, volume: heardVolume, output: output, sound: EngineSound(sound)))))
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
        markPosition()
        if session.engine == .open { pending.perform(.engine(.unload)) }
        if case .lookingUp(let request, _) = session.engine {
            let failure = Failure(.revisionMismatch, "Something else was loaded in the meantime.")
            pending.refuse(request, failure)
        }
        prepared = nil
        endAlerts(of: session.loadID, all: true)
        silent = nil
        lostDevice = nil
        self.session = nil
        book.mark(.session)
    }

    private mutating func unload(_ loadID: String, _ command: Command) {
        if let session, loadID.isEmpty || session.loadID.text == loadID {
            forgetPrepared()
            leaveSession()
            pending.state = true
        }
        answer(command, "Nothing is loaded any more")
    }

    // MARK: Playing

    private func loaded() throws(Failure) -> PlaybackSession {
        guard let session else {
            throw Failure(.nothingLoaded, "Nothing is loaded. Start something with `lockstep play EPISODE`.")
        }
        return session
    }

    private static func heard(_ session: PlaybackSession) -> Failure {
        Failure(
            .nothingLoaded,
            "“\(session.episode.title)” has been heard to its end. `lockstep play` with its title begins it again.")
    }

    private mutating func setPaused(_ paused: Bool, _ command: Command) throws(Failure) {
        let session = try loaded()
        lostDevice = nil
        if paused {
            hold()
        } else if session.status == .finished {
            throw Self.heard(session)
        } else {
            resume()
        }
        answer(command, paused ? "Paused" : "Playing")
    }

    /// Pauses, if there is anything to pause.
    mutating func hold() {
        guard let session else { return }
        switch session.status {
        case .playing,
            .loading(plays: true) where session.isOpened:
            let position = session.position(at: now.monotonic)
            self.session?.status = .paused
            self.session?.buffering = false
            self.session?.settlesAt = now.monotonic.advanced(by: Self.settlesAfterPause)
            self.session?.pausedAt = now.wall
            setAnchor(position, running: false)
            markPosition()
            pending.commit = true
        case .loading(plays: true) where session.engine == .closed:
            // It waits for its next try, which is for whoever resumes it.
            self.session?.status = .paused
            self.session?.retry = nil
            markPosition()
            pending.state = true
            pending.commit = true
        case .loading(plays: true):
            self.session?.status = .loading(plays: false)
            book.mark(.session)
            pending.state = true
            pending.commit = true
        case .loading, .paused, .failed, .finished:
            return
        }
        if session.engine == .open { pending.perform(.engine(.setPaused(true))) }
    }

    /// Plays on, opening the file again where that is needed.
    mutating func play() {
        guard let session else { return }
        self.session?.skip = false
        self.session?.pausedAt = nil
        switch session.status {
        case .loading where session.retry?.nextAt != nil:
            // Whoever resumes does not want to wait.
            self.session?.status = .loading(plays: true)
            reconnect()
        case .playing, .finished, .loading(plays: true):
            return
        case .loading:
            self.session?.status = .loading(plays: true)
            if session.engine == .open { pending.perform(.engine(.setPaused(false))) }
        case .paused where session.engine == .open:
            self.session?.status = .playing
            pending.perform(.engine(.setPaused(false)))
        case .paused, .failed:
            if session.status.isFailed { self.session?.takesNewLength = true }
            self.session?.retry = nil
            self.session?.status = .loading(plays: true)
            setAnchor(session.position(at: now.monotonic), running: false)
            openEngine()
        }
        endAlerts(of: session.loadID)
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }

    private mutating func seek(_ seek: WireSeek, _ command: Command) throws(Failure) {
        let session = try loaded()
        guard session.status != .finished else { throw Self.heard(session) }
        guard seek.loadID.isEmpty || seek.loadID == session.loadID.text else {
            throw Failure(.nothingLoaded, "The episode that was to be moved in is no longer loaded.")
        }
        guard let position = PlaybackPosition(seconds: seek.position) else {
            throw Self.invalid("\(seek.position) s is no position.")
        }
        if let duration = session.duration, position.seconds > duration.seconds {
            throw Self.invalid("\(clockText(position.seconds)) is beyond the end at \(clockText(duration.seconds)).")
        }
        move(to: position)
        answer(command, "Moved to \(clockText(position.seconds))")
    }

    /// Goes to a position; the anchor runs again when the engine says so.
    mutating func move(to position: PlaybackPosition) {
        guard let session else { return }
        setAnchor(position, running: false)
        self.session?.pausedAt = nil
        self.session?.playedFrom = position
        self.session?.starving = nil
        self.session?.hasSounded = false
        if session.engine == .open {
            count += 1
            self.session?.seekAsked = count
            pending.perform(.engine(.seek(position, serial: count)))
        } else if case .lookingUp(let request, _) = session.engine {
            self.session?.engine = .lookingUp(request, explicit: position)
        }
        markPosition()
        pending.commit = true
    }

    private mutating func stop(_ command: Command) {
        lostDevice = nil
        // What follows does so still when it is resumed.
        if prepared != nil { pending.perform(.engine(.prepare(nil))) }
        if let session {
            switch session.status {
            case .playing, .loading, .paused:
                if session.engine == .open { pending.perform(.engine(.unload)) }
                let changed = session.status != .paused
                let isClosing = session.engine == .open || changed
                if case .lookingUp(let request, _) = session.engine {
                    pending.refuse(request, Failure(.nothingLoaded, "It was stopped before it was open."))
                }
                self.session?.engine = .closed
                self.session?.status = .paused
                self.session?.buffering = false
                self.session?.retry = nil
                if session.status != .paused { self.session?.pausedAt = now.wall }
                if isClosing {
                    setAnchor(session.position(at: now.monotonic), running: false)
                    markPosition()
                    pending.commit = true
                }
            case .failed, .finished:
                break
            }
        }
        answer(command, "Stopped")
    }
}

/// A position as people write it: `1:02:03`, `12:34`.
func clockText(_ seconds: Double) -> String {
    let whole = Int(max(0, min(seconds, 1e9)))
    func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let tail = "\(two(whole % 60))"
    let minutes = whole / 60 % 60
    return whole >= 3_600 ? "\(whole / 3_600):\(two(minutes)):\(tail)" : "\(minutes):\(tail)"
}
