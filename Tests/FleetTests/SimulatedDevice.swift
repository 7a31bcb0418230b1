import BusKit
import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// The sound device of the machine, and what the player must make of its coming and going.
struct SimulatedDevice {
    private static let listed = [OutputDevice(name: "simulated", description: "Simulated device")]
    /// From a device's return to the first try.
    private static let settling = Duration.milliseconds(800)

    private(set) var isThere = true
    /// One that is listed need not be usable yet.
    private(set) var works = true

    // What the player has been told, and has said.
    /// Whether the player has a file open: what is told of the output before that is of none that was heard.
    private var isOpen = false
    /// Whether there was sound, for which load.
    private var heard: (load: String, silent: Bool)?
    private var seen = Self.listed
    /// The load that was paused because its device was lost, and that nobody has told otherwise since.
    private(set) var waiting: String?
    /// When the player heard that one is there again, and when it has tried it last.
    private var returned: MonotonicTime?
    private var triedAt: MonotonicTime?
    /// How often the player has gone on, and given up.
    private(set) var resumptions = 0
    private(set) var surrenders = 0

    // MARK: What happens to it

    mutating func lose(_ engine: SimulatedEngine, listFirst: Bool) {
        (isThere, works) = (false, false)
        if listFirst { engine.setDevices([], works: false) }
        engine.setSilent(true)
        if !listFirst { engine.setDevices([], works: false) }
    }

    /// It is listed again, and perhaps usable.
    mutating func bring(_ engine: SimulatedEngine, works: Bool) {
        (isThere, self.works) = (true, works)
        engine.setDevices(Self.listed, works: works)
    }

    /// A new engine finds what there is.
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

    // MARK: What the player makes of it

    /// Judges what the player does with an event.
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

    /// The player opens a file: what is heard of it may be nothing from the beginning.
    mutating func opens() { (isOpen, heard) = (true, nil) }

    /// The player closes its file.
    mutating func closes() { (isOpen, heard) = (false, nil) }

    /// The player opens its output anew.
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
        if log.contains("device is back") {
            resumptions += 1
            wakeUp()
        } else if log.contains("couldn’t resume") {
            surrenders += 1
            returned = nil
        }
    }
}

extension WirePlaybackState {
    /// Whether it plays or will.
    var isToPlay: Bool { status == .playing || status == .loading && willPlay }
}

extension WirePlaybackRequest {
    /// Whether it says what is to play, or not to.
    var isWish: Bool {
        switch command {
        case .load, .setPaused, .seek, .stop, .unload: true
        default: false
        }
    }
}
