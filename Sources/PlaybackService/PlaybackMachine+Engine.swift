import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Handles an event of the engine; events about another load are stale and ignored.
    mutating func handle(_ event: EngineEvent) {
        switch event {
        case .opened(let load, let duration, let chapters): if isOpen(load) { opened(duration, chapters) }
        case .measured(let load, let measured): if isOpen(load) { session?.measured(measured, &pending) }
        case .progress(let load, let progress):
            if isOpen(load), session?.progressed(progress, &pending) == true { engineHangs() }
        case .ended(let load, let end): if isOpen(load) { session?.ended(end, &pending) }
        case .failed(let load, let failure): if isOpen(load) { session?.recover(from: failure, &pending) }
        case .outputs(let outputs): handleOutputs(outputs)
        case .pong(let number): liveness.answer(number)
        case .unusable(let failure):
            liveness.reset()
            refuseListings(failure)
            if engineHasFile { session?.fail(failure, &pending) }
        }
    }

    /// Whether the engine has a file or is opening one.
    var engineHasFile: Bool { session?.engine.hasFile == true }

    private func isOpen(_ load: LoadID) -> Bool { session?.loadID == load && engineHasFile }

    private mutating func opened(_ duration: MeasuredDuration?, _ marks: [ChapterMark]) {
        guard session?.opened(duration, &pending) == true, let session else { return }
        pending.save(chapters.opened(marks, duration, of: session.episode, now: now.wall), as: Item.chapters)
    }

    /// Adds the volume, the device and the sound processing to a load for the engine.
    func completed(_ action: PlaybackAction) -> PlaybackAction {
        switch action {
        case .engine(.open(let load)): .engine(.open(completed(load)))
        case .engine(.prepare(let load?)): .engine(.prepare(completed(load)))
        default: action
        }
    }

    private func completed(_ load: EngineLoad) -> EngineLoad {
        var load = load
        load.volume = heardVolume
        load.output = output.chosen
        load.sound = EngineSound(settings.sound(of: load.podcast))
        return load
    }

    // MARK: The computer’s sleep

    /// Saves the position before the computer sleeps.
    mutating func suspend() {
        isSuspending = true
        if session?.tracker.anchor.running == true { session?.markPosition(&pending) }
        pending.commit = !pending.writes.dirty.isEmpty
    }

    /// Lets the computer sleep when nothing is being committed.
    mutating func allowSuspend() {
        guard isSuspending, !pending.writes.isBusy else { return }
        isSuspending = false
        pending.perform(.allowSuspend)
    }
}
