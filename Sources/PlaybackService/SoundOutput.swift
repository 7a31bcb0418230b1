import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// The problem with the sound device that an alert reports.
enum DeviceAlert: String, Sendable, Hashable {
    /// It is gone, and playback is paused.
    case lost
    /// There is none, and playback goes on without sound.
    case silent
    /// The chosen one isn't there, and another is used.
    case other

    static let missingOutput = "outputMissing"
    static let codes = [FailureCode.noSoundDevice.rawValue, missingOutput]

    /// The problem that a stored alert reports; nil: it isn’t about the device.
    init?(_ alert: WireAlert) {
        switch alert.code {
        case FailureCode.noSoundDevice.rawValue: self = alert.actions.contains("resume") ? .lost : .silent
        case Self.missingOutput: self = .other
        default: return nil
        }
    }

    /// The message to the listener.
    func message(chosen: String, isHung: Bool) -> String {
        switch self {
        case .lost:
            isHung
                ? "The sound system doesn’t respond; playback is paused."
                : "The sound device is gone; playback is paused."
        case .silent: "Couldn’t open a sound device; playing silently."
        case .other: "The sound device “\(chosen)” isn’t there; the system’s default is used until it is."
        }
    }
}

/// The sound devices: which there are, which is chosen and in use, what becomes of playback when one is lost, and which
/// alert says so.
struct SoundOutput: Sendable {
    /// An action that follows from an event.
    enum Action: Sendable, Hashable {
        /// Publish the player's state.
        case publishState
        /// Publish the devices.
        case publishDevices
        /// Save what `fill` gives, with the next commit.
        case save
        case commit
        /// Do what follows from a device's loss or return.
        case followLoss(DeviceLossMachine.Action)
        /// Show this alert about the device in place of any other; nil: show none.
        case showAlert(DeviceAlert?)
    }

    /// The name of the chosen device; empty: the system's default.
    private(set) var chosen = ""
    private(set) var devices: [OutputDevice] = []
    private(set) var inUse = ""
    /// Whether the engine plays into the void; nil: it has not said.
    private(set) var isSilent: Bool?
    /// Decides how playback goes on after the loss of a device.
    var loss: DeviceLossMachine
    /// The problem that was shown last, though its alert may have been dismissed.
    private var shown: DeviceAlert?
    /// The alerts that were raised, for as long as what they say is so: also while they aren't shown, as in a pause, and
    /// when they were answered.
    private(set) var alertIDs: [DeviceAlert: String] = [:]
    /// Commands that wait for a list of the devices.
    private var awaitingList: [Command] = []

    init(limits: PlaybackLimits) {
        loss = DeviceLossMachine(limits: limits)
    }

    // MARK: What the engine reports

    /// The devices are listed.
    ///
    /// - Parameters:
    ///   - isPlaying: whether something sounds, or should.
    ///   - isAwaited: whether nothing is open because a device is waited for.
    mutating func listed(
        _ found: [OutputDevice], isPlaying: Bool, isAwaited: Bool, now: MonotonicTime
    ) -> [Action] {
        let new = found.filter { !devices.contains($0) }
        var actions: [Action] = []
        if found != devices {
            devices = found
            if !new.isEmpty {
                loss.deviceListed(isChosen: new.contains { $0.name == chosen }, isPlaying: isPlaying, now: now)
            }
            actions = [.save, .publishDevices]
        }
        // What has just come is listed once more before it is used.
        guard isAwaited, new.isEmpty else { return actions }
        // A name without a slash is no device, but a driver that always lists itself.
        let isThere = devices.contains { chosen.isEmpty ? $0.name.contains("/") : $0.name == chosen }
        return actions + loss.devicesAnswered(isThere: isThere, now: now).map(Action.followLoss)
    }

    /// The engine has said what it plays on.
    ///
    /// - Parameter position: where what is loaded is; nil: nothing is.
    mutating func reported(
        _ outputs: EngineOutputs, isPlaying: Bool, position: PlaybackPosition?, now: MonotonicTime
    ) -> [Action] {
        var actions: [Action] = []
        if outputs.inUse != inUse {
            inUse = outputs.inUse
            actions = [.publishDevices, .publishState]
        }
        guard let isSilent = outputs.silent else { return actions }
        if isSilent != self.isSilent {
            self.isSilent = isSilent
            actions.append(.publishState)
        }
        guard let position else { return actions }
        let isChosen = chosen.isEmpty || outputs.inUse == chosen
        return actions
            + loss.outputChanged(
                to: isSilent ? .silent : isChosen ? .onChosen : .onOther, isPlaying: isPlaying, position: position,
                now: now
            ).map(Action.followLoss)
    }

    /// Nothing is loaded any more: what is heard of the next episode isn't known.
    mutating func unloaded() {
        isSilent = nil
        loss.reset()
    }

    /// Whether what plays isn’t heard on the chosen device.
    var isDeaf: Bool { loss.audibility.map { $0 < .onChosen } ?? false }

    // MARK: Choosing a device

    /// Chooses a device.
    ///
    /// - Parameters:
    ///   - isFresh: whether the devices have just been listed.
    ///   - isOpen: whether the engine has a file open, and says itself what it plays on.
    /// - Returns: whether another is chosen now; nil: the devices must be listed first.
    mutating func choose(_ device: String, isFresh: Bool, isOpen: Bool) throws(Failure) -> Bool? {
        let isThere = device.isEmpty || devices.contains { $0.name == device }
        if !isThere, !isFresh { return nil }
        guard isThere || devices.isEmpty else {
            let names = devices.map(\.name).joined(separator: ", ")
            throw Failure(.notFound, "There is no sound device “\(device)”; there are: \(names).")
        }
        guard device != chosen else { return false }
        chosen = device
        // Another choice is no loss of the one before.
        loss.reset()
        alertIDs[.other] = nil
        if !isOpen { inUse = device }
        return true
    }

    /// A command waits for a list of the devices.
    mutating func awaitList(_ command: Command) { awaitingList.append(command) }

    /// The first command that has waited for the list; nil: none has.
    mutating func nextAwaitingList() -> Command? { awaitingList.isEmpty ? nil : awaitingList.removeFirst() }

    /// Whether commands wait for a list.
    var isListAwaited: Bool { !awaitingList.isEmpty }

    // MARK: Alerts

    /// Follows a change of playback: looks for a device where one is needed, and updates the alert.
    mutating func follow(_ status: PlaybackSession.Status?, isPlaying: Bool, now: MonotonicTime) -> [Action] {
        switch status {
        case .loading(plays: true) where loss.isLost: loss.opensToResume()
        case .playing, .loading, .paused: loss.follow(isPlaying: isPlaying, now: now)
        case .finished, .failed, nil: loss.release()
        }
        let wanted = alert(status)
        var actions: [Action] = forgetAlerts(but: wanted) ? [.save, .commit] : []
        if wanted != shown {
            shown = wanted
            actions.append(.showAlert(wanted))
        }
        return actions
    }

    /// The problem with the device that is to be shown.
    private func alert(_ status: PlaybackSession.Status?) -> DeviceAlert? {
        if status != nil, loss.isLost { return .lost }
        switch status {
        case .playing:
            switch loss.audibility {
            case .silent?: return .silent
            case .onOther?: return .other
            case .onChosen?: return nil
            case nil: return shown
            }
        case .loading(plays: true): return shown
        case .loading, .paused:
            switch shown {
            case .lost?: return loss.audibility ?? .silent == .silent ? .lost : nil
            case .other?: return .other
            case .silent?, nil: return nil
            }
        case .finished, .failed, nil: return nil
        }
    }

    /// Forgets the alerts of problems that are certainly over, so that they get new alerts when they return. A problem
    /// that merely can’t be observed, as in a pause, is not over.
    private mutating func forgetAlerts(but wanted: DeviceAlert?) -> Bool {
        guard let audibility = loss.audibility, audibility > .silent else { return false }
        let past = alertIDs.keys.filter { $0 != wanted && ($0 != .other || audibility == .onChosen) }
        for alert in past { alertIDs[alert] = nil }
        return !past.isEmpty
    }

    /// An alert is raised under this ID.
    ///
    /// - Returns: whether it had another, so that this one is to be saved.
    mutating func raised(_ alert: DeviceAlert, as id: String) -> Bool {
        alertIDs.updateValue(id, forKey: alert) != id
    }

    // MARK: The database and the stream

    /// Takes over what is stored.
    mutating func restore(_ record: WirePlaybackSettingsRecord) {
        chosen = record.output
        inUse = record.output
        devices = record.devices.map { OutputDevice(name: $0.name, description: $0.description_p) }
        for (name, id) in record.deviceAlerts {
            if let alert = DeviceAlert(rawValue: name) { alertIDs[alert] = id }
        }
    }

    /// Takes over a stored alert, if it is about the device.
    mutating func restore(_ alert: WireAlert, as id: String) {
        guard let alert = DeviceAlert(alert) else { return }
        shown = alert
        alertIDs[alert] = id
    }

    /// Fills in the published state.
    func fill(_ state: inout WirePlaybackState) {
        state.output = inUse
        state.nullOutput = isSilent ?? false
    }

    /// Fills in the stored settings.
    func fill(_ record: inout WirePlaybackSettingsRecord) {
        record.output = chosen
        record.devices = devices.map(WireOutputState.Device.init)
        for (alert, id) in alertIDs { record.deviceAlerts[alert.rawValue] = id }
    }

    /// The answer to who asks for the devices.
    var reply: WirePlaybackReply {
        var reply = WirePlaybackReply()
        reply.output = wire
        return reply
    }

    /// The devices, as the stream shows them.
    var wire: WireOutputState {
        var wire = WireOutputState()
        wire.devices = devices.map(WireOutputState.Device.init)
        wire.chosen = chosen
        wire.inUse = inUse
        return wire
    }
}

extension WireOutputState.Device {
    init(_ device: OutputDevice) {
        self.init()
        name = device.name
        description_p = device.description
    }
}
