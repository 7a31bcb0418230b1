import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// The sound device, and the player’s expected reaction when it’s lost or returns.
struct SimulatedDevice {
    private static let listed = [OutputDevice(name: "simulated", description: "Simulated device")]
    /// The delay from the device’s return to the first attempt.
    private static let settlingTime = Duration.milliseconds(800)

    private(set) var isListed = true
    /// Whether the device can be used; a listed one may not be usable yet.
    private(set) var works = true

    // The events that the player has received and its reactions.
    /// Whether the player has a file open: earlier reports of the output don’t concern audible sound.
    private var isOpen = false
    /// The load that was audible, and whether it was silent.
    private var audible: (load: String, silent: Bool)?
    private var devicesOfPlayer = Self.listed
    /// The load that is paused because its device was lost, until a command changes that.
    private(set) var waiting: String?
    /// The times of the device’s return as the player received it and of the player’s last attempt.
    private var returned: MonotonicTime?
    private var lastAttempt: MonotonicTime?
    /// The number of times that the player resumed, and the number of times that it stopped retrying.
    private(set) var resumptions = 0
    private(set) var abandonedRetries = 0

    // MARK: Events

    mutating func disconnect(_ engine: SimulatedEngine, listFirst: Bool) {
        (isListed, works) = (false, false)
        if listFirst { engine.setDevices([], works: false) }
        engine.setSilent(true)
        if !listFirst { engine.setDevices([], works: false) }
    }

    /// Adds the device to the list again, usable or not.
    mutating func connect(_ engine: SimulatedEngine, works: Bool) {
        (isListed, self.works) = (true, works)
        engine.setDevices(Self.listed, works: works)
    }

    /// Passes the current device list to a new engine.
    mutating func attach(to engine: SimulatedEngine) {
        if !isListed { engine.setDevices([], works: false) }
        if !works { engine.setSilent(true) }
        recordClose()
        stopWaiting()
    }

    private mutating func stopWaiting() {
        waiting = nil
        returned = nil
        lastAttempt = nil
    }

    // MARK: Checks

    /// Checks the player’s reaction to an event.
    mutating func check(
        _ event: PlaybackMachine.Event, from before: WirePlaybackState, to after: WirePlaybackState,
        at now: MonotonicTime
    ) -> String? {
        if after.loadID != waiting || [.failed, .finished, .idle].contains(after.status) { stopWaiting() }
        switch event {
        case .input(.engine(.outputs(let outputs))): return check(outputs, from: before, to: after, at: now)
        case .command(let command):
            if let request = try? WirePlaybackRequest(wireBytes: command.payload), request.isPlaybackCommand {
                stopWaiting()
            }
        case .committed: if after.intendsToPlay { stopWaiting() }
        default:
            if waiting != nil, !before.intendsToPlay, after.intendsToPlay, returned == nil {
                return "it plays although its device is lost"
            }
        }
        return nil
    }

    private mutating func check(
        _ outputs: EngineOutputs, from before: WirePlaybackState, to after: WirePlaybackState, at now: MonotonicTime
    ) -> String? {
        let isLost = outputs.silent == true && audible?.load == before.loadID && audible?.silent == false
        if waiting != nil, audible?.silent == true, outputs.silent == false, returned == nil { returned = now }
        if let silent = outputs.silent, isOpen { audible = (before.loadID, silent) }
        if let devices = outputs.devices {
            if waiting != nil, devicesOfPlayer.isEmpty, !devices.isEmpty { returned = now }
            devicesOfPlayer = devices
        }
        guard isLost, before.intendsToPlay else { return nil }
        stopWaiting()
        waiting = after.loadID
        return after.intendsToPlay ? "its device is lost and it continues to play" : nil
    }

    /// Records that the player opens a file, which may be silent at first.
    mutating func recordOpen() { (isOpen, audible) = (true, nil) }

    /// Records that the player closes its file.
    mutating func recordClose() { (isOpen, audible) = (false, nil) }

    /// Checks that the player reopens its output only after the settling time.
    mutating func checkReload(at now: MonotonicTime) -> String? {
        guard waiting != nil else { return nil }
        defer { lastAttempt = now }
        if let returned, now.since(returned) < Self.settlingTime {
            return "it opens the device after \(now.since(returned))"
        }
        if let lastAttempt, now.since(lastAttempt) < Self.settlingTime {
            return "it reopens the device after \(now.since(lastAttempt))"
        }
        return nil
    }

    mutating func record(log: String) {
        if log.contains("playback has resumed") {
            resumptions += 1
            stopWaiting()
        } else if log.contains("couldn’t resume") {
            abandonedRetries += 1
            returned = nil
        }
    }
}

extension WirePlaybackState {
    /// Whether the player plays or will play once the load is open.
    var intendsToPlay: Bool { status == .playing || status == .loading && willPlay }
}

extension WirePlaybackRequest {
    /// Whether the command requests or prevents playback.
    var isPlaybackCommand: Bool {
        switch command {
        case .load, .setPaused, .seek, .stop, .unload: true
        default: false
        }
    }
}
