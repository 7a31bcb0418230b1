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

    private func setSilent(_ silent: Bool) {
        guard let now = current, now.isSilent != silent else { return }
        current?.isSilent = silent
        play(at: silent ? MPVFilters.pace(ofSilenceAt: now.load.speed) : now.load.speed)
    }

    /// Changes the speed of sound that is not yet buffered by the output. libmpv applies the new speed to the buffered
    /// sound at once when it computes its position; the resulting jump of the position shows how much is buffered, and
    /// so the position at which the speed changes.
    private func play(at speed: PlaybackSpeed) {
        guard let now = current, speed != now.speeds.speed else { return }
        guard now.isHeard, let before = reading() else { return playAtOnce(at: speed) }
        core.setAtOnce("speed", speed.factor)
        // If this thread was delayed, the previous estimate is better.
        if let after = reading(), before.error + after.error < Self.maximumError {
            let moved = after.position - (after.at - before.at) * speed.factor
            let delay = (before.position - moved) / (speed.factor - now.speeds.speed.factor)
            if delay >= 0, delay < Self.longestDelay { outputDelay = delay }
        }
        current?.speeds.change(to: speed, at: before.at, shown: before.position, delay: outputDelay)
    }

    /// Changes the speed of the sound that is heard from now on.
    func playAtOnce(at speed: PlaybackSpeed) {
        guard let now = current else { return }
        current?.speeds = SpeedTimeline(speed)
        if speed != now.speeds.speed { core.set("speed", speed.factor) }
    }

    /// The position that libmpv reports, its time, and the uncertainty of that time, in seconds.
    private func reading() -> (position: Double, at: Double, error: Double)? {
        let asked = SystemClocks.monotonic()
        guard let position = core.number("audio-pts") else { return nil }
        let took = SystemClocks.monotonic().since(asked) / .seconds(1)
        return (position, asked.seconds + took / 2, took / 2)
    }

    /// The position that is heard, its speed, and the number of seconds until that changes.
    var heard: (position: Double, speed: PlaybackSpeed, changesIn: Double?)? {
        guard let now = current, let shown else { return nil }
        var speeds = now.speeds
        if now.isHeard { _ = speeds.update(shown: shown, at: SystemClocks.monotonic().seconds) }
        return speeds.heard(shown: shown)
    }

    /// Changes the speed at the start and end of silence, and reports a new speed when it is heard.
    func checkSpeed() {
        readLevels()
        guard let now = current, now.isHeard else {
            current?.speeds.hold()
            return
        }
        guard now.needsSpeedChecks else { return }
        if now.load.sound.trimSilence, let shown { setSilent(silences.isTrimmed(at: given(shown))) }
        if let shown, current?.speeds.update(shown: shown, at: SystemClocks.monotonic().seconds) == true {
            reportProgress()
        }
    }

    /// The number of seconds until `checkSpeed` is due; nil means after the next event.
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

    /// The position up to which the output has received sound.
    private func given(_ shown: Double) -> Double { shown + outputDelay * (current?.speeds.speed.factor ?? 1) }

    private func readLevels() {
        for item in levels?.newItems() ?? [] {
            switch item {
            case .beginning: silences.reset()
            case .level(let level): silences.add(level)
            }
        }
    }

    /// The interval at which levels are read, in seconds; they are measured further ahead than that.
    private static let levelInterval = 0.1
    /// The maximum error of a reading, in seconds, at which the output’s delay is exact to some hundredths.
    private static let maximumError = 0.01
    /// The minimum wait, in seconds.
    private static let shortestWait = 0.005
    /// The maximum plausible delay of an output, in seconds.
    private static let longestDelay = 2.0

    // MARK: Filters

    func setSound(_ sound: EngineSound) {
        guard current != nil else { return }
        current?.load.sound = sound
        filter(for: sound)
        if !sound.trimSilence { setSilent(false) }
    }

    func filter(for sound: EngineSound) {
        if sound.trimSilence, levels == nil { levels = LevelReader() }
        let wanted = MPVFilters.text(for: sound, meter: levels?.filter)
        if wanted != filters {
            filters = wanted
            core.set("af", wanted)
        }
    }

    // MARK: The next file

    /// Sets the file that libmpv opens next, after it has read the current one. The file never starts by itself.
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

    /// Passes the next file to libmpv once the current one is open and can no longer fail to open.
    func listNext() {
        guard let waiting = next, !waiting.isListed else { return }
        prepares += 1
        next?.isListed = true
        core.seekQuickly(in: waiting.load.source)
        core.command(["loadfile", waiting.load.target, "append"], reply: Self.preparing | prepares)
    }
}

extension MonotonicTime {
    fileprivate var seconds: Double { Double(nanoseconds) / 1e9 }
}

/// The libmpv filters for an `EngineSound`.
enum MPVFilters {
    /// A filter that leaves the sound unchanged but buffers 16 frames of 50 ms: silence is detected that long before
    /// it is heard.
    private static let lookahead = "dynaudnorm=f=50:g=17:enable=0"

    /// The value of the option `af`. Silence is measured in the recorded sound; the limiter is last, so that nothing is
    /// clipped.
    ///
    /// - Parameter meter: the filter that measures levels.
    static func text(for sound: EngineSound, meter: String? = nil) -> String {
        var filters: [String] = []
        if sound.trimSilence, let meter { filters.append("@silence:lavfi=[\(meter),\(lookahead)]") }
        // This filter buffers some two seconds.
        if sound.normalise { filters.append("@normalise:lavfi=[dynaudnorm=f=250:g=15:p=0.7:m=12]") }
        if sound.boost {
            filters.append("@boost:lavfi=[acompressor=threshold=0.03:ratio=4:attack=10:release=250:makeup=4]")
        }
        if sound.gain != 0 { filters.append("@gain:lavfi=[volume=\(sound.gain)dB]") }
        if sound.gain > 0 || sound.boost { filters.append("@limit:lavfi=[alimiter=limit=0.95:level=0]") }
        return filters.joined(separator: ",")
    }

    /// The speed of silence in an episode that plays at `speed`.
    static func pace(ofSilenceAt speed: PlaybackSpeed) -> PlaybackSpeed {
        PlaybackSpeed(factor: min(speed.factor * 2.5, PlaybackSpeed.range.upperBound)) ?? speed
    }
}
