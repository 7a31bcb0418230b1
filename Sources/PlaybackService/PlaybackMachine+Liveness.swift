import BusKit
import PodcastModel
import WireMessages

// A sound server that stops answering, or dies while it is asked, can hold libmpv for ever (mpv 0.35, `for_each_sink` in
// `ao_pipewire.c`). Its threads can’t be ended, but their process can: the supervisor starts another at once, which opens
// nothing before the sound servers have listed their devices to a watch that may hang.
extension PlaybackMachine {
    /// The interval between two checks has passed.
    mutating func checkEngine() {
        switch liveness.check() {
        case .isAlive: break
        case .asks(let number): pending.command(.ping(number))
        case .hangs: engineHangs()
        }
    }

    /// Pauses as after the loss of a device, where playback was heard last.
    mutating func engineHangs() {
        liveness.hung(now: now.monotonic)
        guard let session else { return }
        perform(
            output.loss.stopsAnswering(
                isPlaying: session.wantsToPlay, at: session.tracker.lastHeard, now: now.monotonic))
        self.session?.savePosition(&pending)
    }

    /// Ends the process when nothing is on its way to the database any more, or it took too long.
    mutating func endHungProcess() {
        guard liveness.ends(isSaving: pending.writes.isBusy, now: now.monotonic) else { return }
        pending.perform(
            .endProcess(
                Failure(
                    .internalError,
                    "The audio engine doesn’t respond, as when a sound server hangs; the player starts again.")))
    }

    /// Waits for a sound device, as the previous process did.
    mutating func waitForDevice() {
        guard let session else { return }
        self.session?.pausedBy = .soundDevice
        output.loss.restore(at: session.tracker.anchor.position, now: now.monotonic)
    }
}
