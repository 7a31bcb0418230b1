import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    private var isPlayingFile: Bool { session?.status.willPlay == true && engineHasFile }

    mutating func handleOutputs(_ outputs: EngineOutputs) {
        if let found = outputs.devices {
            let isAwaited = session?.engine == .closed && session?.pausedBy == .soundDevice
            perform(
                output.listed(found, isPlaying: isPlayingFile, isAwaited: isAwaited, now: now.monotonic))
            answerListings()
        }
        perform(
            output.reported(
                outputs, isPlaying: isPlayingFile, position: session?.position(at: now.monotonic), now: now.monotonic))
    }

    mutating func deviceIsDue() {
        perform(
            output.loss.tick(
                isPlaying: session?.status == .playing, heard: session?.tracker.enginePosition ?? .zero,
                now: now.monotonic))
    }

    /// Updates the devices and the alert about them after a change of playback.
    mutating func followDevice() {
        perform(output.follow(session?.status, isPlaying: isPlayingFile, now: now.monotonic))
    }

    private mutating func perform(_ actions: [SoundOutput.Action]) {
        for action in actions {
            switch action {
            case .publishState: pending.state = true
            case .publishDevices: pending.output = true
            case .save: pending.writes.mark(.settings)
            case .commit: pending.commit = true
            case .followLoss(let action): perform([action])
            case .showAlert(let alert):
                for code in DeviceAlert.codes { pending.endAlerts(.code(code)) }
                if let alert { raise(alert) }
                pending.commit = true
            }
        }
    }

    mutating func perform(_ actions: [DeviceLossMachine.Action]) {
        for action in actions {
            switch action {
            case .pause(let position): session?.pauseWithoutDevice(at: position, &pending)
            case .reload: pending.command(engineHasFile ? .reloadOutput : .listOutputs)
            case .resume: if engineHasFile { play() } else { resumePlayback(afterCrash: true) }
            case .stopWaiting: session?.keepPaused(&pending)
            case .recovered, .failed: break
            }
            if let (level, line) = action.log { pending.log(level, line) }
        }
    }

    mutating func stopAwaitingDevice() {
        output.loss.release()
        session?.keepPaused(&pending)
    }

    /// Raises an alert about the device, unless it has been answered since the problem began.
    private mutating func raise(_ alert: DeviceAlert) {
        let known = output.alertIDs[alert]
        if let known, pending.alerts.isAnswered(known) { return }
        let id = known ?? AlertID.derived(from: "\(alert)/\(now.wall.milliseconds)/\(pending.nextSerial())").text
        if output.raised(alert, as: id) { pending.writes.mark(.settings) }
        pending.raise(
            alert == .other ? DeviceAlert.missingOutput : FailureCode.noSoundDevice.rawValue, about: session,
            title: alert == .other ? "The chosen sound device is missing" : "No sound device",
            alert.message(chosen: output.chosen, isHung: liveness.hasHung), alert == .other ? .info : .warning,
            actions: alert == .lost ? ["resume", "dismiss"] : ["dismiss"], as: id)
    }

    // MARK: Commands

    mutating func listOutputs(_ command: Command) {
        output.awaitingList.append(command)
        pending.command(.listOutputs)
    }

    /// - Parameter isFresh: whether the devices have just been listed.
    mutating func setOutput(_ device: String, _ command: Command, isFresh: Bool = false) throws(Failure) {
        let isOpen = engineHasFile
        guard let isChanged = try output.choose(device, isFresh: isFresh, isOpen: isOpen) else {
            return listOutputs(command)
        }
        if isChanged {
            session?.keepPaused(&pending)
            if isOpen { pending.command(.setOutput(device)) }
            pending.writes.mark(.settings)
            pending.state = true
            pending.output = true
        }
        answer(command, "The sound device is chosen", .output, changed: isChanged)
    }

    /// Answers the commands that wait for the list of devices.
    private mutating func answerListings() {
        while let command = output.awaitingList.first {
            // An event answers at most one command with a commit.
            guard pending.answer == nil else { return pending.command(.listOutputs) }
            output.awaitingList.removeFirst()
            do throws(Failure) {
                if case .setOutput(let set)? = (try? WirePlaybackRequest(wireBytes: command.payload))?.command {
                    try setOutput(set.device, command, isFresh: true)
                } else {
                    var reply = WirePlaybackReply()
                    reply.output = output.wire
                    pending.reply(command.id, reply)
                }
            } catch {
                pending.refuse(command.id, error)
            }
        }
    }

    mutating func refuseListings(_ failure: Failure) {
        for command in output.awaitingList { pending.refuse(command.id, failure) }
        output.awaitingList = []
    }
}
