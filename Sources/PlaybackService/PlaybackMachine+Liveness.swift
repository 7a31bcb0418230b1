import BusKit
import PodcastModel
import WireMessages

/// How a player ends whose engine hangs, so that another process goes on in its place.
struct EngineHang: Sendable, Hashable {
    /// How long the saving of the position may take.
    static let saving = Duration.seconds(2)

    /// When the process ends, saved or not.
    let endsBy: MonotonicTime
    /// The shell has been told to end it.
    var isEnding = false
}

// A sound server that stops answering, or dies while it is asked, can hold libmpv for ever (mpv 0.35, `for_each_sink` in
// `ao_pipewire.c`). Its threads can’t be ended, but their process can: the supervisor starts another at once, which opens
// nothing before the sound servers have listed their devices to a watch that may hang.
extension PlaybackMachine {
    /// When `checkEngine` is due.
    var nextCheck: MonotonicTime? {
        if let hang { return hang.isEnding ? nil : hang.endsBy }
        guard liveness.isWaiting, !pending.isStopping else { return nil }
        return timers.wanted[PlaybackTimers.liveness] ?? now.monotonic.advanced(by: EngineLiveness.interval)
    }

    /// The interval between two checks has passed.
    mutating func checkEngine() {
        guard hang == nil else { return }
        switch liveness.check() {
        case .isAlive: break
        case .asks(let number): pending.tell(.ping(number))
        case .hangs: engineHangs()
        }
    }

    /// Nothing is heard from here on: what plays is paused as by the loss of its device, where it was heard last.
    mutating func engineHangs() {
        hang = EngineHang(endsBy: now.monotonic.advanced(by: EngineHang.saving))
        guard let session else { return }
        perform(
            output.loss.stopsAnswering(
                isPlaying: session.wantsToPlay, at: session.tracker.lastHeard, now: now.monotonic))
        self.session?.savePosition(&pending)
    }

    /// Ends the process when nothing is on its way to the database any more, or it took too long.
    mutating func endHungProcess() {
        guard let hang, !hang.isEnding, !pending.writes.isBusy || now.monotonic >= hang.endsBy else { return }
        self.hang?.isEnding = true
        pending.perform(
            .endProcess(
                Failure(
                    .internalError,
                    "The audio engine doesn’t respond, as when a sound server hangs; the player starts again.")))
    }

    /// An earlier life of the process was waiting for a sound device: this one waits on.
    mutating func waitForDevice() {
        guard let session else { return }
        self.session?.pausedBy = .soundDevice
        output.loss.restore(at: session.tracker.anchor.position, now: now.monotonic)
    }
}
