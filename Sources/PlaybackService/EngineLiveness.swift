import BusKit
import PodcastModel
import WireMessages

/// Detects that the engine no longer carries out commands.
///
/// It counts checks instead of measuring time, because a stopped process or a sleeping computer isn’t a hung engine.
struct EngineLiveness: Sendable, Hashable {
    static let interval = Duration.seconds(1)
    /// The number of unanswered checks that mean a hang; a disk needs less time to spin up.
    static let limit = 10

    enum Verdict: Sendable, Hashable {
        case isAlive
        /// The engine must be sent a `ping` with this number.
        case asks(UInt64)
        case hangs
    }

    /// The time limit for saving the position when the engine hangs.
    private static let saving = Duration.seconds(2)

    /// The deadline for ending the process while the engine hangs; nil if the engine works.
    private var killDeadline: MonotonicTime?
    private var isEnding = false
    /// Whether the engine is running; its first `open` starts it.
    private var isRunning = false
    private var commands: UInt64 = 0
    /// The number of commands that have certainly been carried out.
    private var answered: UInt64 = 0
    /// The number of the last `ping`.
    private var asked: UInt64 = 0
    private var unanswered = 0

    var isWaiting: Bool { answered < commands }

    /// Whether the engine hangs, so that the process ends and another one continues.
    var hasHung: Bool { killDeadline != nil }

    /// Returns the time of the next check.
    ///
    /// - Parameter set: the time that is already set.
    func nextAt(_ set: MonotonicTime?, isStopping: Bool, now: MonotonicTime) -> MonotonicTime? {
        if let killDeadline { return isEnding ? nil : killDeadline }
        return isWaiting && !isStopping ? set ?? now.advanced(by: Self.interval) : nil
    }

    mutating func hung(now: MonotonicTime) { killDeadline = now.advanced(by: Self.saving) }

    /// Whether the process must end now, because everything is saved or the limit has passed.
    mutating func ends(isSaving: Bool, now: MonotonicTime) -> Bool {
        guard let killDeadline, !isEnding, !isSaving || now >= killDeadline else { return false }
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

    /// Records that the engine no longer runs.
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

// A sound server that hangs or dies can block libmpv forever (mpv 0.35, `for_each_sink` in `ao_pipewire.c`). Its
// threads can’t be ended, but the process can: the supervisor starts a new one, which opens no sound device until the
// device watch, which may hang itself, has listed the devices.
extension PlaybackMachine {
    mutating func checkEngine() {
        switch liveness.check() {
        case .isAlive: break
        case .asks(let number): pending.command(.ping(number))
        case .hangs: engineHangs()
        }
    }

    /// Pauses as after the loss of a device, at the last heard position.
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
                    "The audio engine doesn’t respond, perhaps because a sound server hangs; the player restarts.")))
    }

    mutating func awaitDevice() {
        guard let session else { return }
        self.session?.pausedBy = .soundDevice
        output.loss.restore(at: session.tracker.anchor.position, now: now.monotonic)
    }
}
