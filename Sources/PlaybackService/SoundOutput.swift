import BusKit
import OwnerKit
import PodcastModel
import WireMessages

/// A problem with the sound device.
enum DeviceAlert: String, Sendable, Hashable {
    case lost
    case silent
    /// The chosen device isn’t available, and another is used.
    case other

    static let missingOutput = "outputMissing"
    static let codes = [FailureCode.noSoundDevice.rawValue, missingOutput]

    /// - Returns: nil if the alert isn’t about the device.
    init?(_ alert: WireAlert) {
        switch alert.code {
        case FailureCode.noSoundDevice.rawValue: self = alert.actions.contains("resume") ? .lost : .silent
        case Self.missingOutput: self = .other
        default: return nil
        }
    }

    func message(chosen: String, isHung: Bool) -> String {
        switch self {
        case .lost:
            isHung
                ? "The sound system doesn’t respond; playback is paused."
                : "The sound device is no longer available; playback is paused."
        case .silent: "Couldn’t open a sound device; playing silently."
        case .other: "The sound device “\(chosen)” isn’t available; the system’s default is used until it is."
        }
    }
}

/// The sound devices: the list, the chosen one, the one in use, the handling of a loss, and the alert about it.
struct SoundOutput: Sendable {
    enum Action: Sendable, Hashable {
        case publishState
        case publishDevices
        /// Save the devices with the next commit.
        case save
        case commit
        case followLoss(DeviceLossMachine.Action)
        /// Show this alert instead of any other about the device.
        case showAlert(DeviceAlert?)
    }

    /// The chosen device; empty means the system’s default.
    private(set) var chosen = ""
    private(set) var devices: [OutputDevice] = []
    private(set) var inUse = ""
    /// Whether nothing is heard; nil if unknown.
    private(set) var isSilent: Bool?
    var loss: DeviceLossMachine
    /// The last shown problem; its alert may have been dismissed.
    private var shown: DeviceAlert?
    /// The IDs of the alerts whose problem lasts, including those that are answered, or hidden during a pause.
    private(set) var alertIDs: [DeviceAlert: String] = [:]
    /// Commands that wait for a list of devices.
    var awaitingList: [Command] = []

    init(limits: PlaybackLimits) {
        loss = DeviceLossMachine(limits: limits)
    }

    // MARK: Reports of the engine

    /// - Parameters:
    ///   - isPlaying: whether the engine has a file that plays or is to play.
    ///   - isAwaited: whether nothing is open because a device is awaited.
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
        // A new device is used after the next list.
        guard isAwaited, new.isEmpty else { return actions }
        // A name without a slash is a driver, which always lists itself.
        let isThere = devices.contains { chosen.isEmpty ? $0.name.contains("/") : $0.name == chosen }
        return actions + loss.devicesAnswered(isThere: isThere, now: now).map(Action.followLoss)
    }

    /// - Parameter position: the position of the loaded episode; nil if nothing is loaded.
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

    mutating func unloaded() {
        isSilent = nil
        loss.reset()
    }

    var isUnheard: Bool { loss.audibility.map { $0 < .onChosen } ?? false }

    // MARK: Choosing a device

    /// Chooses a device.
    ///
    /// - Parameters:
    ///   - isFresh: whether the devices have just been listed.
    ///   - isOpen: whether the engine has a file open, and reports the device in use itself.
    /// - Returns: whether the choice has changed; nil if the devices must be listed first.
    mutating func choose(_ device: String, isFresh: Bool, isOpen: Bool) throws(Failure) -> Bool? {
        let isThere = device.isEmpty || devices.contains { $0.name == device }
        if !isThere, !isFresh { return nil }
        guard isThere || devices.isEmpty else {
            let names = devices.map(\.name).joined(separator: ", ")
            throw Failure(.notFound, "There is no sound device “\(device)”. Available devices: \(names).")
        }
        guard device != chosen else { return false }
        chosen = device
        loss.reset()
        alertIDs[.other] = nil
        if !isOpen { inUse = device }
        return true
    }

    // MARK: Alerts

    /// Searches for a device if playback needs one, and updates the alert.
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

    /// Removes the alerts of problems that are certainly over, so that a later problem gets a new alert, and returns
    /// whether there were any. A problem that can’t be observed, as in a pause, isn’t over.
    private mutating func forgetAlerts(but wanted: DeviceAlert?) -> Bool {
        guard let audibility = loss.audibility, audibility > .silent else { return false }
        let past = alertIDs.keys.filter { $0 != wanted && ($0 != .other || audibility == .onChosen) }
        for alert in past { alertIDs[alert] = nil }
        return !past.isEmpty
    }

    /// Records the ID of a raised alert, and returns whether it is new.
    mutating func raised(_ alert: DeviceAlert, as id: String) -> Bool {
        alertIDs.updateValue(id, forKey: alert) != id
    }

    // MARK: The database and the stream

    mutating func restore(_ record: WirePlaybackSettingsRecord) {
        chosen = record.output
        inUse = record.output
        devices = record.devices.map { OutputDevice(name: $0.name, description: $0.description_p) }
        for (name, id) in record.deviceAlerts {
            if let alert = DeviceAlert(rawValue: name) { alertIDs[alert] = id }
        }
    }

    mutating func restore(_ alert: WireAlert, as id: String) {
        guard let alert = DeviceAlert(alert) else { return }
        shown = alert
        alertIDs[alert] = id
    }

    func fill(_ state: inout WirePlaybackState) {
        state.output = inUse
        state.nullOutput = isSilent ?? false
    }

    func fill(_ record: inout WirePlaybackSettingsRecord) {
        record.output = chosen
        record.devices = devices.map(WireOutputState.Device.init)
        for (alert, id) in alertIDs { record.deviceAlerts[alert.rawValue] = id }
    }

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
