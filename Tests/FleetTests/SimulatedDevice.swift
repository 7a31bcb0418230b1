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
    private static let settling = Duration.milliseconds(800)

    private(set) var isThere = true
    /// Whether the device can be used; a listed one may not be usable yet.
    private(set) var works = true

    // The events that the player has received and its reactions.
    /// Whether the player has a file open: earlier reports of the output don’t concern audible sound.
    private var isOpen = false
    /// The load that was audible, and whether it was silent.
    private var heard: (load: String, silent: Bool)?
    private var seen = Self.listed
    /// The load that is paused because its device was lost, until a command changes that.
    private(set) var waiting: String?
    /// The times of the device’s return as the player received it and of the player’s last attempt.
    private var returned: MonotonicTime?
    private var triedAt: MonotonicTime?
    /// The number of times that the player resumed, and the number of times that it stopped retrying.
    private(set) var resumptions = 0
    private(set) var surrenders = 0

    // MARK: Events

    mutating func lose(_ engine: SimulatedEngine, listFirst: Bool) {
        (isThere, works) = (false, false)
        if listFirst { engine.setDevices([], works: false) }
        engine.setSilent(true)
        if !listFirst { engine.setDevices([], works: false) }
    }

    /// Adds the device to the list again, usable or not.
    mutating func bring(_ engine: SimulatedEngine, works: Bool) {
        (isThere, self.works) = (true, works)
        engine.setDevices(Self.listed, works: works)
    }

    /// Passes the current device list to a new engine.
    mutating func give(to engine: SimulatedEngine) {
        if !isThere { engine.setDevices([], works: false) }
        if !works { engine.setSilent(true) }
        closes()
        wakeUp()
    }

    private mutating func wakeUp() {
        waiting = nil
        returned = nil
        triedAt = nil
    }

    // MARK: Checks

    /// Checks the player’s reaction to an event.
    mutating func follow(
        _ event: PlaybackMachine.Event, from before: WirePlaybackState, to after: WirePlaybackState,
        at now: MonotonicTime
    ) -> String? {
        if after.loadID != waiting || [.failed, .finished, .idle].contains(after.status) { wakeUp() }
        switch event {
        case .input(.engine(.outputs(let outputs))): return follow(outputs, from: before, to: after, at: now)
        case .command(let command):
            if let request = try? WirePlaybackRequest(wireBytes: command.payload), request.isWish { wakeUp() }
        case .committed: if after.isToPlay { wakeUp() }
        default:
            if waiting != nil, !before.isToPlay, after.isToPlay, returned == nil {
                return "it plays on although its device is gone"
            }
        }
        return nil
    }

    private mutating func follow(
        _ outputs: EngineOutputs, from before: WirePlaybackState, to after: WirePlaybackState, at now: MonotonicTime
    ) -> String? {
        let isLost = outputs.silent == true && heard?.load == before.loadID && heard?.silent == false
        if waiting != nil, heard?.silent == true, outputs.silent == false, returned == nil { returned = now }
        if let silent = outputs.silent, isOpen { heard = (before.loadID, silent) }
        if let devices = outputs.devices {
            if waiting != nil, seen.isEmpty, !devices.isEmpty { returned = now }
            seen = devices
        }
        guard isLost, before.isToPlay else { return nil }
        wakeUp()
        waiting = after.loadID
        return after.isToPlay ? "its device is lost and it plays on" : nil
    }

    /// Records that the player opens a file, which may be silent at first.
    mutating func opens() { (isOpen, heard) = (true, nil) }

    /// Records that the player closes its file.
    mutating func closes() { (isOpen, heard) = (false, nil) }

    /// The player opens its output again.
    mutating func tryAgain(at now: MonotonicTime) -> String? {
        guard waiting != nil else { return nil }
        defer { triedAt = now }
        if let returned, now.since(returned) < Self.settling {
            return "it tries the device after \(now.since(returned))"
        }
        if let triedAt, now.since(triedAt) < Self.settling { return "it tries again after \(now.since(triedAt))" }
        return nil
    }

    mutating func note(_ log: String) {
        if log.contains("playback has resumed") {
            resumptions += 1
            wakeUp()
        } else if log.contains("couldn’t resume") {
            surrenders += 1
            returned = nil
        }
    }
}

extension WirePlaybackState {
    /// Whether the player plays or will play.
    var isToPlay: Bool { status == .playing || status == .loading && willPlay }
}

extension WirePlaybackRequest {
    /// Whether the command requests or prevents playback.
    var isWish: Bool {
        switch command {
        case .load, .setPaused, .seek, .stop, .unload: true
        default: false
        }
    }
}
