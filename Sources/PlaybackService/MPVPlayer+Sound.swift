import BusKit
import CMPV
import PodcastModel

extension MPVPlayer {
    // MARK: Speed

    func setSpeed(_ speed: PlaybackSpeed) {
        guard let now = current else { return }
        current?.load.speed = speed
        setPace(now.isSilent ? MPVFilters.pace(ofSilenceAt: speed) : speed)
    }

    /// Silence has begun or ended at the filter, somewhat before it does at the ear.
    func setSilent(_ silent: Bool) {
        guard let now = current, now.isSilent != silent else { return }
        current?.isSilent = silent
        setPace(silent ? MPVFilters.pace(ofSilenceAt: now.load.speed) : now.load.speed)
    }

    private func setPace(_ pace: PlaybackSpeed) {
        guard let now = current, pace != now.pace else { return }
        let isHeard = now.loaded && !now.idle && !now.seeking && !now.wantsPause
        if isHeard, let position = place {
            current?.turn = PaceTurn(
                position: position, at: SystemClocks.monotonic(), pace: now.turn?.pace ?? now.pace,
                isFaster: pace > (now.turn?.pace ?? now.pace))
        }
        current?.pace = pace
        core.set("speed", pace.factor)
    }

    /// Tells the new speed as soon as it is heard.
    func endTurn() {
        guard let turn = current?.turn, let shown,
            turn.isOver(shown: shown, at: SystemClocks.monotonic())
        else { return }
        current?.turn = nil
        tellProgress()
    }

    // MARK: Filters

    func setSound(_ sound: EngineSound) {
        guard current != nil else { return }
        current?.load.sound = sound
        filter(for: sound)
        if !sound.trimSilence { setSilent(false) }
    }

    /// Puts the filters in, if they are not there already.
    func filter(for sound: EngineSound) {
        let wanted = MPVFilters.text(for: sound)
        if wanted != filters {
            filters = wanted
            core.set("af", wanted)
        }
        guard sound.trimSilence, !watchesSilence else { return }
        watchesSilence = true
        core.observe(Watched.silence.name, as: Watched.silence.format, reply: Watched.silence.rawValue)
    }

    // MARK: The next file

    /// libmpv opens the next file of its list when it has read the present one; it never goes on to it by itself.
    func prepare(_ load: EngineLoad?) {
        if let before = next {
            next = nil
            if before.isListed { core.command(current == nil ? ["stop"] : ["playlist-clear"]) }
        }
        guard let load, current != nil else { return }
        if case .file(let path) = load.source, Self.obstacle(at: path) != nil { return }
        next = Next(load: load)
        if current?.loaded == true { listNext() }
    }

    /// Gives libmpv the next file: now that the present one is open, its failing to open cannot lead there.
    func listNext() {
        guard let waiting = next, !waiting.isListed else { return }
        prepares += 1
        next?.isListed = true
        // The present file is open already.
        core.seekQuickly(in: waiting.load.source)
        core.command(["loadfile", waiting.load.target, "append"], reply: Self.preparing | prepares)
    }
}
