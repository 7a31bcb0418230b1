import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Handles a command, or refuses it without any change.
    mutating func handle(_ command: Command) {
        guard let request = try? WirePlaybackRequest(wireBytes: command.payload) else {
            pending.refuse(command.id, Failure(.malformed, "The request to the player can’t be read."))
            return
        }
        if request.endsAutoResume { session?.stopProbing(&pending) }
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
            case .answerAlert(let answer)?: try answerAlert(pending.alerts.answer(answer, by: command))
            case .setPlayed(let set)?: try setPlayed(set, command)
            case .unload(let unload)?: self.unload(unload.loadID, command)
            case .setSetting(let setting)?: try setSetting(setting, command)
            case .setSleep(let set)?: try setSleep(set, command)
            case .undoMarks(let undo)?: try undoMarks(command.id, of: undo.group)
            case .setBookmark(let set)?: finish(try bookmarks.set(set, command, of: session, now: now), command)
            case .removeBookmark(let remove)?: finish(try bookmarks.remove(remove.id), command)
            case .bookmarks(let query)?:
                pending.reply(command.id, try bookmarks.list(of: query.episode))
            case .refreshEpisode(let refresh)?:
                if session?.episode.id == refresh.episode { lookUpChapters() }
                answer(command, "Looked up")
            case .queueRenamed(let rename)?:
                session?.rename(queue: rename.queue, to: rename.name, &pending)
                answer(command, "Renamed the queue")
            case .prepare(let prepare)?: try self.prepare(prepare, command)
            case .seekRelative(let seek)?: try self.seek(seek, command)
            case .changeSpeed(let change)?:
                try setSpeed(try change.level(from: speed.factor, in: PlaybackSpeed.range), command)
            case .changeVolume(let change)?:
                try setVolume(try change.level(from: volume.percent, in: Volume.range), command)
            case .extendSleep(let sleep)?: try extendSleep(sleep.seconds, command)
            case nil:
                throw Failure(.unknownCommand, "The player doesn’t support this command.")
            }
        } catch {
            pending.refuse(command.id, error)
        }
    }

    /// Answers a command with the state at the end of the event; its changes are committed first.
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

    private mutating func setPaused(_ paused: Bool, _ command: Command) throws(Failure) {
        let session = try loaded()
        if paused {
            stopAwaitingDevice()
            overruleAnswers()
            self.session?.pause(&pending)
        } else if session.status == .finished {
            throw session.endedFailure
        } else {
            resume()
        }
        answer(command, paused ? "Paused" : "Playing")
    }

    private mutating func stop(_ command: Command) {
        stopAwaitingDevice()
        overruleAnswers()
        // The prepared load is prepared again when the stopped one resumes.
        if prepared.load != nil { pending.command(.prepare(nil)) }
        session?.stop(&pending)
        answer(command, "Stopped")
    }

    mutating func resume() {
        let rewind = settings.number(.rewindOnResume, podcast: session?.episode.podcastID ?? "")
        session?.resume(rewind: rewind, reloadsOutput: output.isUnheard, &pending)
    }

    mutating func play() { session?.play(reloadsOutput: output.isUnheard, &pending) }
}

extension WirePlaybackRequest {
    /// Whether the loaded episode doesn’t resume by itself after a failure once the command is handled. After a seek
    /// it resumes at the new position.
    fileprivate var endsAutoResume: Bool {
        switch command {
        case .load, .setPaused, .stop, .unload, .answerAlert, .setPlayed: true
        default: false
        }
    }
}
