import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// What an alert says of the sound device.
enum DeviceAlert: String, Sendable, Hashable {
    /// It is gone, and playback is paused.
    case lost
    /// There is none, and playback goes on without sound.
    case silent
    /// The chosen one isn't there, and another is used.
    case other

    static let missingOutput = "outputMissing"
    static let codes = [FailureCode.noSoundDevice.rawValue, missingOutput]

    /// What a stored alert says; nil: nothing of the device.
    init?(_ alert: WireAlert) {
        switch alert.code {
        case FailureCode.noSoundDevice.rawValue: self = alert.actions.contains("resume") ? .lost : .silent
        case Self.missingOutput: self = .other
        default: return nil
        }
    }
}

extension PlaybackMachine {
    private var isPlayingAloud: Bool { session?.wantsToPlay == true && session?.engine == .open }

    // MARK: What the engine says

    mutating func handleOutputs(_ outputs: EngineOutputs) {
        if let found = outputs.devices { devicesListed(found) }
        if outputs.inUse != outputInUse {
            outputInUse = outputs.inUse
            pending.output = true
            pending.state = true
        }
        guard let isSilent = outputs.silent else { return }
        if isSilent != silent {
            silent = isSilent
            pending.state = true
        }
        guard let session else { return }
        let isChosen = output.isEmpty || outputs.inUse == output
        perform(
            deviceLoss.outputChanged(
                to: isSilent ? .silent : isChosen ? .onChosen : .onOther, isPlaying: isPlayingAloud,
                position: session.position(at: now.monotonic), now: now.monotonic))
    }

    private mutating func devicesListed(_ found: [OutputDevice]) {
        let new = found.filter { !devices.contains($0) }
        if found != devices {
            devices = found
            if !new.isEmpty {
                deviceLoss.deviceListed(
                    isChosen: new.contains { $0.name == output }, isPlaying: isPlayingAloud, now: now.monotonic)
            }
            book.mark(.settings)
            pending.output = true
        }
        // What has just come is listed once more before it is used.
        if new.isEmpty { playOnIfListed() }
        answerListings()
    }

    // MARK: What is done

    /// The timer of a lost device has gone off.
    mutating func deviceIsDue() {
        perform(
            deviceLoss.tick(
                isPlaying: session?.status == .playing, isOpening: session?.status == .loading(plays: true),
                heard: session?.heard ?? .zero, now: now.monotonic))
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
        count += 1
        self.session?.seekAsked = count
        pending.perform(.engine(.seek(position, serial: count)))
        markPosition()
        pending.commit = true
    }

    /// Nothing waits for a device any longer.
    mutating func forgetDevice() {
        deviceLoss.release()
        stayPaused()
    }

    private mutating func stayPaused() {
        guard session?.pausedBy == .soundDevice else { return }
        session?.pausedBy = .somebody
        book.mark(.session)
        pending.state = true
        pending.commit = true
    }

    // MARK: What is told

    /// What is so now is known: a device is looked for where one is needed, and the alert says what is so.
    mutating func followDevice() {
        switch session?.status {
        // It is opened to play on after a loss.
        case .loading(plays: true) where deviceLoss.isLost: break
        case .playing, .loading, .paused: deviceLoss.follow(isPlaying: isPlayingAloud, now: now.monotonic)
        case .finished, .failed, nil: deviceLoss.release()
        }
        let wanted = deviceAlert
        forgetDeviceAlerts(but: wanted)
        guard wanted != deviceAlertTold else { return }
        deviceAlertTold = wanted
        for code in DeviceAlert.codes { endAlerts(code: code) }
        if let wanted, !isDeviceAlertAnswered(wanted) { raise(wanted) }
        pending.commit = true
    }

    /// What is over for certain has another alert when it comes back. What is only not heard of, as in a pause, is not over.
    private mutating func forgetDeviceAlerts(but wanted: DeviceAlert?) {
        guard let audibility = deviceLoss.audibility, audibility > .silent else { return }
        let past = deviceAlertIDs.keys.filter { $0 != wanted && ($0 != .other || audibility == .onChosen) }
        guard !past.isEmpty else { return }
        for alert in past { deviceAlertIDs[alert] = nil }
        book.mark(.settings)
        pending.commit = true
    }

    /// Whether somebody has answered what is so still, or is about to: it isn't told again.
    private func isDeviceAlertAnswered(_ alert: DeviceAlert) -> Bool {
        guard let id = deviceAlertIDs[alert] else { return false }
        return answers[id] != nil || answering[id] != nil
    }

    private mutating func raise(_ alert: DeviceAlert) {
        let id = deviceAlertIDs[alert] ?? newAlertID(alert.rawValue)
        if deviceAlertIDs.updateValue(id, forKey: alert) != id { book.mark(.settings) }
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
                "The sound device “\(output)” isn’t there; the system’s default is used until it is.", .info,
                actions: ["dismiss"], as: id)
        }
    }

    /// What there is to say of the device.
    private var deviceAlert: DeviceAlert? {
        guard let session else { return nil }
        if deviceLoss.isLost { return .lost }
        switch session.status {
        case .playing:
            switch deviceLoss.audibility {
            case .silent?: return .silent
            case .onOther?: return .other
            case .onChosen?: return nil
            case nil: return deviceAlertTold
            }
        case .loading(plays: true): return deviceAlertTold
        case .loading, .paused:
            switch deviceAlertTold {
            case .lost?: return deviceLoss.audibility ?? .silent == .silent ? .lost : nil
            case .other?: return .other
            case .silent?, nil: return nil
            }
        case .finished, .failed: return nil
        }
    }

    // MARK: Choosing a device

    mutating func listOutputs(_ command: Command) {
        listings.append(command)
        pending.perform(.engine(.listOutputs))
    }

    /// - Parameter isFresh: the devices have just been listed.
    mutating func setOutput(_ device: String, _ command: Command, isFresh: Bool = false) throws(Failure) {
        let isThere = device.isEmpty || devices.contains { $0.name == device }
        if !isThere, !isFresh { return listOutputs(command) }
        guard isThere || devices.isEmpty else {
            let names = devices.map(\.name).joined(separator: ", ")
            throw Failure(.notFound, "There is no sound device “\(device)”; there are: \(names).")
        }
        if device != output {
            output = device
            // Another choice is no loss of the one before.
            forgetDevice()
            deviceLoss.reset()
            deviceAlertIDs[.other] = nil
            if session?.engine == .open {
                pending.perform(.engine(.setOutput(device)))
            } else {
                outputInUse = device
            }
            book.mark(.settings)
            pending.state = true
            pending.output = true
        }
        answer(command, "The sound device is chosen", .output)
    }

    /// The devices have been listed: those who wait for that are answered.
    private mutating func answerListings() {
        while !listings.isEmpty {
            // One command is committed with each event.
            guard pending.answer == nil else { return pending.perform(.engine(.listOutputs)) }
            answerListing(listings.removeFirst())
        }
    }

    private mutating func answerListing(_ command: Command) {
        do throws(Failure) {
            switch (try? WirePlaybackRequest(wireBytes: command.payload))?.command {
            case .setOutput(let set)?: try setOutput(set.device, command, isFresh: true)
            default:
                var reply = WirePlaybackReply()
                reply.output = outputState
                pending.replies.append((command.id, .success(reply.wireBytes)))
            }
        } catch {
            pending.refuse(command.id, error)
        }
    }

    /// The engine can't list devices.
    mutating func refuseListings(_ failure: Failure) {
        for command in listings { pending.refuse(command.id, failure) }
        listings = []
    }
}
