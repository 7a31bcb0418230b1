import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    // MARK: Settings

    /// Sets the podcast's own speed, if the loaded episode's podcast has one, else that for all.
    mutating func setSpeed(_ factor: Double, _ command: Command) throws(Failure) {
        guard let speed = PlaybackSpeed(factor: factor) else {
            let range = PlaybackSpeed.range
            throw Self.invalid("The speed goes from \(range.lowerBound) to \(range.upperBound), not \(factor).")
        }
        let podcast = session?.episode.podcastID ?? ""
        var setting = WireSetSetting()
        setting.key = SettingKey.speed.rawValue
        setting.podcast = settings.own(.speed, podcast: podcast) == nil ? "" : podcast
        setting.value = String(speed.factor)
        try change(setting, command, "The speed is \(speed.factor)")
    }

    mutating func setSetting(_ setting: WireSetSetting, _ command: Command) throws(Failure) {
        try change(setting, command, "\(setting.key) is set")
    }

    private mutating func change(_ setting: WireSetSetting, _ command: Command, _ fact: String) throws(Failure) {
        let change = try settings.set(setting)
        if let change {
            pending.writes.mark(.setting(podcast: setting.podcast, key: setting.key))
            pending.publications += change.publications
            pending.commit = true
            applySettings()
        }
        let isChanged = change != nil
        answer(command, fact, changed: isChanged, setting: settings.reply(to: setting, changed: isChanged))
    }

    /// What is set for the loaded episode takes effect.
    mutating func applySettings() {
        let podcast = session?.episode.podcastID ?? ""
        let speed = speed(of: podcast)
        if speed != self.speed {
            self.speed = speed
            pending.state = true
            session?.setSpeed(speed, &pending)
        }
        let sound = sound(of: podcast)
        if sound != self.sound {
            self.sound = sound
            pending.state = true
            if session?.engine == .open { pending.tell(.setSound(EngineSound(sound))) }
        }
    }

    /// How fast episodes of a podcast play.
    func speed(of podcast: String) -> PlaybackSpeed {
        PlaybackSpeed(factor: settings.number(.speed, podcast: podcast)) ?? .normal
    }

    /// What is done to the sound of a podcast's episodes.
    func sound(of podcast: String) -> WireSoundState {
        var sound = WireSoundState()
        sound.gain = settings.number(.gain, podcast: podcast)
        sound.trimSilence = settings.isOn(.trimSilence, podcast: podcast)
        sound.boost = settings.isOn(.boost, podcast: podcast)
        sound.normalise = settings.isOn(.normalise, podcast: podcast)
        return sound
    }

    mutating func setVolume(_ percent: Double, _ command: Command) throws(Failure) {
        guard let volume = Volume(percent: percent) else {
            throw Self.invalid("The volume goes from 0 to 100, not \(percent).")
        }
        if volume != self.volume {
            self.volume = volume
            if session?.engine == .open { pending.tell(.setVolume(heardVolume)) }
            pending.writes.mark(.settings)
            pending.state = true
        }
        answer(command, "The volume is \(volume.percent)")
    }

    static func invalid(_ message: String) -> Failure { Failure(.invalidArgument, message) }
}

extension EngineSound {
    /// As the stream shows it.
    init(_ wire: WireSoundState) {
        self.init(gain: wire.gain, trimSilence: wire.trimSilence, boost: wire.boost, normalise: wire.normalise)
    }
}
