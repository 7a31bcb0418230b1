import BusKit
import PodcastModel
import WireMessages

/// Detects that the engine no longer carries out commands.
///
/// It counts checks, and measures no time: after a stop of the process, or the computer’s sleep, the engine hasn’t
/// hung.
struct EngineLiveness: Sendable, Hashable {
    static let interval = Duration.seconds(1)
    /// The number of checks without an answer that mean a hang: more than a disk needs to spin up.
    static let limit = 10

    enum Verdict: Sendable, Hashable {
        case isAlive
        /// The engine is to be asked with a `ping` of this number.
        case asks(UInt64)
        case hangs
    }

    /// The limit for saving the position when the engine hangs.
    private static let saving = Duration.seconds(2)

    /// When the process ends at the latest, as the engine hangs; nil: it works.
    private var endsBy: MonotonicTime?
    private var isEnding = false
    /// The engine runs, from its first file on.
    private var isRunning = false
    private var commands: UInt64 = 0
    /// The number of commands that have certainly been carried out.
    private var answered: UInt64 = 0
    /// The number of the last `ping`.
    private var asked: UInt64 = 0
    private var unanswered = 0

    var isWaiting: Bool { answered < commands }

    /// Whether the engine hangs, so that the process ends for another one to continue.
    var hasHung: Bool { endsBy != nil }

    /// When the next check is due.
    ///
    /// - Parameter set: the present value.
    func nextAt(_ set: MonotonicTime?, isStopping: Bool, now: MonotonicTime) -> MonotonicTime? {
        if let endsBy { return isEnding ? nil : endsBy }
        return isWaiting && !isStopping ? set ?? now.advanced(by: Self.interval) : nil
    }

    mutating func hung(now: MonotonicTime) { endsBy = now.advanced(by: Self.saving) }

    /// Whether the process is to end now, as everything is saved or the limit has passed.
    mutating func ends(isSaving: Bool, now: MonotonicTime) -> Bool {
        guard let endsBy, !isEnding, !isSaving || now >= endsBy else { return false }
        isEnding = true
        return true
    }

    mutating func record(_ command: EngineCommand) {
        if case .open = command { isRunning = true }
        if case .ping = command { return }
        if isRunning { commands += 1 }
    }

    mutating func answer(_ number: UInt64) {
        answered = max(answered, min(number, commands))
        unanswered = 0
    }

    /// The engine doesn’t run any more.
    mutating func reset() { self = EngineLiveness() }

    mutating func check() -> Verdict {
        guard isWaiting, !hasHung else { return .isAlive }
        guard asked > answered else {
            asked = commands
            return .asks(asked)
        }
        unanswered += 1
        return unanswered >= Self.limit ? .hangs : .isAlive
    }
}

// A sound server that hangs or dies can block libmpv for ever (mpv 0.35, `for_each_sink` in `ao_pipewire.c`). Its
// threads can’t be ended, but the process can: the supervisor starts another, which opens nothing before the sound
// servers have listed their devices to a watch that may hang.
extension PlaybackMachine {
    mutating func checkEngine() {
        switch liveness.check() {
        case .isAlive: break
        case .asks(let number): pending.command(.ping(number))
        case .hangs: engineHangs()
        }
    }

    /// Pauses as after the loss of a device, at the position that was heard last.
    mutating func engineHangs() {
        liveness.hung(now: now.monotonic)
        guard let session else { return }
        perform(
            output.loss.stopsAnswering(
                isPlaying: session.status.willPlay, at: session.tracker.lastHeard, now: now.monotonic))
        self.session?.savePosition(&pending)
    }

    /// Ends the process when everything is saved, or the limit has passed.
    mutating func endHungProcess() {
        guard liveness.ends(isSaving: pending.writes.isBusy, now: now.monotonic) else { return }
        pending.perform(
            .endProcess(
                Failure(
                    .internalError,
                    "The audio engine doesn’t respond, as when a sound server hangs; the player starts again.")))
    }

    mutating func waitForDevice() {
        guard let session else { return }
        self.session?.pausedBy = .soundDevice
        output.loss.restore(at: session.tracker.anchor.position, now: now.monotonic)
    }
}
