import PodcastModel

/// The sleep of the machine that it runs on.
extension PlaybackMachine {
    /// The machine is about to sleep: it may once the place in what plays is saved, or cannot be.
    mutating func suspend() {
        isSuspending = true
        if session?.tracker.anchor.running == true { markPosition() }
        pending.commit = !book.dirty.isEmpty
    }

    /// The machine is awake: where the engine is now is told first, whatever was reckoned before.
    mutating func wake() {
        isSuspending = false
        guard let session else { return }
        perform(self.session?.recovery.woke(session.situation(at: now)))
        guard self.session?.engine == .open else { return }
        self.session?.tracker.woke()
        pending.perform(.engine(.sample))
    }

    /// Lets the machine sleep when nothing is on its way to the database any more.
    mutating func allowSuspend() {
        guard isSuspending, !book.isBusy else { return }
        isSuspending = false
        pending.perform(.allowSuspend)
    }
}
