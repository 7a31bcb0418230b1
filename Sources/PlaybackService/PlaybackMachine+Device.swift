import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    private var isPlayingAloud: Bool { session?.wantsToPlay == true && session?.engine == .open }

    mutating func handleOutputs(_ outputs: EngineOutputs) {
        if let found = outputs.devices {
            let isAwaited = session?.engine == .closed && session?.pausedBy == .soundDevice
            perform(
                output.listed(found, isPlaying: isPlayingAloud, isAwaited: isAwaited, now: now.monotonic))
            answerListings()
        }
        perform(
            output.reported(
                outputs, isPlaying: isPlayingAloud, position: session?.position(at: now.monotonic), now: now.monotonic))
    }

    /// The timer of a lost device has gone off.
    mutating func deviceIsDue() {
        perform(
            output.loss.tick(
                isPlaying: session?.status == .playing, heard: session?.tracker.enginePosition ?? .zero,
                now: now.monotonic))
    }

    /// What is so now is known: the devices and the alert about them follow it.
    mutating func followDevice() {
        perform(output.follow(session?.status, isPlaying: isPlayingAloud, now: now.monotonic))
    }

    private mutating func perform(_ actions: [SoundOutput.Action]) {
        for action in actions {
            switch action {
            case .publishState: pending.state = true
            case .publishDevices: pending.output = true
            case .save: book.mark(.settings)
            case .commit: pending.commit = true
            case .followLoss(let action): perform([action])
            case .showAlert(let alert):
                for code in DeviceAlert.codes { endAlerts(code: code) }
                if let alert { raise(alert) }
                pending.commit = true
            }
        }
    }

    mutating func perform(_ actions: [DeviceLossMachine.Action]) {
        for action in actions {
            switch action {
            case .pause(let position): pauseWithoutDevice(at: position)
            case .reload: pending.perform(.engine(session?.engine == .open ? .reloadOutput : .listOutputs))
            case .resume: if session?.engine == .open { play() } else { playOn(afterCrash: true) }
            case .recovered: pending.logs.append((.info, "The sound device is back, and playback has gone on."))
            case .failed:
                pending.logs.append(
                    (.warning, "A sound device has come back, but playback could not go on; it is tried again."))
            case .giveUp:
                pending.logs.append((.info, "The sound device has been gone for too long; playback stays paused."))
                stayPaused()
            }
        }
    }

    private mutating func pauseWithoutDevice(at position: PlaybackPosition) {
        pausePlayback()
        session?.pausedBy = .soundDevice
        guard let session, session.isOpened, session.engine == .open else { return }
        setAnchor(position, running: false)
        seekEngine(to: position)
        savePosition()
    }

    /// Nothing waits for a device any longer.
    mutating func forgetDevice() {
        output.loss.release()
        stayPaused()
    }

    private mutating func stayPaused() {
        guard session?.pausedBy == .soundDevice else { return }
        session?.pausedBy = .somebody
        saveSession()
    }

    /// Raises an alert about the device, unless somebody has answered what is so still, or is about to.
    private mutating func raise(_ alert: DeviceAlert) {
        let known = output.alertIDs[alert]
        if let known, answers[known] != nil || answering[known] != nil { return }
        let id = known ?? newAlertID(alert.rawValue)
        if output.raised(alert, as: id) { book.mark(.settings) }
        switch alert {
        case .lost:
            raise(
                FailureCode.noSoundDevice.rawValue, title: "No sound device",
                hang == nil
                    ? "The sound device is gone; playback is paused."
                    : "The sound system doesn’t respond; playback is paused.", .warning,
                actions: ["resume", "dismiss"], as: id)
        case .silent:
            raise(
                FailureCode.noSoundDevice.rawValue, title: "No sound device",
                "Couldn’t open a sound device; playing silently.", .warning, actions: ["dismiss"], as: id)
        case .other:
            raise(
                DeviceAlert.missingOutput, title: "The chosen sound device is missing",
                "The sound device “\(output.chosen)” isn’t there; the system’s default is used until it is.", .info,
                actions: ["dismiss"], as: id)
        }
    }

    // MARK: Commands

    mutating func listOutputs(_ command: Command) {
        output.awaitList(command)
        pending.perform(.engine(.listOutputs))
    }

    /// - Parameter isFresh: whether the devices have just been listed.
    mutating func setOutput(_ device: String, _ command: Command, isFresh: Bool = false) throws(Failure) {
        let isOpen = session?.engine == .open
        guard let isChanged = try output.choose(device, isFresh: isFresh, isOpen: isOpen) else {
            return listOutputs(command)
        }
        if isChanged {
            stayPaused()
            if isOpen { pending.perform(.engine(.setOutput(device))) }
            book.mark(.settings)
            pending.state = true
            pending.output = true
        }
        answer(command, "The sound device is chosen", .output, changed: isChanged)
    }

    /// The devices have been listed: those who wait for that are answered.
    private mutating func answerListings() {
        while output.isListAwaited {
            // One command is committed with each event.
            guard pending.answer == nil else { return pending.perform(.engine(.listOutputs)) }
            if let command = output.nextAwaitingList() { answerListing(command) }
        }
    }

    private mutating func answerListing(_ command: Command) {
        do throws(Failure) {
            switch (try? WirePlaybackRequest(wireBytes: command.payload))?.command {
            case .setOutput(let set)?: try setOutput(set.device, command, isFresh: true)
            default:
                var reply = WirePlaybackReply()
                reply.output = output.wire
                pending.replies.append((command.id, .success(reply.wireBytes)))
            }
        } catch {
            pending.refuse(command.id, error)
        }
    }

    /// The engine can't list devices.
    mutating func refuseListings(_ failure: Failure) {
        while let command = output.nextAwaitingList() { pending.refuse(command.id, failure) }
    }
}
