import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Does a command, or refuses it without doing anything.
    mutating func take(_ command: Command) {
        guard let request = try? WirePlaybackRequest(wireBytes: command.payload) else {
            pending.refuse(command.id, Failure(.malformed, "The request to the player cannot be read."))
            return
        }
        if request.isAboutLoaded { forgetServer() }
        do throws(Failure) {
            switch request.command {
            case .load(let load)?: try self.load(load, command)
            case .setPaused(let set)?: try setPaused(set.paused, command)
            case .togglePaused?: try setPaused(loaded().status.willPlay, command)
            case .seek(let seek)?: try self.seek(seek, command)
            case .setSpeed(let set)?: try setSpeed(set.speed, command)
            case .setVolume(let set)?: try setVolume(set.volume, command)
            case .stop?: stop(command)
            case .setOutput(let set)?: try setOutput(set.device, command)
            case .listOutputs?: listOutputs(command)
            case .answerAlert(let answer)?: try answerAlert(WaitingAnswer(command: command, answer: answer))
            case .setPlayed(let set)?: try setPlayed(set, command)
            case .unload(let unload)?: self.unload(unload.loadID, command)
            case .setSetting(let setting)?: try setSetting(setting, command)
            case .setSleep(let set)?: try setSleep(set, command)
            case .setBookmark(let set)?: finish(try bookmarks.set(set, command, of: session, now: now), command)
            case .removeBookmark(let remove)?: finish(try bookmarks.remove(remove.id), command)
            case .bookmarks(let query)?:
                pending.replies.append((command.id, .success(try bookmarks.list(of: query.episode))))
            case .refreshEpisode(let refresh)?:
                if session?.episode.id == refresh.episode { lookUpChapters() }
                answer(command, "Looked up")
            case .prepare(let prepare)?: try self.prepare(prepare, command)
            case .seekRelative(let seek)?: try self.seek(seek, command)
            case .changeSpeed(let change)?:
                try setSpeed(try change.level(from: speed.factor, in: PlaybackSpeed.range), command)
            case .changeVolume(let change)?:
                try setVolume(try change.level(from: volume.percent, in: Volume.range), command)
            case .extendSleep(let sleep)?: try extendSleep(sleep.seconds, command)
            case nil:
                throw Failure(.unknownCommand, "The player does not know this command.")
            }
        } catch {
            pending.refuse(command.id, error)
        }
    }

    /// The command is answered with the state as it is when all is decided; what it changed is committed first.
    mutating func answer(
        _ command: Command, _ fact: String, _ body: PendingEffects.Answer.Body = .state, changed: Bool? = nil,
        setting: WireSettingReply? = nil
    ) {
        pending.answer = PendingEffects.Answer(
            request: command.id, body: body, fact: fact, changed: changed ?? pending.hasChanges, setting: setting)
    }

    // MARK: Playing

    func loaded() throws(Failure) -> PlaybackSession {
        guard let session else {
            throw Failure(.nothingLoaded, "Nothing is loaded. Start something with `lockstep play EPISODE`.")
        }
        return session
    }

    static func playedToEnd(_ session: PlaybackSession) -> Failure {
        Failure(
            .nothingLoaded,
            "“\(session.episode.title)” has been heard to its end. `lockstep play` with its title begins it again.")
    }

    private mutating func setPaused(_ paused: Bool, _ command: Command) throws(Failure) {
        let session = try loaded()
        if paused {
            forgetDevice()
            overruleAnswers()
            pausePlayback()
        } else if session.status == .finished {
            throw Self.playedToEnd(session)
        } else {
            resume()
        }
        answer(command, paused ? "Paused" : "Playing")
    }

    /// Pauses, if there is anything to pause.
    mutating func pausePlayback() {
        guard let session else { return }
        switch session.status {
        case .playing,
            .loading(plays: true) where session.isOpened:
            let position = session.position(at: now.monotonic)
            self.session?.status = .paused
            self.session?.buffering = false
            self.session?.tracker.paused(now: now, settles: true)
            setAnchor(position, running: false)
            savePosition()
        case .loading(plays: true) where session.engine == .closed:
            // It waits for its next try, which is for whoever resumes it.
            self.session?.status = .paused
            self.session?.recovery.end()
            self.session?.tracker.paused(now: now)
            markPosition()
            pending.state = true
            pending.commit = true
        case .loading(plays: true):
            self.session?.status = .loading(plays: false)
            self.session?.recovery.end()
            self.session?.tracker.paused(now: now)
            saveSession()
        case .loading, .paused, .failed, .finished:
            return
        }
        if session.engine == .open { pending.perform(.engine(.setPaused(true))) }
    }

    /// Plays on, opening the file again where that is needed.
    mutating func play() {
        guard let session else { return }
        self.session?.skip = false
        self.session?.skippedAlert = ""
        self.session?.tracker.resumed()
        self.session?.pausedBy = .somebody
        var opens = false
        switch session.status {
        case .loading where session.recovery.isWaitingToRetry:
            // Whoever resumes does not want to wait.
            self.session?.status = .loading(plays: true)
            perform(self.session?.recovery.retryNow())
        case .playing, .finished, .loading(plays: true):
            return
        case .loading:
            self.session?.status = .loading(plays: true)
            if session.engine == .open { pending.perform(.engine(.setPaused(false))) }
        case .paused where session.engine == .open:
            self.session?.status = .playing
            // What was silent sounds, if there is a device now.
            if let audibility = output.loss.audibility, audibility < .onChosen {
                pending.perform(.engine(.reloadOutput))
            }
            pending.perform(.engine(.setPaused(false)))
        case .paused where session.isBeingLookedUp:
            self.session?.status = .loading(plays: true)
        case .paused, .failed:
            self.session?.recovery.end()
            self.session?.status = .loading(plays: true)
            setAnchor(session.position(at: now.monotonic), running: false)
            opens = true
        }
        endAlerts(of: session.loadID)
        // What cannot be opened has an alert of its own. A stream may have been downloaded since it was loaded.
        if opens, session.isStream {
            lookUpAgain(at: self.session?.tracker.anchor.position)
        } else if opens {
            openEngine()
        }
        saveSession()
    }

    private mutating func stop(_ command: Command) {
        forgetDevice()
        overruleAnswers()
        // What follows does so still when it is resumed.
        if next.load != nil { pending.perform(.engine(.prepare(nil))) }
        if let session {
            switch session.status {
            case .playing, .loading, .paused:
                if session.engine == .open { pending.perform(.engine(.unload)) }
                let changed = session.status != .paused
                let isClosing = session.engine == .open || changed || session.pausedBy != .stop
                if case .lookingUp(let request, let explicit) = session.engine {
                    if let request {
                        pending.refuse(request, Failure(.nothingLoaded, "It was stopped before it was open."))
                    }
                    // Where it is to be resumed is not known before.
                    self.session?.engine = .lookingUp(nil, explicit: explicit)
                } else {
                    self.session?.engine = .closed
                }
                self.session?.status = .paused
                self.session?.pausedBy = .stop
                self.session?.buffering = false
                self.session?.recovery.end()
                if session.status != .paused { self.session?.tracker.paused(now: now) }
                if isClosing {
                    setAnchor(session.position(at: now.monotonic), running: false)
                    savePosition()
                }
            case .failed, .finished:
                break
            }
        }
        answer(command, "Stopped")
    }
}

extension WirePlaybackRequest {
    /// Whether somebody does something about what is loaded: what has failed does not go on by itself after that.
    fileprivate var isAboutLoaded: Bool {
        switch command {
        case .load, .setPaused, .seek, .seekRelative, .stop, .unload, .answerAlert, .setPlayed: true
        default: false
        }
    }
}
