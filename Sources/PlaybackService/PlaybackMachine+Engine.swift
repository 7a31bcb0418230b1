import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Handles a report of the engine; one about another load than the present one is stale.
    mutating func handle(_ event: EngineEvent) {
        switch event {
        case .opened(let load, let audio): if isOpen(load) { opened(audio) }
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
            if session?.engine == .open { session?.fail(failure, &pending) }
        }
    }

    private func isOpen(_ load: LoadID) -> Bool { session?.loadID == load && session?.engine == .open }

    private mutating func opened(_ audio: OpenedAudio) {
        guard session?.opened(audio, &pending) == true, let session else { return }
        for episode in chapters.opened(audio, of: session.episode, now: now.wall) {
            pending.writes.mark(.chapters(episode))
            pending.commit = true
        }
    }

    /// Gives the engine the volume, the device and the sound that are set for what it is to open.
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

    // MARK: The sleep of the machine

    /// The machine is about to sleep: it may once the position is saved, or can’t be.
    mutating func suspend() {
        isSuspending = true
        if session?.tracker.anchor.running == true { session?.markPosition(&pending) }
        pending.commit = !pending.writes.dirty.isEmpty
    }

    /// Lets the machine sleep when nothing is on its way to the database any more.
    mutating func allowSuspend() {
        guard isSuspending, !pending.writes.isBusy else { return }
        isSuspending = false
        pending.perform(.allowSuspend)
    }
}
