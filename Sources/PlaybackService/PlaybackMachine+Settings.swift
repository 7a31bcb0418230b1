import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Sets the podcast’s own speed, if it has one, else the general speed.
    mutating func setSpeed(_ factor: Double, _ command: Command) throws(Failure) {
        let setting = try settings.setting(speed: factor, of: session?.episode.podcastID ?? "")
        try change(setting, command, "The speed is \(setting.value)")
    }

    mutating func setSetting(_ setting: WireSetSetting, _ command: Command) throws(Failure) {
        try change(setting, command, "\(setting.key) is set")
    }

    private mutating func change(_ setting: WireSetSetting, _ command: Command, _ fact: String) throws(Failure) {
        let change = try settings.set(setting)
        if let change {
            pending.save(change) { .setting(podcast: setting.podcast, key: $0) }
            applySettings()
        }
        let isChanged = change != nil
        answer(command, fact, changed: isChanged, setting: settings.reply(to: setting, changed: isChanged))
    }

    mutating func applySettings() {
        let podcast = session?.episode.podcastID ?? ""
        let speed = settings.speed(of: podcast)
        if speed != self.speed {
            self.speed = speed
            pending.state = true
            session?.setSpeed(speed, &pending)
        }
        let sound = settings.sound(of: podcast)
        if sound != self.sound {
            self.sound = sound
            pending.state = true
            if engineHasFile { pending.command(.setSound(EngineSound(sound))) }
        }
    }

    mutating func setVolume(_ percent: Double, _ command: Command) throws(Failure) {
        guard let volume = Volume(percent: percent) else {
            throw Self.invalid("The volume must be from 0 to 100.")
        }
        if volume != self.volume {
            self.volume = volume
            if engineHasFile { pending.command(.setVolume(heardVolume)) }
            pending.writes.mark(.settings)
            pending.state = true
        }
        answer(command, "The volume is \(volume.percent)")
    }

    static func invalid(_ message: String) -> Failure { Failure(.invalidArgument, message) }
}

extension WireChangeLevel {
    private static let smallestStep = 0.001

    /// Returns the changed level, limited to the range.
    func level(from level: Double, in range: ClosedRange<Double>) throws(Failure) -> Double {
        let target: Double
        switch change {
        case .by(let change)? where change.isFinite:
            target = ((level + change) * 100).rounded() / 100
        case .steps(let steps)? where step.isFinite && step >= Self.smallestStep:
            // Steps end at multiples of the step, so that a step up and a step down cancel out.
            let start = steps > 0 ? (level / step + 1e-6).rounded(.down) : (level / step - 1e-6).rounded(.up)
            target = steps == 0 ? level : ((start + Double(steps)) * step * 1e6).rounded() / 1e6
        default:
            throw Failure(
                .invalidArgument,
                "Give a change as a number or in steps of at least \(Self.smallestStep).")
        }
        return min(max(target, range.lowerBound), range.upperBound)
    }
}

extension OwnerSettings {
    func speed(of podcast: String) -> PlaybackSpeed {
        PlaybackSpeed(factor: number(.speed, podcast: podcast)) ?? .normal
    }

    func sound(of podcast: String) -> WireSoundState {
        var sound = WireSoundState()
        sound.gain = number(.gain, podcast: podcast)
        sound.trimSilence = isOn(.trimSilence, podcast: podcast)
        sound.boost = isOn(.boost, podcast: podcast)
        sound.normalise = isOn(.normalise, podcast: podcast)
        return sound
    }

    /// The distance of a skip, in seconds; negative: back.
    func distance(of skip: WireSkip, in podcast: String) throws(Failure) -> Double {
        guard skip.secondsIfUnset.isFinite, skip.secondsIfUnset >= 0 else {
            throw Failure(.invalidArgument, "\(skip.secondsIfUnset) s isn’t a distance to skip.")
        }
        let key = skip.back ? SettingKey.skipBack : .skipForward
        let isSet = own(key, podcast: podcast) != nil || own(key, podcast: "") != nil
        let distance = isSet || skip.secondsIfUnset == 0 ? number(key, podcast: podcast) : skip.secondsIfUnset
        return skip.back ? -distance : distance
    }

    /// Returns the setting that changes the speed: the podcast’s own if it has one, else the general one.
    func setting(speed factor: Double, of podcast: String) throws(Failure) -> WireSetSetting {
        guard let speed = PlaybackSpeed(factor: factor) else {
            let range = PlaybackSpeed.range
            throw Failure(
                .invalidArgument, "The speed must be from \(range.lowerBound) to \(range.upperBound).")
        }
        var setting = WireSetSetting()
        setting.key = SettingKey.speed.rawValue
        setting.podcast = own(.speed, podcast: podcast) == nil ? "" : podcast
        setting.value = String(speed.factor)
        return setting
    }
}

extension EngineSound {
    init(_ wire: WireSoundState) {
        self.init(gain: wire.gain, trimSilence: wire.trimSilence, boost: wire.boost, normalise: wire.normalise)
    }
}
