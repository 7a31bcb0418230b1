import BusKit
import CMPV
import PodcastModel

extension MPVPlayer {
    // MARK: Speed

    func setSpeed(_ speed: PlaybackSpeed) {
        guard let now = current else { return }
        current?.load.speed = speed
        play(at: now.isSilent ? MPVFilters.pace(ofSilenceAt: speed) : speed)
    }

    /// Silence begins or ends in what is given to the output next.
    private func setSilent(_ silent: Bool) {
        guard let now = current, now.isSilent != silent else { return }
        current?.isSilent = silent
        play(at: silent ? MPVFilters.pace(ofSilenceAt: now.load.speed) : now.load.speed)
    }

    /// Plays at a speed what is given to the output from now on. libmpv reckons what the output has by the new speed at
    /// once: how far that moves the position it shows says how much there is, and so where in the file the speed changes.
    private func play(at speed: PlaybackSpeed) {
        guard let now = current, speed != now.speeds.speed else { return }
        guard now.isHeard, let before = reading() else { return playAtOnce(at: speed) }
        core.setAtOnce("speed", speed.factor)
        // Where this thread was held up, what was found out before is nearer the truth.
        if let after = reading(), before.error + after.error < Self.mostError {
            let moved = after.position - (after.at - before.at) * speed.factor
            let delay = (before.position - moved) / (speed.factor - now.speeds.speed.factor)
            if delay >= 0, delay < Self.longestDelay { outputDelay = delay }
        }
        current?.speeds.change(to: speed, at: before.at, shown: before.position, delay: outputDelay)
    }

    /// Plays at a speed what is heard from now on.
    func playAtOnce(at speed: PlaybackSpeed) {
        guard let now = current else { return }
        current?.speeds = SpeedTimeline(speed)
        if speed != now.speeds.speed { core.set("speed", speed.factor) }
    }

    /// The position that libmpv shows, and the moment it held, in seconds, which is known as well as `error` says.
    private func reading() -> (position: Double, at: Double, error: Double)? {
        let asked = SystemClocks.monotonic()
        guard let position = core.number("audio-pts") else { return nil }
        let took = SystemClocks.monotonic().since(asked) / .seconds(1)
        return (position, asked.seconds + took / 2, took / 2)
    }

    /// The position that is heard, the speed it is heard at, and when another is.
    var heard: (position: Double, speed: PlaybackSpeed, changesIn: Double?)? {
        guard let now = current, let shown else { return nil }
        var speeds = now.speeds
        if now.isHeard { _ = speeds.update(shown: shown, at: SystemClocks.monotonic().seconds) }
        return speeds.heard(shown: shown)
    }

    /// Changes the speed where silence begins and ends, and tells a new speed when it is heard.
    func checkSpeed() {
        readLevels()
        guard let now = current, now.isHeard else {
            current?.speeds.hold()
            return
        }
        guard now.needsSpeedChecks else { return }
        if now.load.sound.trimSilence, let shown { setSilent(silences.isTrimmed(at: given(shown))) }
        // A new speed moves what is shown.
        if let shown, current?.speeds.update(shown: shown, at: SystemClocks.monotonic().seconds) == true {
            reportProgress()
        }
    }

    /// In how many seconds `checkSpeed` has something to do; nil: after the next event.
    var nextSpeedCheck: Double? {
        guard let now = current, now.isHeard, now.needsSpeedChecks, let shown else { return nil }
        var wait = now.speeds.heard(shown: shown).changesIn
        if now.load.sound.trimSilence {
            let given = given(shown)
            let change = silences.nextChange(after: given).map { ($0 - given) / now.speeds.speed.factor }
            wait = min(wait ?? Self.levelInterval, change ?? Self.levelInterval, Self.levelInterval)
        }
        return wait.map { max($0, Self.shortestWait) }
    }

    /// Up to where the output has been given sound while libmpv shows `shown`.
    private func given(_ shown: Double) -> Double { shown + outputDelay * (current?.speeds.speed.factor ?? 1) }

    private func readLevels() {
        for item in levels?.read() ?? [] {
            switch item {
            case .beginning: silences.reset()
            case .level(let level): silences.add(level)
            }
        }
    }

    /// How often levels are read, in seconds: they are measured longer ahead.
    private static let levelInterval = 0.1
    /// With less the delay of the output is found out to some hundredths of a second.
    private static let mostError = 0.01
    /// A moment that is nearer than this has come.
    private static let shortestWait = 0.005
    /// No output has more in advance, in seconds.
    private static let longestDelay = 2.0

    // MARK: Filters

    func setSound(_ sound: EngineSound) {
        guard current != nil else { return }
        current?.load.sound = sound
        filter(for: sound)
        if !sound.trimSilence { setSilent(false) }
    }

    /// Puts the filters in, if they are not there already.
    func filter(for sound: EngineSound) {
        if sound.trimSilence, levels == nil { levels = LevelReader() }
        let wanted = MPVFilters.text(for: sound, meter: levels?.filter)
        if wanted != filters {
            filters = wanted
            core.set("af", wanted)
        }
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

extension MonotonicTime {
    fileprivate var seconds: Double { Double(nanoseconds) / 1e9 }
}
